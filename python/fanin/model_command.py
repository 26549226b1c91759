"""The command `fanin model`: a sub-command per closed form, made from the functions of :mod:`fanin.models` and their documentation."""

from __future__ import annotations

import inspect
import json
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from fanin import _native, display
from fanin.models import MODELS, Model
from fanin.pictures import save


def command(args: list[str]) -> None:
    """Run ``fanin model ARGS``; without a name, list the forms."""
    if args in ([], ["--json"]):
        return _list(as_json=bool(args))
    forms().main(args=args, prog_name="fanin model", standalone_mode=False)
    return None


def forms() -> Any:
    """The command with one sub-command per closed form."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")
    app.callback(help="The papers' closed forms. Quantities have units: 10Gbps, 100us, 250p (packets), 64KB.")(
        lambda: None
    )
    for name, form in MODELS.items():
        app.command(name, help=_title(form), context_settings={"help_option_names": ["-h", "--help"]})(
            _sub_command(form)
        )
    return typer.main.get_command(app)


def _title(form: Callable[..., Model]) -> str:
    return (inspect.getdoc(form) or "").split("\n")[0]


def _sub_command(form: Callable[..., Model]) -> Callable[..., None]:
    """A function that Typer understands: the form's parameters as options, and those that all forms have."""
    told = _documented(inspect.getdoc(form) or "")
    types: dict[str, Any] = {"str": str, "float": float, "int": int, "str | None": str | None}
    options = []
    for parameter in inspect.signature(form).parameters.values():
        needed = parameter.default is inspect.Parameter.empty
        # The rate of the bottleneck is as naturally called its link.
        spellings = ["--link", "--rate"] if parameter.name == "rate" else [f"--{parameter.name}"]
        option = typer.Option(*spellings, help=told[parameter.name], show_default=not needed)
        annotation = Annotated[types[str(parameter.annotation)], option]  # type: ignore[valid-type]
        options.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=annotation))

    def run(*, out: Path | None, as_json: bool, **inputs: Any) -> None:
        result = form(**inputs)
        chart = result.chart()
        if out is not None and chart is None:
            raise typer.BadParameter(f"{result.name} has no curve to draw", param_hint="--out")
        if out is not None and chart is not None:
            save(chart, out)
        if as_json:
            _print_json({"command": shlex.join(["fanin", *sys.argv[1:]]), **result.to_dict()})
        else:
            _print(result)
        if out is not None:
            display.note(f"picture: {out}")

    extra = {
        "out": (
            Annotated[
                Path | None, typer.Option("--out", metavar="FILE", help="Draw the curve: svg, png, pdf or html.")
            ],
            None,
        ),
        "as_json": (Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")], False),
    }
    for name, (annotation, default) in extra.items():
        kind = inspect.Parameter.KEYWORD_ONLY
        options.append(inspect.Parameter(name, kind, default=default, annotation=annotation))
    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in options}
    return run


def _documented(text: str) -> dict[str, str]:
    """What the Parameters section of a numpy docstring says, by name; a line may name several."""
    section = text.split("Parameters\n----------\n", 1)[-1].split("\n\n", 1)[0]
    told = {}
    for names, said in re.findall(r"^([\w, ]+) : [^\n]*\n((?:    .*\n?)+)", section, re.MULTILINE):
        for name in names.split(", "):
            told[name] = " ".join(said.split())
    return told


def _list(*, as_json: bool) -> None:
    rows = [{"name": name, "title": _title(form)} for name, form in MODELS.items()]
    if as_json:
        return _print_json({"version": _native.VERSION, "command": "fanin model --json", "models": rows})
    table = Table(box=None, header_style="bold")
    table.add_column("name", no_wrap=True)
    table.add_column("what it says")
    for row in rows:
        table.add_row(row["name"], row["title"])
    Console(
        file=sys.stdout, width=None if sys.stdout.isatty() else display.WIDTH_WITHOUT_TERMINAL, highlight=False
    ).print(table)
    display.note("fanin model NAME --help says what each takes")
    return None


def _print(model: Model) -> None:
    out = Console(
        file=sys.stdout, width=None if sys.stdout.isatty() else display.WIDTH_WITHOUT_TERMINAL, highlight=False
    )
    out.print(
        f"{model.title}\n[dim]{', '.join(f'{name} {text}' for name, text in model.inputs.items())}; {model.source}[/dim]"
    )
    table = Table(box=None, header_style="bold")
    for column in ("", "value", "what it is"):
        table.add_column(column, justify="right" if column == "value" else "left", no_wrap=column != "what it is")
    for value in model.values:
        table.add_row(value.name, value.shown(), value.means)
    out.print(table)
    for line in model.notes:
        display.note(line)


def _print_json(thing: dict[str, Any]) -> None:
    json.dump(thing, sys.stdout, allow_nan=False)
    sys.stdout.write("\n")
