"""Tables and progress bars of the command: results on standard output, everything else on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as RichProgress
from rich.segment import Segment
from rich.table import Table

from fanin.terminal.fitting import fitted
from fanin.terminal.markup import escape
from fanin.terminal.ranking_table import ranking_table
from fanin.words.explain import explanations
from fanin.words.text import harmless, number, shortening

if TYPE_CHECKING:
    import polars as pl

    from fanin._native import Replay
    from fanin.advice import Advice
    from fanin.capture.fitness import Fitness
    from fanin.capture.traffic import TrainsResult
    from fanin.comparison.result import CompareResult
    from fanin.registries import Entry
    from fanin.simulation import RunResult
    from fanin.words.verdict import Confirmation, Verdict

WIDTH_WITHOUT_TERMINAL = 200
"""A table that goes to a file or a pipe is not folded at 80 columns."""

MOST_ROWS = 20
"""Longer lists are cut on the terminal, and say so; `--json` has them whole."""


class _Terminal(Console):
    """Titles, names and paths come from files of others: nothing in them steers the terminal."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            # Those of a progress bar move the cursor.
            yield segment if segment.control else Segment(harmless(segment.text), segment.style)


def _out() -> Console:
    terminal = sys.stdout.isatty()
    return _Terminal(file=sys.stdout, width=None if terminal else WIDTH_WITHOUT_TERMINAL, highlight=False)


def _err() -> Console:
    terminal = sys.stderr.isatty()
    return _Terminal(file=sys.stderr, width=None if terminal else 10_000, highlight=False)


def output() -> Console:
    """Standard output, for tables of other modules."""
    return _out()


class Bar:
    """A progress bar on standard error with an estimate of the time left; silent where there is no terminal."""

    def __init__(self, title: str, total: int) -> None:
        columns = [TextColumn("{task.description}"), BarColumn(), TaskProgressColumn()]
        if total > 1:
            columns.append(MofNCompleteColumn())
        columns += [TextColumn("elapsed"), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn()]
        console = _err()
        self._bar = RichProgress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._bar.add_task(escape(title), total=total)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self._bar.stop()

    def update(self, done: float) -> None:
        """Show that so much is done."""
        self._bar.update(self._task, completed=done)

    def retitle(self, title: str) -> None:
        """Show another title."""
        self._bar.update(self._task, description=escape(title))


def print_table(table: Table) -> None:
    """A table on standard output."""
    _print(_out(), table)


def note(text: str) -> None:
    """A note for the user, one line on standard error."""
    _err().print(escape(text), soft_wrap=True)


def fitness(file: str, found: Fitness) -> None:
    """Say first whether a capture is fit to judge by."""
    style = None if found.verdict == "fit" else "bold yellow"
    _out().print(f"{escape(Path(file).name)}: {escape(found.sentence)}", style=style, soft_wrap=True)


# ---- compare


def compare_result(result: CompareResult) -> None:
    """Print the answer, what to type, and the ranking beside what the capture measured."""
    out = _out()
    if result.capture.fitness is not None:
        fitness(result.capture.file, result.capture.fitness)
    if result.ranking:
        verdict = result.verdict
        _answer(out, verdict, verdict.support)
    out.print(ranking_table(result, out.width))
    _why_slow(out, result)
    if result.confirmation is not None:
        _print(out, _confirmation_table(result, result.confirmation))
    if result.variations:
        _print(out, _variations_table(result))
    out.print(
        "(low–high): 95% confidence interval over seeds; times are geometric means, counts means per run. Rows between two rules cannot be "
        "told apart by their paired differences. "
        + ("needs ECN: the switch must mark, at the rack's K. " if any(r.needs_ecn for r in result.ranking) else "")
        + ("measured: in the capture itself." if result.measured else ""),
        style="dim",
    )


