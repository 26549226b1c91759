"""The command `fanin linux`: twins into the running kernel and back."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.table import Table

from fanin.errors import EngineError
from fanin.linux import program
from fanin.linux.program import RECEIVERS
from fanin.terminal.display import note

INTERRUPTED = 130
"""Exit code after Ctrl-C."""

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    help="Load fanin's kernel twins into this running Linux, try them, and take them back. Root; docs/linux.md.",
    context_settings={"help_option_names": ["-h", "--help"]},
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON")]
Name = Annotated[str, typer.Argument(help="Algorithm with a twin: trim, gss+dctcp, ... (`fanin list cc`)")]
Device = Annotated[
    str | None,
    typer.Option("--device", metavar="NAME", help="Network device, for a receiver's algorithm: iatcp, ictcp"),
]
Params = Annotated[list[str] | None, typer.Option("--param", help="key=value of the twin (`fanin linux params NAME`)")]


def command(args: list[str]) -> None:
    """Run ``fanin linux ARGS``."""
    if typer.main.get_command(app).main(args=args, prog_name="fanin linux", standalone_mode=False) == INTERRUPTED:
        raise KeyboardInterrupt


@app.command()
def check(as_json: Json = False) -> None:
    """What of loading and measuring works on this host, and why not."""
    answer = program.call("check")
    if as_json:
        return _print(answer)
    table = Table(show_edge=False)
    for column in ("what", "here", "why it matters, or what to do"):
        table.add_column(column)
    for row in answer["checks"]:
        table.add_row(row["what"], "yes" if row["ok"] else "no", row["why"])
    Console().print(table)
    note(f"kernel {answer['kernel']}; congestion controls: {', '.join(answer['available'])}")
    note(answer["note"])
    return None


@app.command()
def load(name: Name, param: Params = None, device: Device = None, as_json: Json = False) -> None:
    """Load a twin; it stays until `unload` or a reboot. No connection uses it until a route or a socket option asks.

    A receiver's algorithm works on a device at once, for connections that open from now on.
    """
    words = [word for setting in param or [] for word in ("--param", setting)]
    answer = program.call("load", name, *words, *_device(device))
    if as_json:
        return _print(answer)
    if "device" in answer:
        note(f"loaded: {name} on {device}, for connections that open from now on; undo: fanin linux unload {name}")
        return None
    note(f"loaded: {answer['loaded']}; give it to a destination: fanin linux route ADDRESS {name}")
    return None


@app.command()
def status(as_json: Json = False) -> None:
    """What is loaded: sockets that use it now, counters, skipped callbacks, and the routes that name it."""
    answer = program.call("status")
    users = subprocess.run(["ss", "-Htin"], capture_output=True, text=True, check=False).stdout
    for row in answer["loaded"]:
        row["sockets_now"] = len(re.findall(rf"\b{row['twin']}\b", users))
    if as_json:
        return _print(answer)
    table = Table(show_edge=False)
    for column in (
        "twin",
        "sockets now",
        "sockets ever",
        "ACKs",
        "reductions",
        "skipped callbacks",
        "probes on time / late",
    ):
        table.add_column(column)
    for row in answer["loaded"]:
        n = row["counters"]
        probes = f"{n['probes_on_time']} / {n['probes_late']}" if "probes_late" in n else ""
        cells = (row["sockets_now"], n["sockets"], n["acks"], n["cuts"], n["skipped_callbacks"], probes)
        table.add_row(row["twin"], *map(str, cells))
        if n["skipped_callbacks"]:
            note(
                f"{row['twin']}: the kernel skipped callbacks, so what was measured with it is invalid (docs/linux.md)"
            )
    if answer["loaded"]:
        Console().print(table)
    if answer["receivers"]:
        Console().print(_receivers(answer["receivers"]))
    if not answer["loaded"] and not answer["receivers"]:
        note("nothing of fanin's is loaded")
    for change in answer["changes"]:
        if "route" in change:
            note(f"route: {change['route']} -> {', '.join(change['now']) or 'gone'}")
        elif "sysctl" in change:
            note(f"{change['sysctl']} = {change['now']}, was {change['before']}")
    if answer["trial"]:
        note(f"a trial of {answer['trial']['destination']} runs (process {answer['trial']['process']})")
    return None


def _receivers(rows: list[dict[str, Any]]) -> Table:
    table = Table(show_edge=False)
    columns = ("connections", "packets", "windows_rewritten", "of_unknown_connections", "increases", "decreases")
    for column in ("receiver's algorithm", "device", *columns):
        table.add_column(column.replace("_", " "))
    for row in rows:
        table.add_row(row["algorithm"], row["device"], *(str(row["counters"].get(column, "")) for column in columns))
    return table


@app.command()
def unload(
    name: Annotated[str | None, typer.Argument(help="Algorithm or twin")] = None,
    device: Device = None,
    everything: Annotated[bool, typer.Option("--all", help="All of fanin's")] = False,
    as_json: Json = False,
) -> None:
    """Take a twin back, and the routes that name it. Sockets that use it keep it until they close."""
    if (name is None) is not everything:
        raise EngineError("unload takes a NAME or --all")
    answer = program.call("unload", "--all" if everything else str(name), *_device(device))
    if as_json:
        return _print(answer)
    note(f"unloaded: {', '.join(answer['unloaded']) or 'nothing was loaded'}")
    return None


@app.command()
def params(name: Name, as_json: Json = False) -> None:
    """The parameters of a twin, with their defaults."""
    answer = program.call("params", name)
    if as_json:
        return _print(answer)
    for row in answer["params"]:
        print(f"{row['name']} = {row['default']}")
    return None


@app.command()
def route(
    destination: Annotated[str, typer.Argument(help="Address of one host")],
    name: Annotated[str | None, typer.Argument(help="Loaded twin, or a congestion control of the kernel")] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Take the route back")] = False,
) -> None:
    """Give new connections to one destination a congestion control; the system's default stays as it is."""
    if (name is None) is not undo:
        raise EngineError("route takes ADDRESS NAME, or ADDRESS --undo")
    if name is None:
        program.call("undo", destination)
        return note(f"undone: the route to {destination}")
    loaded = {row["algorithm"]: row["twin"] for row in program.call("status")["loaded"]}
    linux = loaded.get(name, name)
    program.call("route", destination, "congctl", linux)
    return note(f"{destination} -> {linux}, for new connections; undo: fanin linux route {destination} --undo")


