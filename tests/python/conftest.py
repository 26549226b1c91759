"""What the tests of the command share."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import struct
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from fanin.errors import EngineError
from fanin.kernel import cache
from hypothesis import settings

# The machine may be busy: a test asserts no time. The same cases are drawn in every run: a run fails for what was changed.
settings.register_profile("fanin", deadline=None, derandomize=True)
settings.load_profile("fanin")

ROOT = Path(__file__).parents[2]
CAPTURES = ROOT / "tests/data/pcap"
HTTP = ROOT / "data/captures/http_onoff_8to1.pcap.gz"
SMALL = CAPTURES / "memcached_incast_8to1.pcap.gz"
RACK = ROOT / "examples/rack.toml"
TWINS = ("dctcp", "d2tcp", "l2dct", "vegas", "dcvegas", "trim", "gss+newreno", "gss+cubic", "gss+dctcp")
"""Algorithms that fanin has in C for Linux (crates/kernelcc/src/twins.rs)."""
INCAST = """
title = "four at once"
[topology]
senders = 4
mark = "20p"
[[workload]]
kind = "incast"
bytes = "64KB"
jitter = "100us"
"""


@pytest.fixture(scope="session")
def kernel() -> cache.Kernel:
    """The virtual kernel, where one is built."""
    try:
        return cache.find()
    except EngineError as why:
        pytest.skip(str(why))


def entries(store: Path) -> int:
    """How many results a store has, also while others write to it: os.walk, unlike Path.glob, passes folders that are renamed meanwhile."""
    return sum("entry.json" in files for _, _, files in os.walk(store))


def script(path: str) -> ModuleType:
    """A script of the project, by its path in it, as a module."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def processes_in(folder: Path) -> list[int]:
    """Processes whose current folder is this one, or was before it was removed."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and str((entry / "cwd").readlink()).startswith(str(folder)):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@dataclass(frozen=True)
class Outcome:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """The one object on standard output."""
        return json.loads(self.out)


Fanin = Callable[..., Outcome]


@pytest.fixture
def fanin(tmp_path: Path) -> Fanin:
    """Run the command in an empty folder, as a user would."""

    def run(*arguments: object, cwd: Path = tmp_path) -> Outcome:
        done = subprocess.run(
            [sys.executable, "-m", "fanin", *map(str, arguments)],
            cwd=cwd,
            capture_output=True,
            text=True,
            env={**os.environ, "COLUMNS": "200"},
            check=False,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def seldom_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Advice looks at twice the load on four seeds, not thirty: for tests that assert nothing of that look, which is half of the runs of small advice."""
    # By its name: `fanin.advice.advise` is the function.
    monkeypatch.setattr(importlib.import_module("fanin.advice.advise"), "BUSY_SEEDS", range(1, 5))


@pytest.fixture(autouse=True)
def _in_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Examples name files as a reader of the repository would."""
    monkeypatch.chdir(ROOT)


def merged(files: Iterable[Path], to: Path) -> Path:
    """One capture of several, by time; nanosecond pcap in the machine's byte order, as fanin writes it."""
    packets, head = [], b""
    for file in sorted(files):
        data = file.read_bytes()
        head, at = data[:24], 24
        while at < len(data):
            s, ns, kept, _ = struct.unpack_from("<4I", data, at)
            packets.append((s, ns, data[at : at + 16 + kept]))
            at += 16 + kept
    to.write_bytes(head + b"".join(packet for _, _, packet in sorted(packets, key=lambda p: p[:2])))
    return to
