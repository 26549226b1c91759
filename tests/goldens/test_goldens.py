"""Every number of many scenarios, kept: a change that should move none proves it here, one that should shows what it moved.

``goldens.csv`` has a line per scenario: how far it is run, what happened in words a reader knows, and a digest of every column of every
table (packet traces aside). ``columns.csv`` names the digested columns, so that a new column alone changes no digest until the next
``make goldens``, which writes both files anew.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
import tomllib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import polars as pl
import pytest
from fanin import _native
from fanin.errors import ScenarioError

from . import generated

if TYPE_CHECKING:
    from fanin._native import Run

T = TypeVar("T")
HERE = Path(__file__).parent
ROOT = HERE.parents[1]
GOLDENS = HERE / "goldens.csv"
COLUMNS = HERE / "columns.csv"

TABLES = ("messages", "flows", "ports", "background", "queue", "window", "throughput", "internals")
READABLE = ("messages", "done", "p50_us", "p99_us", "hops", "drops", "marks", "retransmissions", "timeouts")

ENDS = (3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000)
"""Ends that a scenario may be shortened to, ms."""

SHORTER = {
    "examples/dctcp_convergence.toml": ("workload[0].step", '"50ms"'),
    "examples/tcprand_convergence.toml": ("workload[0].step", '"50ms"'),
    "papers/dctcp_reproduction/convergence.toml": ("workload[0].step", '"50ms"'),
    "papers/tcprand/convergence.toml": ("workload[0].step", '"50ms"'),
    "examples/trim_convergence.toml": ("workload[0].step", '"100ms"'),
    "papers/trim/fig9.toml": ("workload[0].stagger", '"10ms"'),
}
"""Scenarios that begin one flow after another over minutes: sooner here."""

HOPS = 250_000
"""A scenario of the repository is shortened to about this many packet-hops."""

HOPS_OF_GENERATED = 40_000
"""The same for a generated one: there are many."""

CAPTURE = "tests/data/pcap/memcached_incast_8to1.pcap.gz"
REPLAYED = ("reno", "cubic", "dctcp", "trim", "gss+newreno", "bbr")
"""Algorithms under which a capture is replayed on the rack of the examples."""


@dataclass(frozen=True, slots=True)
class Case:
    """One scenario with one seed."""

    name: str
    make: Callable[[str], Run]
    hops: int


def cases() -> Iterator[Case]:
    """Give every scenario: the shipped ones, the papers', the replays, the generated ones."""
    files = [*ROOT.glob("examples/*.toml"), *ROOT.glob("papers/**/*.toml")]
    for path in sorted(files):
        if "workload" in tomllib.loads(path.read_text(encoding="utf-8")):
            yield Case(str(path.relative_to(ROOT)), _from_file(path), HOPS)
    for cc in REPLAYED:
        yield Case(f"replay {cc}", _replay(cc), HOPS)
    for number in range(generated.COUNT):
        yield Case(f"generated {number}", _from_text(number), HOPS_OF_GENERATED)


def _shortened(scenario: _native.Scenario, end: str, settings: list[tuple[str, str]]) -> Run:
    ended = [("run.duration", f'"{end}"')] if end else []
    changed = scenario.changed(settings=[*ended, *settings])
    return changed.plan(changed.seeds()[0]).run()


def _from_file(path: Path) -> Callable[[str], Run]:
    sooner = SHORTER.get(str(path.relative_to(ROOT)))
    return lambda end: _shortened(_native.Scenario.from_file(path), end, [sooner] if sooner else [])


def _from_text(number: int) -> Callable[[str], Run]:
    name = f"generated {number}"
    return lambda end: _shortened(_native.Scenario.from_text(generated.scenario(number), name), end, [])


def _replay(cc: str) -> Callable[[str], Run]:
    def run(end: str) -> Run:
        settings = [("replay.duration", f'"{end}"')] if end else []
        rack = _native.Rack.from_file(ROOT / "examples/rack.toml", settings)
        return rack.plan(_native.analyse(ROOT / CAPTURE).workload(), cc, 1, trace=True).plan.run()

    return run


Columns = dict[str, list[str]]
"""The digested columns of each table."""


def digest(frames: dict[str, pl.DataFrame], columns: Columns) -> str:
    """Digest every listed column: 16 hexadecimal digits."""
    sha = hashlib.sha256()
    for table, frame in frames.items():
        sha.update(f"{table} {frame.height}\n".encode())
        out = io.BytesIO()
        frame.select(columns[table]).write_csv(out)
        sha.update(out.getvalue())
    return sha.hexdigest()[:16]


