"""Every command where something is missing or breaks: memory, disk, files, home, store, input, patience. `make faults` runs all of it.

A command may do its work or refuse it. It never shows a traceback or a library's last words, says one sentence when it refuses, and leaves nothing
behind. Stopped at any moment by any signal, it works when it is given once more, and takes away what was left.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SMALL = ROOT / "tests/data/pcap/memcached_incast_8to1.pcap.gz"
RACK = ROOT / "examples/rack.toml"

SCENARIO = """
title = "four at once"
[topology]
senders = 4
mark = "20p"
[[workload]]
kind = "incast"
bytes = "64KB"
"""
SWEEP = """
title = "two sizes"
scenario = "incast.toml"
seeds = 1
[axis.cc]
values = ["cubic", "dctcp"]
[axis.n]
key = "topology.senders"
values = [2, 4]
"""

COMMANDS = {
    "help": "--help",
    "list": "list cc --json",
    "run": "run incast.toml --out out",
    "compare": "compare small.pcap.gz --rack rack.toml --cc cubic,dctcp --seeds 1 --out out",
    "compare-json": "compare small.pcap.gz --rack rack.toml --cc cubic,dctcp --seeds 1 --json",
    "advise": "advise small.pcap.gz --rack rack.toml --budget 40 --json",
    "rack": "rack small.pcap.gz --out proposed.toml",
    "trains": "trains small.pcap.gz --out out",
    "draw": "draw incast.toml --out out.html",
    "draw-svg": "draw incast.toml --out out.svg",
    "sweep": "sweep sweep.toml",
    "plot": "plot sweep --x n --y p99_ms --out out.html",
    "query": "query 'select count(*) from sweep'",
    "store": "store ls",
    "verify": "store verify",
    "gc": "store gc",
    "diff": "diff small.pcap.gz small.pcap.gz",
}
"""A line for each command, run in a folder made by :func:`place`."""

NEVER = re.compile(
    r"Traceback|panicked|RUST_BACKTRACE|memory allocation|stack trace|core dumped|Fatal|Segmentation|Exception ignored|object at 0x"
)
"""What a user is never shown."""

OF_A_STORE = {"sweep", "plot", "query", "store", "verify", "gc", "compare", "run"}
"""Commands that read what a store has."""

SHELLS = {
    **{f"memory {kb} KB": f"ulimit -v {kb}" for kb in (200_000, 450_000, 700_000, 900_000, 1_000_000, 1_200_000, 1_600_000)},
    **{f"files of {kb} KB": f"ulimit -f {kb}" for kb in (0, 1, 10, 100)},
    **{f"{n} open files": f"ulimit -n {n}" for n in (4, 6, 9, 11, 12, 16, 24, 48)},
    "output on a full disk": "exec > /dev/full",
    "no folder": "mkdir gone && cd gone && rmdir ../gone",
    "no home": "export HOME=/proc/none XDG_CACHE_HOME=/proc/none FANIN_STORE=",
}  # fmt: skip
"""What is done in the shell before the command."""

SPOILT: dict[str, Callable[[Path], object]] = {
    "an entry that is a number": lambda store: _each(store, "entry.json", lambda _: b"5"),
    "an entry that is a list": lambda store: _each(store, "entry.json", lambda _: b"[[], {}]"),
    "an entry whose files are a number": lambda store: _each(store, "entry.json", lambda b: re.sub(rb'"files": \{.*?\}', b'"files": 7', b)),
    "an entry whose digests are numbers": lambda store: _each(store, "entry.json", lambda b: re.sub(rb'": "[0-9a-f]{64}"', b'": 7', b)),
    "an entry nested without end": lambda store: _each(store, "entry.json", lambda _: b"[" * 200_000),
    "an entry cut short": lambda store: _each(store, "entry.json", lambda b: b[: len(b) // 2]),
    "a frame cut short": lambda store: _each(store, "*.arrow", lambda b: b[: len(b) // 2]),
    "an empty frame": lambda store: _each(store, "*.arrow", lambda _: b""),
    "rows of a sweep that are none": lambda store: _each(store, "*.parquet", lambda _: b"PAR1 not at all PAR1"),
    "a head that is a number": lambda store: _each(store, "store.json", lambda _: b"5"),
    "an entry that is a pipe": lambda store: _instead(store, "entry.json", os.mkfifo),
    "a frame without end": lambda store: _instead(store, "*.arrow", lambda file: file.symlink_to("/dev/zero")),
}  # fmt: skip
"""What is done to a store before the command."""


def _each(store: Path, pattern: str, change: Callable[[bytes], bytes]) -> None:
    found = list(store.rglob(pattern))
    assert found, pattern
    for file in found:
        file.write_bytes(change(file.read_bytes()))


def _instead(store: Path, pattern: str, make: Callable[[Path], object]) -> None:
    found = list(store.rglob(pattern))
    assert found, pattern
    for file in found:
        file.unlink()
        make(file)


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


def place(folder: Path) -> Path:
    """A folder with what the commands name."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(SMALL, folder / "small.pcap.gz")
    shutil.copy(RACK, folder / "rack.toml")
    (folder / "incast.toml").write_text(SCENARIO)
    (folder / "sweep.toml").write_text(SWEEP)
    return folder


