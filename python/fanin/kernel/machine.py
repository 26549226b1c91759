"""One run of the virtual kernel: start, watch, end. Nothing of it is left, however it ends."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fanin.disk.scratch import scratch_folder
from fanin.errors import EngineError, Interrupted
from fanin.kernel.cache import Kernel

STANDSTILL_S = 120.0
"""Wall time after which a run whose clock does not move is ended; ``$FANIN_KERNEL_STANDSTILL_S`` is another."""

TICK_S = 0.02
"""How often a run is looked at."""

MEMORY = "2G"
"""The guest's memory: a sparse file, of which only what is used takes place."""

START_NS = 1_000_000_000_000_000_000
"""The guest's wall clock at boot: the same in every run, since the kernel's random numbers start from it, too."""

FAULT = re.compile(r"WARNING: |BUG: |Oops|Kernel panic|Out of memory|soft lockup|^fanin: ", re.MULTILINE)
"""What a kernel prints when something went wrong."""

KEEPER = r"""
read -r word
[ "$word" = done ] || kill -9 "-$1" 2>/dev/null
rm -rf -- "$2"
"""
"""A shell that waits for the end of its input. It comes also when this process is killed: then the kernel goes, too. $1 is its process
group, $2 its folder."""

_cpus = threading.Lock()
_taken: set[int] = set()


PREFIX = "fanin-kernel-"
"""Of the folders of runs, in the system's folder for what is temporary."""


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for one run; those of processes that were killed before their kernel started are removed: from then on a keeper does that."""
    with scratch_folder(tempfile.gettempdir(), PREFIX) as folder:
        yield folder


@contextmanager
def _one_cpu() -> Iterator[int]:
    """A CPU that no other run of this process has: on one, this kind of kernel is nearly twice as fast as on several."""
    cpus = sorted(os.sched_getaffinity(0))
    with _cpus:
        cpu = next((c for c in cpus if c not in _taken), cpus[0])
        _taken.add(cpu)
    try:
        yield cpu
    finally:
        with _cpus:
            _taken.discard(cpu)


def start_kernel(
    kernel: Kernel, folder: Path, seed: int, progress: Callable[[float], bool], *, cpu: int | None = None
) -> None:
    """Run the kernel on what is prepared in a folder, to its end.

    Parameters
    ----------
    kernel : Kernel
        Which.
    folder : pathlib.Path
        What :func:`fanin._native.kernel_prepare` wrote; results are written there.
    seed : int
        Seeds the kernel's own random numbers.
    progress : callable
        Told the share of the run that is done; false ends it.
    cpu : int, optional
        CPU to run on; a free one unless given.

    Raises
    ------
    fanin.EngineError
        When it stood still, stopped early, or printed a warning.
    fanin.Interrupted
        When `progress` said so.
    """
    # The kernel mixes its command line into its random numbers: no path of this machine may be in it.
    guest = folder / "fanin-guest"
    guest.symlink_to(kernel.guest)
    command = [
        str(kernel.linux),
        f"mem={MEMORY}",
        "root=/dev/root",
        "rootfstype=hostfs",
        "rootflags=/",
        "ro",
        "init=/proc/self/cwd/fanin-guest",
        "con=null",
        "time-travel=inf-cpu",
        f"time-travel-start={START_NS}",
        "loglevel=5",
        "uml_dir=./uml/",
        f"fanin_seed={seed}",
    ]
    boot = folder / "boot"
    command += boot.read_text().split() if boot.is_file() else []
    # glibc >= 2.35 registers rseq, which this kernel's start does not survive when it is linked statically.
    environment = {"PATH": os.defpath, "GLIBC_TUNABLES": "glibc.pthread.rseq=0", "TMPDIR": _memory_folder(folder)}
    console = folder / "console"
    with console.open("wb") as output, _one_cpu() as free:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        keeper = subprocess.Popen(
            ["/bin/sh", "-c", KEEPER, "fanin-keeper", str(process.pid), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        last_word = b"kill\n"
        try:
            os.sched_setaffinity(process.pid, {free if cpu is None else cpu})
            _watch(process, folder, progress)
            last_word = b"done\n"
            _check(process.returncode, folder)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            # The folder is the caller's to read when all went well, and to remove.
            if last_word == b"done\n":
                keeper.kill()
            elif keeper.stdin is not None:
                keeper.stdin.close()
            keeper.wait()
            if keeper.stdin is not None and not keeper.stdin.closed:
                keeper.stdin.close()


def _memory_folder(folder: Path) -> str:
    """Where the guest's memory is: in memory, if there is such a place."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else str(folder)


def _watch(process: subprocess.Popen[bytes], folder: Path, progress: Callable[[float], bool]) -> None:
    standstill = float(os.environ.get("FANIN_KERNEL_STANDSTILL_S", STANDSTILL_S))
    seen, moved = "", time.monotonic()
    while True:
        try:
            process.wait(TICK_S)
            return
        except subprocess.TimeoutExpired:
            pass
        try:
            share = (folder / "progress").read_text()
        except OSError:
            share = ""
        if share != seen:
            seen, moved = share, time.monotonic()
        if not progress(_number(share)):
            raise Interrupted("the run on the virtual kernel was stopped")
        if time.monotonic() - moved > standstill:
            raise EngineError(
                f"the virtual kernel stood still for {standstill:g} s at {_number(seen):.0%} of the run and was ended"
                f"{_tail(folder)}; a longer wait is FANIN_KERNEL_STANDSTILL_S=SECONDS"
            )


def _number(text: str) -> float:
    try:
        return min(1.0, float(text))
    except ValueError:
        return 0.0


FULL = 64 * 1024
"""Where fewer bytes are free, what a run wrote last may be missing."""


def _check(code: int, folder: Path) -> None:
    """A run that printed a warning, stopped early or filled the disk is an error, not a result."""
    if shutil.disk_usage(folder).free < FULL:
        raise EngineError(
            f"no space is left in {folder.parent}, where a run on the virtual kernel keeps its record of every packet; choose another "
            "folder with TMPDIR"
        )
    text = (folder / "console").read_text(errors="replace")
    found = FAULT.search(text)
    if found:
        line = text[found.start() :].splitlines()[0]
        raise EngineError(f"the virtual kernel reported a fault, so its results cannot be trusted: {line.strip()}")
    finished = (folder / "log.json").exists() or (folder / "failure").exists()
    if code != 0 or not finished:
        raise EngineError(f"the virtual kernel stopped early (exit code {code}){_tail(folder)}")


def _tail(folder: Path) -> str:
    try:
        lines = (folder / "console").read_text(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return f"; it last said: {lines[-1].strip()}" if lines else ""
