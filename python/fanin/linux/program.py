"""The program for a host, ``fanin-host`` (crates/host): one command, one JSON object."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sysconfig
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from fanin.errors import EngineError

NAME = "fanin-host"

RECEIVERS = ("iatcp", "ictcp")
"""Receivers' algorithms, which are loaded onto a network device."""


def find() -> str:
    """Where the binary is.

    Returns
    -------
    str
        ``FANIN_HOST``, the one that ``make linux`` or ``make host`` built in this tree, the one that was installed with this package, or one
        in PATH.

    Raises
    ------
    fanin.errors.EngineError
        If there is none.
    """
    named = os.environ.get("FANIN_HOST")
    tree = Path(__file__).parents[3] / "target"
    places = (tree / "release" / NAME, tree / "host" / NAME, Path(sysconfig.get_path("scripts")) / NAME)
    found = named or next((str(place) for place in places if place.exists()), shutil.which(NAME))
    if not found:
        raise EngineError(
            f"{NAME} is not built: apt install clang libbpf-dev libelf-dev zlib1g-dev pkg-config, then `make linux`"
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
        raise EngineError(_said(done.stderr) or f"{NAME} {' '.join(words)} failed and said nothing")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def watched(*words: str, say: Callable[[str], None]) -> tuple[int, dict[str, Any]]:
    """Run one command that says how it goes, and ends cleanly when it is interrupted or this process ends.

    Parameters
    ----------
    *words : str
        As on its command line.
    say : callable
        Told each line of its standard error, but the last of a failure.

    Returns
    -------
    tuple
        Its exit code, and its answer.

    Raises
    ------
    fanin.errors.EngineError
        With the sentence that it printed last, if it gave no answer.
    """
    command = [find(), *words, "--hold"]
    # A process group of its own: what interrupts is told to this process, which lets go and waits for the answer.
    child = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    # Popen makes all three for PIPE.
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stderr is not None
    told: list[str] = []

    def listen(pipe: IO[str]) -> None:
        for line in pipe:
            told.append(_said(line))
            if not line.startswith(f"{NAME}: "):
                say(told[-1])

    # A thread waits for the lines: a system call of the main thread that goes on after a signal would keep Ctrl-C from it.
    listening = threading.Thread(target=listen, args=(child.stderr,))
    listening.start()
    while listening.is_alive():
        try:
            listening.join(0.1)
        except KeyboardInterrupt:
            child.stdin.close()
    answer = child.stdout.read()
    code = child.wait()
    for pipe in (child.stdin, child.stdout, child.stderr):
        pipe.close()
    last = told[-1] if told else ""
    if not answer:
        raise EngineError(last or f"{NAME} {' '.join(words)} failed and said nothing")
    return code, json.loads(answer)


def _said(text: str) -> str:
    return text.strip().removeprefix(f"{NAME}: ")


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
            raise EngineError(_said(child.stderr.read()))
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