def environment(folder: Path) -> dict[str, str]:
    """Cache, store and temporary files in the folder; as few threads on every machine."""
    for name in ("cache", "tmp"):
        (folder / name).mkdir(exist_ok=True)
    binaries = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {
        **os.environ, "PATH": binaries, "XDG_CACHE_HOME": str(folder / "cache"), "TMPDIR": str(folder / "tmp"),
        "FANIN_STORE": str(folder / "store"), "POLARS_MAX_THREADS": "2", "COLUMNS": "100",
    }  # fmt: skip


def in_shell(folder: Path, before: str, words: str) -> Ended:
    """Run a command after something was done in its shell; what still runs after ten minutes is killed."""
    with subprocess.Popen(
        ["bash", "-c", f"{before}\nexec fanin {words}"], cwd=folder, env=environment(folder), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, errors="replace", stdin=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        try:
            out, err = process.communicate(timeout=600)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
        return Ended(process.returncode, out, err)


@contextmanager
def started(folder: Path, words: str, **more: int) -> Iterator[subprocess.Popen[str]]:
    """A command that goes on meanwhile; it does not outlive the block."""
    process = subprocess.Popen(
        ["bash", "-c", f"exec fanin {words}"], cwd=folder, env=environment(folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, errors="replace", preexec_fn=_listen, **{"stdin": subprocess.DEVNULL, **more},
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _listen() -> None:
    """What runs in the background of a shell ignores Ctrl-C, and under nohup a hangup; so do its children."""
    for ignored in (signal.SIGINT, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_DFL)


def interrupted(process: subprocess.Popen[str], *, group: bool = False, patience_s: float = 120.0) -> Ended:
    """Send one SIGINT, to the process or to all of the group that it leads, and wait."""
    (os.killpg if group else os.kill)(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=patience_s)
    return Ended(process.returncode, out, err)


@dataclass(frozen=True)
class Usual:
    """How a command ends that nothing stops, what it writes, and how long it takes."""

    code: int
    files: frozenset[str]
    took_s: float


def usual(folder: Path, words: str) -> Usual:
    """Run a command to its end."""
    began = time.monotonic()
    ended = in_shell(folder, ":", words)
    assert faults(folder, ended) == [], ended.err
    return Usual(ended.code, results(folder), time.monotonic() - began)


def results(folder: Path) -> frozenset[str]:
    """Files of results."""
    found = [folder / "proposed.toml", folder / "out.html", folder / "out.svg", *(folder / "out").rglob("*")]
    return frozenset(
        str(file.relative_to(folder)) for file in found if file.is_file() and not file.name.startswith(".")
    )


SIGNALS = {signal.SIGINT: (0, 2, 130), signal.SIGTERM: (0, 2, 128 + signal.SIGTERM), signal.SIGKILL: (0, 2)}
"""What ends a command at any moment, and the exit codes of one that has heard of it or was over before."""


def stopped(folder: Path, words: str, number: signal.Signals, after_s: float, whole: Usual) -> list[str]:
    """What is wrong where a command is sent a signal after so long, and then given once more."""
    with started(folder, words) as process:
        time.sleep(after_s)
        process.send_signal(number)
        out, err = process.communicate(timeout=120)
        ended = Ended(process.returncode, out, err)
    # Before the launcher blocks it, or where it cannot be heard, the signal ends the process without a sentence.
    unheard = ended.code == -number
    found = [] if unheard else faults(folder, ended, codes=SIGNALS[number])
    written = results(folder)
    if written and written != whole.files and not unheard:
        found.append(f"it leaves {len(written)} of {len(whole.files)} files")
    if written and written == whole.files:
        # It was done, and some refuse to do it over what is there.
        return found
    again = in_shell(folder, ":", words)
    found += [f"then {what}" for what in faults(folder, again, codes=(whole.code,))]
    if results(folder) != whole.files:
        found.append(f"then it writes {', '.join(sorted(results(folder)))}")
    left = [path.name for path in (folder / "tmp").iterdir()]
    return found + ([f"then there is {', '.join(left)}"] if left else [])


def faults(folder: Path, ended: Ended, *, codes: tuple[int, ...] = (0, 2)) -> list[str]:
    """What is wrong with how a command ended."""
    found = []
    if ended.code not in codes:
        found.append(f"it ended with {ended.code}")
    shown = NEVER.search(ended.err) or NEVER.search(ended.out)
    if shown is not None:
        found.append(f"it says {shown[0]!r}")
    # What was run by then is shown, and the rest named.
    told = ("fanin: ", "interrupted: ") if ended.code == 130 else ("fanin: ",)
    said = [line for line in ended.err.splitlines() if line.startswith(told)]
    if ended.code in (2, 130) and len(said) != 1:
        found.append(f"it says {len(said)} sentences")
    left = [
        p for p in folder.rglob("*") if p.name.startswith((".fanin-", ".new-", "fanin-")) or p.name.endswith(".part")
    ]
    if left:
        found.append(f"it leaves {', '.join(p.name for p in left)}")
    if (
        ended.code == 2
        and "standard output" not in ended.err
        and any((folder / name).exists() for name in ("out", "out.html", "out.svg", "proposed.toml"))
    ):
        found.append("it leaves half of its results")
    return found


def with_store(folder: Path) -> Path:
    """A store with a sweep in it."""
    made = in_shell(place(folder), ":", COMMANDS["sweep"])
    assert made.code == 0, made.err
    return folder / "store"


def main(rounds: int = 1, *named: str) -> int:
    """Run every command, or those named, under every fault; prints what is wrong, returns how much."""
    wrong = count = 0
    commands = {name: COMMANDS[name] for name in named or COMMANDS}

    def tell(what: str, found: list[str], said: str = "") -> None:
        nonlocal wrong, count
        count += 1
        if found:
            wrong += 1
            print(f"{what}: {'; '.join(found)}{said}", flush=True)

    def judge(what: str, folder: Path, ended: Ended, **how: tuple[int, ...]) -> None:
        last = ended.err.strip().splitlines()[-1:] or [""]
        tell(what, faults(folder, ended, **how), f": {last[0][:200]}")

    with tempfile.TemporaryDirectory() as top:
        full = with_store(Path(top) / "made")

        def fresh() -> Path:
            folder = place(Path(tempfile.mkdtemp(dir=top)))
            shutil.copytree(full, folder / "store")
            return folder

        for name, words in commands.items():
            for fault, before in SHELLS.items():
                folder = fresh()
                judge(f"{name}, {fault}", folder, in_shell(folder, before, words))
                shutil.rmtree(folder)
        for fault, spoil in SPOILT.items():
            for name in OF_A_STORE & commands.keys():
                folder = fresh()
                spoil(folder / "store")
                # 1 is its answer where something is damaged.
                codes = (0, 1, 2) if name == "verify" else (0, 2)
                judge(f"{name}, {fault}", folder, in_shell(folder, ":", COMMANDS[name]), codes=codes)
                shutil.rmtree(folder)
        draw = random.Random(28)
        for name, words in commands.items():
            folder = fresh()
            whole = usual(folder, words)
            shutil.rmtree(folder)
            for number in [number for number in SIGNALS for _ in range(rounds)]:
                folder, after_s = fresh(), draw.uniform(0, whole.took_s)
                tell(f"{name}, {number.name} after {after_s:.2f} s", stopped(folder, words, number, after_s, whole))
                shutil.rmtree(folder)
    print(f"{count} commands under faults, {wrong} ended badly")
    return wrong


if __name__ == "__main__":
    sys.exit(1 if main(*map(int, sys.argv[1:2]), *sys.argv[2:]) else 0)
