"""The command `fanin model`: a sub-command per closed form of :mod:`fanin.models`."""

from __future__ import annotations

import inspect
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from fanin import _native, models
from fanin.models import MODELS, Model
from fanin.pictures.files import save
from fanin.terminal import display
from fanin.terminal.answer import print_json


def _title(form: Callable[..., Model]) -> str:
    return (inspect.getdoc(form) or "").split("\n")[0]


app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(help="The papers' closed forms. Quantities have units: 10Gbps, 100us, 250p (packets), 64KB.")
def _forms() -> None: ...


def command(args: list[str]) -> None:
    """Run ``fanin model ARGS``; without a name, list the forms."""
    if args in ([], ["--json"]):
        return _list(as_json=bool(args))
    forms().main(args=args, prog_name="fanin model", standalone_mode=False)
    return None


def forms() -> Any:
    """The command with one sub-command per closed form."""
    return typer.main.get_command(app)


# The rate of the bottleneck is as naturally called its link.
Rate = Annotated[str, typer.Option("--link", "--rate", help="Rate of the bottleneck.")]
Rtt = Annotated[str, typer.Option(help="Round trip without queueing.")]
Buffer = Annotated[str, typer.Option(help="Buffer of the bottleneck port, packets or bytes.")]
Packet = Annotated[str, typer.Option(help="Size of a packet on the wire.")]
Out = Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Draw the curve: svg, png, pdf or html.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]


@app.command(help=_title(models.trim_k))
def trim_k(
    *, rate: Rate, rtt: Rtt, buffer: Buffer, packet: Packet = "1500B", out: Out = None, as_json: Json = False
) -> None:
    _show(models.trim_k(rate, rtt, buffer, packet), out, as_json=as_json)


@app.command(help=_title(models.trim_as))
def trim_as(
    *,
    rate: Rate,
    buffer: Buffer,
    connections: Annotated[float, typer.Option(help="Connections that resume at once.")],
    window: Annotated[float, typer.Option(help="Packets that each resumes with.")],
    packet: Packet = "1500B",
    out: Out = None,
    as_json: Json = False,
) -> None:
    _show(models.trim_as(rate, buffer, connections, window, packet), out, as_json=as_json)


@app.command(help=_title(models.gss_incast))
def gss_incast(
    *,
    rate: Rate,
    rtt: Rtt,
    buffer: Buffer,
    flows: Annotated[float, typer.Option(help="Flows whose probability is stated.")] = 65,
    most: Annotated[float, typer.Option(help="The curve goes from 1 flow to this many.")] = 150,
    packet: Packet = "1500B",
    out: Out = None,
    as_json: Json = False,
) -> None:
    _show(models.gss_incast(rate, rtt, buffer, flows, most, packet), out, as_json=as_json)


@app.command(help=_title(models.rand_enqueue))
def rand_enqueue(
    *,
    rmin: Annotated[int, typer.Option(help="Least payload in bytes; equal to the greatest: ordinary TCP.")] = 1,
    mss: Annotated[int, typer.Option(help="Greatest payload in bytes.")] = 1448,
    trials: Annotated[int, typer.Option(help="Number of trials.")] = 100_000,
    seed: Annotated[int, typer.Option(help="Seed of the random numbers.")] = 1,
    out: Out = None,
    as_json: Json = False,
) -> None:
    _show(models.rand_enqueue(rmin, mss, trials, seed), out, as_json=as_json)


@app.command(help=_title(models.rand_rmin))
def rand_rmin(
    *,
    epoch: Annotated[float, typer.Option(help="Window after the last reduction, packets.")],
    wmax: Annotated[float, typer.Option(help="Window at the last reduction, packets.")],
    mss: Annotated[int, typer.Option(help="Greatest payload in bytes.")] = 1460,
    sigma2: Annotated[float, typer.Option(help="Variance of the normal curve.")] = 1.0,
    mu: Annotated[float, typer.Option(help="Mean of the normal curve.")] = 1.0,
    tau: Annotated[float, typer.Option(help="Where randomness begins; 1: at the epoch's window, inf: at wmax.")] = 1.0,
    omega: Annotated[float, typer.Option(help="Where randomness ends; 1: as far beyond wmax, 0: never.")] = 1.0,
    theta: Annotated[float, typer.Option(help="Least payload of all, bytes.")] = 200.0,
    out: Out = None,
    as_json: Json = False,
) -> None:
    _show(models.rand_rmin(epoch, wmax, mss, sigma2, mu, tau, omega, theta), out, as_json=as_json)


@app.command(help=_title(models.dctcp_k))
def dctcp_k(
    *,
    rate: Rate,
    rtt: Rtt,
    flows: Annotated[float, typer.Option(help="Synchronised long flows.")] = 2,
    k: Annotated[str | None, typer.Option(help="Threshold, packets or bytes [default: the least one].")] = None,
    packet: Packet = "1500B",
    out: Out = None,
    as_json: Json = False,
) -> None:
    _show(models.dctcp_k(rate, rtt, flows, k, packet), out, as_json=as_json)


@app.command(help=_title(models.iatcp_window))
def iatcp_window(
    *,
    rate: Rate,
    rtt: Rtt,
    connections: Annotated[float, typer.Option(help="Connections that send.")],
    rounding: Annotated[
        str, typer.Option(help="Rounding of a share to whole packets: nearest, down or up.")
    ] = "nearest",
    packet: Packet = "1500B",
    out: Out = None,
    as_json: Json = False,
) -> None:
    _show(models.iatcp_window(rate, rtt, connections, rounding, packet), out, as_json=as_json)


def _show(result: Model, out: Path | None, *, as_json: bool) -> None:
    chart = result.chart()
    if out is not None:
        if chart is None:
            raise typer.BadParameter(f"{result.name} has no curve to draw", param_hint="--out")
        save(chart, out)
    if as_json:
        print_json({"command": shlex.join(["fanin", *sys.argv[1:]]), **result.to_dict()})
    else:
        _print(result)
    if out is not None:
        display.note(f"picture: {out}")


def _list(*, as_json: bool) -> None:
    rows = [{"name": name, "title": _title(form)} for name, form in MODELS.items()]
    if as_json:
        return print_json({"version": _native.VERSION, "command": "fanin model --json", "models": rows})
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
