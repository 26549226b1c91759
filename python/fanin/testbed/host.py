"""What this machine has, and what it cannot carry honestly."""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fanin.errors import EngineError
from fanin.testbed.honesty import HeldError

PROGRAMS = ("fanin-testbed", "fanin-player")
"""What ``make linux`` builds for the testbed, beside ``fanin-host``."""

LOCK = Path("/run/fanin/testbed.lock")
"""One run at a time: two would take each other's CPU."""


_COARSE = 6
"""CLOCK_MONOTONIC_COARSE, whose resolution is the tick; Python does not name it."""


def program(name: str) -> str:
    """Where one of the testbed's programs is: in this tree as ``make linux`` built it, or in PATH."""
    built = Path(__file__).parents[3] / "target" / "release" / name
    found = str(built) if built.exists() else shutil.which(name)
    if not found:
        raise EngineError(f"{name} is not built; run `make linux` (see docs/linux.md)")
    return found


def check() -> None:
    """Raise, in a sentence, when this machine has no testbed."""
    if os.geteuid() != 0:
        raise EngineError(
            "the engine testbed makes network namespaces and needs root: sudo fanin run ... --engine testbed"
        )
    cpus = os.sched_getaffinity(0)
    if len(cpus) < 2:
        raise EngineError(
            f"the engine testbed needs two CPUs, one of them for the switch, and this process has {len(cpus)}; use --engine kernel"
        )
    for name in PROGRAMS:
        program(name)


def cpus() -> tuple[int, int]:
    """A CPU for the switch, and one for the hosts: packets of a host that came from two CPUs could overtake each other."""
    mine = sorted(os.sched_getaffinity(0))
    return mine[-1], mine[-2]


def tick_us() -> int:
    """Length of the kernel's tick (1/HZ), which TCP's timers count in; microseconds."""
    return round(time.clock_getres(_COARSE) * 1e6)


def available() -> list[str]:
    """Congestion controls of this kernel."""
    return Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()


@contextmanager
def alone() -> Iterator[None]:
    """Holds the machine's testbed; the lock goes with the process."""
    LOCK.parent.mkdir(parents=True, exist_ok=True)
    with LOCK.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise HeldError(
                f"another run holds the testbed (process {file.read().strip() or 'unknown'}); wait until it has ended"
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