def _why_slow(out: Console, result: CompareResult) -> None:
    """Why the slowest response was slow, for the baseline and what leads."""
    if not result.ranking:
        return
    wanted = {result.baseline, result.verdict.best, result.ranking[0].cc}
    for told in explanations(result):
        if told.cc in wanted:
            out.print(f"{escape(told.cc)}'s slowest response (seed {result.trace_seed}): {escape(told.sentence)}")


def _confirmation_table(result: CompareResult, found: Confirmation) -> Table:
    """Both engines side by side."""
    from fanin.words.verdict import STATISTIC_NAMES

    by = result.rank_by
    # What the answer was to gain at, so that it follows from these numbers.
    gained = result.decision.by if result.decision is not None else ("mean",)
    shown = [name for name in dict.fromkeys((*gained, by, "p99_9")) if name in STATISTIC_NAMES]
    table = Table(title=f"Simulated, and on {found.label}; ms", title_justify="left")
    table.add_column("algorithm", no_wrap=True)
    for name in shown:
        for where in ("sim", "there"):
            table.add_column(f"{STATISTIC_NAMES[name]} {where}", justify="right", no_wrap=True)
    for column in (f"times {result.baseline} sim", "there", "timeouts sim", "there"):
        table.add_column(column, justify="right", no_wrap=True)
    for row in found.rows:
        sides = [row["simulated"], row["there"]]
        cells = [_plain_number(side and side[name]["value"]) for name in shown for side in sides]
        ratios = ["-" if not side or not side["times_baseline"] else _ratio_of(side) for side in sides]
        counts = [_plain_number(side and side["timeouts"]) for side in sides]
        table.add_row(escape(row["cc"]), *cells, *ratios, *counts)
    return table


def _plain_number(value: float | None) -> str:
    from fanin.words.text import significant

    return "-" if value is None else significant(value)


def _ratio_of(side: dict[str, Any]) -> str:
    sure = side["p"] is not None and side["p"] < 0.05
    return _plain_number(side["times_baseline"]["value"]) + ("*" if sure else "")


def _variations_table(result: CompareResult) -> Table:
    """The answer on each other rack: one for all that reproduce the capture, each one's own where they were asked for."""
    title = (
        "The answer on other racks that reproduce the capture" if result.variations[0].outcomes else "On other racks"
    )
    table = Table(title=title, title_justify="left")
    keys = list(result.variations[0].settings)
    for key in keys:
        table.add_column(key.removeprefix("rack."), justify="right", no_wrap=True)
    table.add_column("advised", no_wrap=True)
    table.add_column(f"{result.baseline or 'baseline'} ms", justify="right", no_wrap=True)
    table.add_column("advised ms", justify="right", no_wrap=True)
    table.add_column("gain", no_wrap=True)
    same = result.verdict.best
    for v in result.variations:
        gain = "kept" if v.keeps(result.baseline) else "-" if v.ratio is None else shortening(1.0, v.ratio)
        table.add_row(
            *(escape(v.settings[key]) for key in keys),
            escape(v.best or "-"),
            number(v.baseline_ms),
            number(v.best_ms),
            gain,
            style=None if v.best == same else "yellow",
        )
    return table


def _answer(out: Console, answer: Verdict | Advice, sentences: Iterable[str]) -> None:
    """The first screen: what to do, the lines that try it and take it back, and what else one needs before acting on it."""
    out.print(f"[bold]{escape(answer.headline)}[/bold]")
    told = answer.recommendation
    if told is not None:
        out.print("\nTry it on one server, for new connections of this service:")
        _commands(out, told.trial)
        if told.at_aggregator:
            out.print("on the aggregator:")
            _commands(out, told.at_aggregator)
        out.print("Take it back:")
        _commands(out, told.undo)
        if told.undo_at_aggregator:
            out.print("on the aggregator:")
            _commands(out, told.undo_at_aggregator)
        out.print()
    for sentence in sentences:
        out.print(escape(sentence))
    if told is not None:
        for need in told.needs:
            out.print(escape(need))
        out.print("For all of a host's new connections, and back:")
        _commands(out, (told.everywhere, told.undo_everywhere))
        out.print("See whether it is in use:")
        _commands(out, (told.check,))
    out.print()