def row(case: Case, end: str, run: Run, columns: Columns | None) -> dict[str, str]:
    """Say in words and digits what a run did."""
    frames = {table: pl.DataFrame(run.table(table)) for table in TABLES}
    listed = columns or {table: frame.columns for table, frame in frames.items()}
    messages, flows, ports = frames["messages"], frames["flows"], frames["ports"]
    took = (messages["done_ps"] - messages["release_ps"]).drop_nulls()

    def quantile(q: float) -> str:
        value = took.quantile(q, "nearest")
        return "" if value is None else f"{value / 1e6:.3f}"

    numbers = {
        "messages": messages.height,
        "done": took.len(),
        "p50_us": quantile(0.5),
        "p99_us": quantile(0.99),
        "hops": run.packet_hops,
        "drops": ports["drops"].sum(),
        "marks": ports["marks"].sum(),
        "retransmissions": flows["retransmissions"].sum(),
        "timeouts": flows["timeouts"].sum(),
    }
    told = {key: str(numbers[key]) for key in READABLE}
    return {"name": case.name, "end": end, **told, "digest": digest(frames, listed)}


def longest_end(case: Case) -> str:
    """Find where to end a scenario, so that it takes no more than its packet-hops; empty: nowhere before its own end."""
    last = None
    for ms in ENDS:
        try:
            run = case.make(f"{ms}ms")
        except ScenarioError:
            continue  # Something begins only later.
        if run.end_ps < ms * 10**9:
            return ""
        if run.packet_hops > case.hops:
            return last or f"{ms}ms"
        last = f"{ms}ms"
    return ""


def on_all_cores(work: Callable[[Case], T], of: list[Case]) -> list[T]:
    """Run `work` on every case; the order stays, and the number of threads changes nothing."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(work, of))


def read(path: Path) -> list[dict[str, str]]:
    """Read a CSV file; none there: no lines."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write(path: Path, rows: list[dict[str, str]]) -> None:
    """Write a CSV file."""
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        out.writeheader()
        out.writerows(rows)


def bless() -> None:
    """Write both files anew. A scenario that is already listed keeps its end."""
    ends = {line["name"]: line["end"] for line in read(GOLDENS)}

    def one(case: Case) -> dict[str, str]:
        end = ends.get(case.name)
        if end is None:
            end = longest_end(case)
        return row(case, end, case.make(end), None)

    all_cases = list(cases())
    write(GOLDENS, on_all_cores(one, all_cases))
    some = all_cases[0].make("300ms")
    write(COLUMNS, [{"table": t, "column": c} for t in TABLES for c in some.table(t).columns])


def test_every_scenario_gives_the_numbers_it_gave_before() -> None:
    if os.environ.get("FANIN_BLESS"):
        bless()
    expected = {line["name"]: line for line in read(GOLDENS)}
    columns: Columns = {table: [] for table in TABLES}
    for line in read(COLUMNS):
        columns[line["table"]].append(line["column"])

    def one(case: Case) -> str | None:
        old = expected.pop(case.name, None)
        if old is None:
            return f"{case.name}: not listed"
        new = row(case, old["end"], case.make(old["end"]), columns)
        moved = [f"{key} {old[key]} -> {new[key]}" for key in old if old[key] != new[key]]
        return f"{case.name}: {', '.join(moved)}" if moved else None

    moved = [line for line in on_all_cores(one, list(cases())) if line is not None]
    moved += [f"{name}: listed, but no such scenario" for name in expected]
    if moved:
        shown = "\n".join(moved[:40])
        pytest.fail(
            f"{len(moved)} of the goldens moved. If they should, run `make goldens`, look at the diff of tests/goldens, and say what\n"
            f"moved and why in CHANGELOG.md under Changed numbers.\n{shown}",
            pytrace=False,
        )


def test_generated_scenarios_reach_every_profile_queue_and_algorithm() -> None:
    texts = [generated.scenario(number) for number in range(generated.COUNT)]
    names = [*generated.LOSS_BASED, *generated.MARKED, *generated.DELAY_BASED, *generated.OTHERS, "red", "sfq", "lossy"]
    for name in names:
        assert any(f'name = "{name}"' in text for text in texts), name
    for key in ['profile = "ns2"', 'profile = "rfc"', 'profile = "linux"', "shared_buffer", 'routing = "spray"']:
        assert sum(key in text for text in texts) >= 5, key
