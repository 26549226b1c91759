"""The command ``fanin compare``: what is between its options and :func:`fanin.compare`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fanin.terminal.answer import print_json

if TYPE_CHECKING:
    from fanin.comparison.result import CompareResult


def command(
    capture: Path,
    rack: Path | None,
    *,
    cc: str | None,
    vary: list[str] | None,
    out: Path | None,
    pcap: Path | None,
    plan: Path | None,
    as_json: bool,
    line: str,
    **options: Any,
) -> int:
    """Compare, print, write the report; returns the exit code."""
    from contextlib import nullcontext

    from fanin import report
    from fanin.comparison import compare
    from fanin.disk.files import output_folder
    from fanin.process.progress import Interrupt
    from fanin.terminal import display

    folder = out or (None if as_json else Path(f"fanin-{stem(capture)}"))
    names = cc.split(",") if cc is not None and cc != "all" else cc
    with output_folder(folder) if folder is not None else nullcontext(None) as scratch:
        result = compare(
            capture,
            rack,
            cc=names,
            vary=_varied(vary),
            pcap=pcap,
            command=line,
            tell=display.note,
            progress=display.Bar,
            **options,
        )
        # From here on Ctrl-C waits: what was simulated is written. A second one leaves at once.
        with Interrupt() as late:
            if scratch is not None and result.ranking:
                with display.Bar("writing the report", 1) as bar:
                    result.write_files(scratch)
                    report.write(result, scratch / "report.html")
                    bar.update(1)
            if as_json:
                print_json(result.to_dict())
            else:
                display.compare_result(result)
            display.compare_notes(result, folder)
            if plan is not None:
                _write_plan(result, plan, [capture, rack, options.get("spans")])
            if late.asked and not result.interrupted:
                display.note("interrupted: everything was run, and is written")
    if pcap is not None:
        display.note(f"captures: {pcap}")
    if result.interrupted or late.asked:
        return 130
    return 1 if result.failures else 0


def _write_plan(result: CompareResult, file: Path, read: Sequence[Path | None]) -> None:
    """The answer's change as a plan for ``fanin-host``, or the sentence why there is none."""
    from fanin.disk.files import write_text
    from fanin.terminal import display

    told = result.verdict.recommendation if result.ranking else None
    if told is None:
        display.note(f"{file} is not written: no change is advised")
    elif told.plan is None:
        display.note(f"{file} is not written: `{told.cc}` is a library in front of the application; type its lines")
    else:
        write_text(told.plan.toml(told.cc), file, "--plan", of=read)
        display.note(f"plan: {file}; on each host `fanin-host apply {file.name}`, and back `fanin-host undo`")


def stem(capture: Path) -> str:
    """A capture's name without its endings."""
    name = "" if str(capture) == "-" else capture.name
    for ending in (".gz", ".pcap", ".pcapng", ".cap"):
        name = name.removesuffix(ending)
    return name or "capture"


def _varied(texts: list[str] | None) -> dict[str, list[str]] | None:
    from fanin.errors import ScenarioError

    varied: dict[str, list[str]] = {}
    for text in texts or []:
        key, equals, values = text.partition("=")
        listed = [value.strip() for value in values.split(",")]
        if not equals or not key.strip() or not all(listed):
            raise ScenarioError(
                f"command line `--vary {text}`: write KEY=VALUE,VALUE,..., as in --vary buffer=50p,100p,400p"
            )
        varied.setdefault(key.strip(), []).extend(listed)
    return varied or None