def _commands(out: Console, lines: Iterable[str]) -> None:
    """Lines to be typed: never folded, so that they can be copied."""
    for line in lines:
        out.print(f"    {line}", soft_wrap=True, markup=False)


def compare_notes(result: CompareResult, folder: Path | None) -> None:
    """Say what surrounds the ranking: failures, what is missing, where the report is."""
    capture = result.capture
    found = "found" if capture.aggregator_found else "as given"
    note(
        f"{capture.file}: {_counted(capture.responses, 'response')} of {_counted(len(capture.servers), 'server')} to "
        f"{capture.aggregator} ({found}); seeds {_span(result.seeds)}; ranked by {result.rank_by.replace('_', '.')}"
    )
    for warning in result.warnings:
        note(f"warning: {warning}")
    for warning in capture.warnings:
        note(f"warning: {warning}")
    for text in result.notes:
        note(f"note: {text}")
    if result.found:
        note(f"note: {result.found} of {result.runs.height} runs were in the store and not made again")
    for failure in result.failures:
        note(f"error: `{failure.cc}` is not ranked: {failure.message}")
    if result.interrupted:
        parts = [f"{cc} (seeds {_span(seeds)})" for cc, seeds in _by_first(result.missing)]
        note(f"interrupted: not run: {', '.join(parts)}")
    if folder is not None and result.ranking:
        note(f"report: {folder / 'report.html'}")
        if result.rack_proposed:
            note(f"rack: {folder / 'rack.toml'}, proposed from the capture; edit it and compare again with --rack")


def advice_result(advice: Advice) -> None:
    """Print what is advised, where it hurts, and how to try it."""
    capture = advice.comparison.capture
    if capture.fitness is not None:
        fitness(capture.file, capture.fitness)
    _answer(_out(), advice, [*advice.confidence, *advice.hurts, *advice.coexistence])


# ---- trains


def trains_result(result: TrainsResult) -> None:
    """Print connections and distributions."""
    out = _out()
    fitness(result.summary["file"], result.fitness)
    table = Table(title=f"Connections of {escape(Path(result.summary['file']).name)}", title_justify="left")
    for title, justify in (("connection", "right"), ("client", "left"), ("server", "left"), ("turns", "right")):
        table.add_column(title, justify=justify)  # type: ignore[arg-type]
    for title in ("packets →", "bytes →", "retrans. →", "packets ←", "bytes ←", "retrans. ←", "RTT ms"):
        table.add_column(title, justify="right")
    for c in result.heaviest(MOST_ROWS):
        there, back = c["to_server"], c["to_client"]
        rtt = c["handshake_rtt_ns"] or back["min_rtt_ns"] or there["min_rtt_ns"]
        table.add_row(
            str(c["connection"]),
            _address(c["client_ip"], c["client_port"]),
            _address(c["server_ip"], c["server_port"]),
            str(c["turns"]),
            *(text for side in (there, back) for text in _direction(side)),
            number(None if rtt is None else rtt / 1e6),
        )
    _print(out, table)
    if len(result.connections) > MOST_ROWS:
        out.print(f"the {MOST_ROWS} with the most payload, of {len(result.connections)}; --json has all")

    table = Table(title=f"Packet trains (a gap ends one: {escape(result.gap)})", title_justify="left")
    for title in ("direction", "trains", "of", "mean", "p10", "p50", "p90", "p99", "max"):
        table.add_column(title, justify="left" if title in {"direction", "of"} else "right")
    for direction, told in result.distributions().items():
        name = "to the client ←" if direction == "to_client" else "to the server →"
        for column, title in (("bytes", "bytes"), ("packets", "packets"), ("gap_before_ms", "gap before, ms")):
            values = (told[column][key] for key in ("mean", "p10", "p50", "p90", "p99", "p100"))
            first = column == "bytes"
            table.add_row(name if first else "", str(told["trains"]) if first else "", title, *map(number, values))
    _print(out, table, keys=3)


