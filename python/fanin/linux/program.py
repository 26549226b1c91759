"""The root-side binary ``fanin-linux``: one command, one JSON object."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fanin.errors import EngineError

RECEIVERS = ("iatcp", "ictcp")
"""Receivers' algorithms, which are loaded onto a network device."""


def find() -> str:
    """Where the binary is.

    Returns
    -------
    str
        ``FANIN_LINUX``, the one that ``make linux`` built in this tree, or one in PATH.

    Raises
    ------
    fanin.errors.EngineError
        If there is none.
    """
    named = os.environ.get("FANIN_LINUX")
    built = Path(__file__).parents[3] / "target" / "release" / "fanin-linux"
    found = named or (str(built) if built.exists() else shutil.which("fanin-linux"))
    if not found:
        raise EngineError(
            "fanin-linux is not built: apt install clang libbpf-dev libelf-dev zlib1g-dev pkg-config, then `make linux`"
        )
    return found


def call(*words: str) -> dict[str, Any]:
    """Run one command of the binary.

    Parameters
    ----------
    *words : str
        As on its command line, such as ``"load", "trim"``.

    Returns
    -------
    dict
        Its answer.

    Raises
    ------
    fanin.errors.EngineError
        With the sentence that it printed.
    """
    done = subprocess.run([find(), *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise EngineError(done.stderr.strip() or f"fanin-linux {' '.join(words)} failed and said nothing")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


@dataclass(slots=True)
class Held:
    """A twin or a receiver's program that is loaded for a while.

    Attributes
    ----------
    name : str
        As Linux has it, such as ``fanin_trim``, or with its device, such as ``ictcp@eth0``.
    counters : dict
        What it has counted, once it is unloaded.
    deadlines : int or None
        Id of the BPF map in which applications say the deadlines of what they send.
    """

    name: str
    deadlines: int | None = None
    counters: dict[str, int] = field(default_factory=dict)


@contextmanager
def held(name: str, params: Sequence[str], device: str = "", namespace: str = "") -> Iterator[Held]:
    """What is loaded while the block runs, and gone however it ends, also by SIGKILL: the load lives in a child that ends with us.

    Parameters
    ----------
    name : str
        As in ``fanin linux load``.
    params : sequence of str
        ``key=value`` of the load.
    device : str
        Network device, for a receiver's algorithm.
    namespace : str
        Path of the network namespace that has the device; empty: this process's.

    Raises
    ------
    fanin.errors.EngineError
        With the sentence that the loader printed.
    """
    words = [word for param in params for word in ("--param", param)]
    words += ["--device", device] if device else []
    within = ["nsenter", f"--net={namespace}"] if namespace else []
    child = subprocess.Popen(
        [*within, find(), "load", name, *words, "--hold"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    # Popen makes all three for PIPE.
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stderr is not None
    try:
        first = child.stdout.readline()
        if not first:
            raise EngineError(child.stderr.read().strip())
        said = json.loads(first)
        twin = Held(said["loaded"], said.get("deadlines"))
        yield twin
    finally:
        child.stdin.close()
        last = child.stdout.read()
        child.wait()
        child.stdout.close()
        child.stderr.close()
    if last:
        twin.counters = json.loads(last).get("counters", {})
