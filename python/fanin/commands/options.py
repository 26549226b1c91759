"""Arguments and options that several commands have, each said once."""

from __future__ import annotations

import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


def algorithms(incomplete: str) -> list[str]:
    """For the shell's completion: the algorithms that the last of some names may become."""
    from fanin.registries import entries

    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{entry.name}" for entry in entries("cc") if entry.name.startswith(last)]


def confirmed(text: str) -> int:
    """How many are confirmed.

    Examples
    --------
    >>> confirmed("kernel"), confirmed("3")
    (1, 3)
    """
    from fanin.errors import ScenarioError

    if text == "kernel":
        return 1
    if not (text.isascii() and text.isdigit()) or len(text) > MOST_DIGITS:
        raise ScenarioError(f"command line `--confirm {text}`: it must be a whole number, or kernel")
    return int(text)


MOST_DIGITS = 6
"""More algorithms than any registry has."""


class RankOf(StrEnum):
    """What is ranked by its completion time; as :data:`fanin.statistics.ranking.RankOf`, which would load too much here."""

    trees = "trees"
    requests = "requests"
    stages = "stages"
    responses = "responses"


class Engine(StrEnum):
    """Whose TCP runs; as :data:`fanin.runs.engines.ENGINES`."""

    sim = "sim"
    kernel = "kernel"
    kernel_hz1000 = "kernel-hz1000"
    kernel_fanin = "kernel-fanin"
    testbed = "testbed"
    testbed_http = "testbed-http"


RankOfOption = Annotated[
    RankOf | None,
    typer.Option(
        "--rank-of",
        help="What is ranked by its completion time. A request or stage ends with its slowest response, a request tree with the client's "
        "[default: trees where most of the capture is of some, else requests, else responses].",
        show_default=False,
    ),
]
ConfirmOption = Annotated[
    str,
    typer.Option(
        "--confirm",
        metavar="N",
        help="Run the N best and the current setting again on real Linux TCP in virtual time (`fanin kernel build`), whose answer is taken; 0 runs "
        "nothing, `kernel` is 1.",
    ),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON object instead of tables (schemas: docs/json).")
]
# Whether a file can be read is said by who reads it, with what to do next; not by Typer.
CaptureArgument = Annotated[
    Path,
    typer.Argument(
        metavar="CAPTURE",
        help="pcap or pcapng file, plain or gzip; - reads standard input.",
        show_default=False,
        readable=False,
    ),
]
RackOption = Annotated[
    Path | None,
    typer.Option(
        "--rack",
        metavar="RACK.toml",
        help="The rack: link rate, delay, buffer, K [default: proposed from the capture, see `fanin rack`].",
        show_default=False,
        readable=False,
    ),
]


def settings_of(texts: list[str] | None, example: str = "topology.buffer=250p") -> dict[str, str]:
    """What ``--set KEY=VALUE`` says, by key."""
    from fanin.errors import ScenarioError

    settings = {}
    for text in texts or []:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            lacks = "names no key" if equals else "has no `=`"
            raise ScenarioError(f"command line `--set {text}`: it {lacks}; write KEY=VALUE, as in --set {example}")
        settings[key.strip()] = value.strip()
    return settings


def command_line() -> str:
    """The command line that does the same again."""
    from fanin.disk.files import shown

    return shown(shlex.join(["fanin", *sys.argv[1:]]))