@app.command(name="trial")
def trial_(
    destination: Annotated[str, typer.Argument(help="Address of one host")],
    name: Name,
    limit: Annotated[str, typer.Option("--for", help="How long at most, as 90s or 10m")] = "10m",
    margin: Annotated[
        float, typer.Option(help="Stop when p99 RTT or retransmissions reach this many times those before")
    ] = 1.5,
    param: Params = None,
    as_json: Json = False,
) -> None:
    """Load a twin, give it one destination, watch its sockets, and take everything back: at the end, or as soon as it gets worse."""
    if name in RECEIVERS:
        raise EngineError(
            f"{name} is a receiver's algorithm, for a device and not for a destination: "
            f"fanin linux load {name} --device NAME, and fanin linux unload {name}"
        )
    signal.signal(signal.SIGTERM, _end)
    words = ["trial", destination, "--twin", name, "--for", limit, "--margin", f"{margin:g}"]
    words += [word for setting in param or [] for word in ("--param", setting)]
    code, answer = program.watched(*words, say=note)
    if code:
        note(f"interrupted: taken back after {answer['seconds']} s, the twin and the route")
        sys.exit(INTERRUPTED)
    if as_json:
        return _print(answer)
    note(
        f"taken back after {answer['seconds']} s" + (f": {answer['stopped']}" if answer["stopped"] else ", at its end")
    )
    before, worst = answer["before"], answer["worst"]
    if before["sockets"]:
        was, is_ = (one["retransmitted"] / max(1, one["sent"]) for one in (before, worst))
        note(
            f"p99 RTT {before['p99_rtt_ms']:g} ms before, {worst['p99_rtt_ms']:g} ms at worst; "
            f"retransmitted {was:.2%} before, {is_:.2%} at worst"
        )
    if not answer["used"]:
        note(
            f"nothing was tried: no new connection to {destination} was seen, and those that were open keep what they had"
        )
    elif answer["keep"]:
        note(f"{answer['used']} connections at once had {answer['twin']}; {answer['keep']} keep it until they close")
    else:
        note(f"{answer['used']} connections at once had {answer['twin']}, none has it now")
    return None


def _device(name: str | None) -> list[str]:
    return [] if name is None else ["--device", name]


def _end(*_: object) -> NoReturn:
    """SIGTERM ends a trial as Ctrl-C does: what was done is undone on the way out."""
    raise KeyboardInterrupt


def _print(answer: dict[str, Any]) -> None:
    print(json.dumps(answer, indent=2))