def trains_notes(result: TrainsResult, folder: Path | None) -> None:
    """Say what surrounds the tables: warnings, damage, where the files are."""
    s = result.summary
    note(
        f"{s['file']}: {s['format']}, {s['packets']} packets, {s['tcp_packets']} of them TCP, {s['connections']} connections, "
        f"{s['payload_bytes']} B of payload in {s['duration_ns'] / 1e9:g} s"
    )
    for warning in result.warnings:
        note(f"warning: {warning['message']}")
    if result.partial is not None:
        note(f"partial: {result.partial['message']}")
    if folder is not None:
        note(f"written: {folder}")


def requests_notes(replay: Replay) -> None:
    """Say which requests were read, and what they are not."""
    from fanin.capture import closing, waiting

    for wrong in closing.doubts(replay).values():
        note(f"warning: {wrong}")
    for sentence in [*waiting.sentences(waiting.groups(replay)), *closing.sentences(replay)]:
        note(f"note: {sentence}")


def _direction(side: dict[str, Any]) -> tuple[str, str, str]:
    """Packets, bytes, and packets sent again: those whose first copy passed the tap, and those whose first copy was lost before it."""
    again = side["retransmitted_packets"] + side["refilled_packets"]
    return str(side["packets"]), str(side["payload_bytes"]), str(again)


# ---- run


def run_result(result: RunResult) -> None:
    """Print messages by class, ports, and flows as totals."""
    import polars as pl

    out = _out()
    table = Table(title=escape(result.title or result.scenario), title_justify="left")
    titles = ("algorithm", "seed", "class", "messages", "finished", "mean ms", "p50", "p95", "p99", "p99.9", "timeouts")
    for title in titles:
        table.add_column(title, justify="left" if title in {"algorithm", "class"} else "right")
    summary = result.summary()
    for row in summary.head(MOST_ROWS).iter_rows(named=True):
        values = (row[f"{name}_ms"] for name in ("mean", "p50", "p95", "p99", "p99_9"))
        cells = (row["cc"], str(row["seed"]), row["class"], str(row["messages"]), str(row["finished"]))
        table.add_row(*map(escape, cells), *map(number, values), str(row["timeouts"]))
    _print(out, table, keys=3)

    totals = result.flows.group_by("cc", "seed", "class", maintain_order=True).agg(
        flows=pl.len(),
        delivered_B=pl.col("bytes_delivered").sum(),
        retrans=pl.col("retransmissions").sum(),
        timeouts=pl.col("timeouts").sum(),
        drops=pl.col("drops").sum(),
        marks=pl.col("marks").sum(),
        mean_Mbps=pl.col("goodput_bps").mean() / 1e6,
        max_cwnd=pl.col("max_cwnd").max(),
    )
    _print(out, _frame_table("Flows", totals), keys=3)

    busy = (
        result.ports.filter((pl.col("drops") > 0) | (pl.col("marks") > 0) | (pl.col("max_queue_packets") > 1))
        .sort("max_queue_packets", descending=True, maintain_order=True)
        .select(
            *("cc", "seed", "port", "packets", "drops", "marks"),
            queue_mean="mean_queue_packets",
            queue_p99="p99_queue_packets",
            queue_max="max_queue_packets",
            utilisation="utilisation",
        )
    )
    _print(out, _frame_table("Ports with a queue", busy), keys=3)
    if result.testbed.height:
        columns = ("cc", "seed", "released", "achieved_mbps", "late", "late_mean_us", "late_max_us", "stalls")
        shown = (*columns, "longest_stall_ms", "misordered", "skipped_callbacks")
        out.print(_frame_table("How honest the testbed was", result.testbed.select(shown)))
    if max(summary.height, totals.height, busy.height) > MOST_ROWS:
        out.print(f"each table shows at most {MOST_ROWS} rows; --json and --out have all")


