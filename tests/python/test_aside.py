"""What is held of hundreds of replays of a large capture lies in files without a name, and is the same numbers."""

from __future__ import annotations

import struct
import subprocess
import sys
import threading
from pathlib import Path

import fanin
import polars as pl
import pytest
from fanin.calibration import Shown
from fanin.comparison import columns
from fanin.comparison.columns import Typed
from fanin.disk import aside

from .conftest import ROOT, SMALL

HELD = {
    "columns of runs": (
        "from fanin.comparison.columns import Typed\ntyped = Typed()",
        "typed.held('responses', pl.Series('done_ms', pl.Series(range(rows), dtype=pl.Float64) / (n + 1)))",
    ),
    "durations of racks": (
        "from fanin.calibration import Shown",
        "Shown.of((pl.Series(range(rows), dtype=pl.Float64) / (n + 1)).to_list(), 0)",
    ),
}
"""What is imported, and what is held of replay `n`."""

MEASURES = """
import os, pathlib
os.environ.setdefault("_RJEM_MALLOC_CONF", "dirty_decay_ms:0,muzzy_decay_ms:0")
import polars as pl
from fanin import _native
{begins}
rows = 500_000
def anonymous():
    _native.give_back()
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon:")) // 1024
n = 100
first = {each}
before = anonymous()
held = [{each} for n in range(40)]
print(anonymous() - before)
"""


@pytest.mark.parametrize("what", HELD)
def test_forty_replays_of_half_a_million_responses_take_no_memory_of_their_own(what: str, tmp_path: Path) -> None:
    begins, each = HELD[what]
    code = MEASURES.format(begins=begins, each=each)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    # As numbers they are 160 MB, as Python's floats 640.
    assert int(done.stdout) < 60


@pytest.mark.parametrize("kind", [pl.Float64, pl.UInt64, pl.UInt32])
def test_a_column_comes_back_with_what_is_unknown(kind: type[pl.DataType]) -> None:
    values = pl.Series("a", [None, *range(aside.LONG), None], dtype=kind)
    held = Typed().held("responses", values)
    assert held is not values
    assert held.equals(values, check_names=True, check_dtypes=True)
    assert held.null_count() == 2


def test_without_a_place_for_files_they_are_held_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    values = pl.Series("a", range(aside.LONG), dtype=pl.Float64)
    assert aside.column(values) is values
    assert Shown.of(values.to_list(), 0).quantile(0.5) == aside.LONG / 2 - 1
    assert Typed().held("responses", values).equals(values)


def test_nothing_of_it_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kept = aside.column(pl.Series("a", range(aside.LONG), dtype=pl.Float64)), aside.held(map(float, range(aside.LONG)))
    assert list((tmp_path / "fanin").iterdir()) == []
    assert kept[0].sum() == sum(kept[1])


def test_a_comparison_is_the_same_whatever_lies_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    def compared() -> tuple[dict[str, object], list[pl.DataFrame]]:
        result = fanin.compare(SMALL, ROOT / "examples/rack.toml", cc=["cubic", "dctcp"], seeds=2, keep=False)
        told = {**result.to_dict(), "command": None}
        frames = [result.responses, result.rounds, result.stages, result.flows, result.runs, result.queue]
        return told, [frame.rechunk() for frame in frames]

    told, frames = compared()
    monkeypatch.setattr(aside, "LONG", 10)
    monkeypatch.setattr(columns, "MANY_ROWS", 10)
    there, beside = compared()
    assert there == told
    assert all(one.equals(other) for one, other in zip(frames, beside, strict=True))


def many_connections(path: Path, count: int) -> Path:
    """A request and its answer on each of so many connections."""

    def packet(at: int, to_server: bool, flags: int, seq: int, ack: int, data: int, port: int) -> bytes:
        hosts, ports = (bytes([10, 1, 0, 1]), bytes([10, 2, 0, port % 20])), (1024 + port // 20, 80)
        source, target = (0, 1) if to_server else (1, 0)
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 40 + data, 0, 0, 64, 6, 0, hosts[source], hosts[target])
        tcp = struct.pack(">HHIIBBHHH", ports[source], ports[target], seq, ack, 0x50, flags, 65535, 0, 0)
        stored = bytes(12) + b"\x08\x00" + ip + tcp
        return struct.pack("<IIII", at // 1_000_000, at % 1_000_000, len(stored), len(stored) + data) + stored

    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for n in range(count):
            at = 1_000_000 + 100 * n
            file.write(packet(at, True, 2, 0, 0, 0, n) + packet(at + 20, False, 18, 0, 1, 0, n))
            file.write(packet(at + 40, True, 24, 1, 1, 100, n) + packet(at + 80, False, 24, 1, 101, 1000, n))
    return path


@pytest.mark.skipif(sys.platform != "linux", reason="files without a name are Linux's (O_TMPFILE)")
def test_rows_of_many_connections_lie_lyingand_are_the_same_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture = many_connections(tmp_path / "many.pcap", 33_000)

    def nameless() -> int:
        targets = [str(fd.readlink()) for fd in Path("/proc/self/fd").iterdir() if fd.is_symlink()]
        return sum(target.startswith(str(tmp_path)) and target.endswith("(deleted)") for target in targets)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    lying = fanin.trains(capture)
    assert nameless() == 3
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    here = fanin.trains(capture)
    assert nameless() == 3
    assert lying.turns.height == 33_000
    assert lying.turns.equals(here.turns)
    assert lying.trains.equals(here.trains)
    assert [lying.connections[n] for n in (0, 5, 32_999)] == [here.connections[n] for n in (0, 5, 32_999)]


def test_other_threads_go_on_while_the_traffic_of_many_connections_is_found(tmp_path: Path) -> None:
    found = fanin.trains(many_connections(tmp_path / "many.pcap", 5_000))
    over, ticks = threading.Event(), 0

    def tick() -> None:
        nonlocal ticks
        while not over.wait(0.001):
            ticks += 1

    thread = threading.Thread(target=tick)
    thread.start()
    before = ticks
    found.workload()
    during = ticks - before
    over.set()
    thread.join()
    # One that waits for the whole of it ticks as it begins and as it ends; Ctrl-C waits likewise.
    assert during > 10
