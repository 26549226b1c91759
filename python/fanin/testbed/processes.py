"""The programs of a run: the switch, and the player. Both end when this process does, also when it is killed."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from fanin.errors import EngineError, Interrupted
from fanin.testbed.host import program

SWITCH_PRIORITY, THREAD_PRIORITY, PLAYER_PRIORITY = 3, 2, 1
"""Real-time priorities (SCHED_FIFO): the player must not keep the hosts from taking their packets."""

TICK_S = 0.05
"""How often a run is looked at."""

GRACE_S = 60.0
"""How much longer than its duration a run may take to set up and end."""


def real_time(process: int, cpu: int, priority: int) -> None:
    """Bind a process to a CPU and give it a real-time priority."""
    os.sched_setaffinity(process, {cpu})
    os.sched_setscheduler(process, os.SCHED_FIFO, os.sched_param(priority))


def check_network(config: Path) -> None:
    """Raise when the switch says that it cannot carry this network."""
    done = subprocess.run([program("fanin-testbed"), "check", str(config)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise EngineError(done.stderr.strip().removeprefix("fanin-testbed: "))


@contextmanager
def switch(config: Path) -> Iterator[None]:
    """The switch works while the block runs; then it has written its record and figures."""
    process = subprocess.Popen(
        [program("fanin-testbed"), "run", str(config)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    # Popen makes all three for PIPE.
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        if process.stdout.readline().strip() != "ready":
            raise EngineError(f"the testbed's switch did not start: {_words(process)}")
        yield
        process.stdin.close()
        if process.wait() != 0:
            raise EngineError(f"the testbed's switch failed: {_words(process)}")
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            with suppress(OSError):
                pipe.close()


def play(
    plan: Path,
    log: Path,
    cpu: int,
    duration_s: float,
    progress: Callable[[float], bool],
    environment: Mapping[str, str],
) -> None:
    """Run the player to its end.

    Raises
    ------
    fanin.EngineError
        With the sentence that it printed, or when it does not end.
    fanin.Interrupted
        When `progress` said so.
    """
    process = subprocess.Popen(
        [program("fanin-player"), str(plan), str(log)],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    assert process.stderr is not None  # as asked for
    began = time.monotonic()
    try:
        with suppress(ProcessLookupError):
            real_time(process.pid, cpu, PLAYER_PRIORITY)
        while True:
            with suppress(subprocess.TimeoutExpired):
                process.wait(TICK_S)
                break
            passed = time.monotonic() - began
            if not progress(min(1.0, passed / max(duration_s, TICK_S))):
                raise Interrupted("the run on the testbed was stopped")
            if passed > duration_s + GRACE_S:
                raise EngineError(f"the player did not end {GRACE_S:g} s after the end of the run and was stopped")
        if process.returncode:
            raise EngineError(f"the run on the testbed failed: {_words(process)}")
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def _words(process: subprocess.Popen[str]) -> str:
    """What a process that has ended, or is about to, said."""
    assert process.stderr is not None  # opened by whoever calls this
    process.wait()
    said = process.stderr.read().strip()
    return said.split(": ", 1)[-1] if said else f"it ended with code {process.returncode} and said nothing"


def figures(path: Path) -> dict[str, Any]:
    """What the switch wrote."""
    read: dict[str, Any] = json.loads(path.read_text())
    return read