def _print(out: Console, table: Table, *, keys: int = 1) -> None:
    """Print a table, in parts where it is wider than the terminal."""
    for part in fitted(table, out.width, keys):
        out.print(part)


def _frame_table(title: str, rows: pl.DataFrame) -> Table:
    """The first rows of a frame as a table."""
    table = Table(title=title, title_justify="left")
    for name, kind in rows.schema.items():
        heading = "algorithm" if name == "cc" else name.replace("_", " ")
        table.add_column(heading, justify="left" if kind.is_numeric() is False else "right")
    for cells in rows.head(MOST_ROWS).rows():
        table.add_row(*(escape(cell) if isinstance(cell, str) else number(cell) for cell in cells))
    return table


def run_notes(result: RunResult, folder: Path | None) -> None:
    """Say what surrounds the tables."""
    note(f"{result.scenario}: scenario {result.scenario_hash[:12]}")
    for warning in result.warnings:
        note(f"warning: {warning}")
    for text in result.notes:
        note(f"note: {text}")
    for failure in result.failures:
        note(f"error: `{failure.cc}` is left out: {failure.message}")
    if result.interrupted:
        parts = [f"{cc} (seeds {_span(seeds)})" for cc, seeds in _by_first(result.missing)]
        note(f"interrupted: not run: {', '.join(parts)}")
    if folder is not None:
        note(f"written: {folder}")


# ---- list


def entries(kind: str, found: list[Entry]) -> None:
    """Print a registry."""
    table = Table(show_edge=False, title_justify="left")
    table.add_column("name", no_wrap=True)
    table.add_column("what")
    if kind == "cc":
        table.add_column("needs")
        table.add_column("on Linux")
    table.add_column("settings" if kind != "paper" else "proposes")
    table.add_column("source")
    for entry in found:
        details: dict[str, Any] = entry.details
        cells = [entry.name, entry.title]
        if kind == "cc":
            needs = ["switch (ECN)"] if details["needs_ecn"] else []
            needs += [] if details["stands_alone"] else ["a sender, as in " + entry.name + "+newreno"]
            cells.append(", ".join(needs))
            cells.append(details["deploy"])
        cells.append(details.get("proposes") or ", ".join(key["name"] for key in details.get("keys", [])))
        table.add_row(*map(escape, cells), escape(entry.source))
    _out().print(table)
    if kind == "cc":
        note(
            "on Linux: kernel = as it is; twin = fanin-host load NAME; "
            "application shim = a library in front of the sender (docs/linux.md); receiver shim = fanin-host load NAME --device DEVICE, at the receiver; "
            "its senders must all run Reno, so compare and advise do not propose it"
        )
        note("your own: a Python class in FILE.py of this folder is --cc py:FILE.CLASS (docs/python-algorithms.md)")


# ---- words


def _address(ip: str, port: int) -> str:
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


def _counted(count: int, what: str) -> str:
    """A number of things.

    Examples
    --------
    >>> _counted(1, "server"), _counted(8, "server")
    ('1 server', '8 servers')
    """
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _span(seeds: Iterable[int]) -> str:
    """Numbers in words, three and more in a row by their ends.

    Examples
    --------
    >>> _span([1, 2, 3]), _span([4, 1]), _span([7, 9, 10, 11, 12])
    ('1 to 3', '1, 4', '7, 9 to 12')
    """
    rows: list[list[int]] = []
    for each in sorted(seeds):
        if rows and each == rows[-1][-1] + 1:
            rows[-1].append(each)
        else:
            rows.append([each])
    return ", ".join(f"{row[0]} to {row[-1]}" if len(row) > 2 else ", ".join(map(str, row)) for row in rows)


def _by_first(pairs: Iterable[tuple[str, int]]) -> list[tuple[str, list[int]]]:
    groups: dict[str, list[int]] = {}
    for first, second in pairs:
        groups.setdefault(first, []).append(second)
    return list(groups.items())
