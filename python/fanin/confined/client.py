"""The side of the process that asks: starts the worker, hands work to it, takes what comes back, and says how code ended that did not return."""

from __future__ import annotations

import atexit
import json
import math
import os
import pickle
import select
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fanin import _native, errors
from fanin.confined import wire
from fanin.confined.environment import environment
from fanin.disk.scratch import remove_abandoned
from fanin.errors import AlgorithmError, EngineError, FaninError, Interrupted
from fanin.process.progress import WATCH

if TYPE_CHECKING:
    import polars as pl

    from fanin._native import Watch

LIMIT = "FANIN_CODE_LIMIT_S"
"""Name of the environment variable for :func:`limit_s`."""

LIMIT_S = 20.0
"""Seconds of processor time without progress after which code is taken to be in an endless loop."""

WAITING = 6
"""So many times as long it may wait without using the processor."""

LARGEST = 64 << 20
"""Bytes of an object that a C file is compiled to, at most."""

PATIENCE_S = 10.0
"""After so long a worker that was to end something does not answer."""

TICK_MS = 100

MOST_SAID = 65_536
"""Bytes that are kept of what code prints."""

PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from fanin.confined.worker import serve; serve(int(sys.argv[2]))"
)


def limit_s() -> float:
    """Seconds of processor time without progress after which code is stopped: ``FANIN_CODE_LIMIT_S``, or 20."""
    written = os.environ.get(LIMIT, "")
    try:
        limit = float(written) if written else LIMIT_S
    except ValueError:
        limit = 0.0
    if not 0 < limit < math.inf:
        raise AlgorithmError(f"{LIMIT} is {written!r}; it must be a number of seconds above 0")
    return limit


class _Worker:
    """The process that runs are forked from; started at the first need."""

    def __init__(self) -> None:
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with there:
            # -P: what lies in this folder may be named as a module of Python's, and would run with all rights.
            words = [sys.executable, "-P", "-c", PROGRAM, json.dumps(sys.path), str(there.fileno())]
            # Ctrl-C in a terminal goes to both. The worker inherits the blocked signal, until it ignores it.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                self._process = subprocess.Popen(
                    words,
                    pass_fds=[there.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    env=environment(),
                )
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self._control, self.owner = here, os.getpid()

    def send(self, descriptors: list[int]) -> None:
        """Hand over a piece of work."""
        socket.send_fds(self._control, [b"work"], descriptors)

    def close(self) -> None:
        """End it, and what it has under way."""
        self._control.close()
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End it where it does not answer; what it has under way ends with it."""
        self._process.kill()
        self._process.wait()


_lock = threading.Lock()
_worker: _Worker | None = None
_described: dict[tuple[str, str], tuple[list[tuple[str, int, int]], dict[str, Any]]] = {}


def _send(descriptors: list[int]) -> None:
    """Hand a piece of work to the worker; another one where the last has gone."""
    global _worker
    with _lock:
        for _ in range(2):
            if _worker is None or _worker.owner != os.getpid():
                _worker = _Worker()
                atexit.register(_worker.close)
            try:
                return _worker.send(descriptors)
            except OSError:
                atexit.unregister(_worker.close)
                _worker.close()
                _worker = None
    raise EngineError("the worker process for code does not start; `python -c 'import fanin'` may say why")


def describe(name: str) -> dict[str, Any]:
    """What code says of itself, asked anew when one of its files has changed; see :func:`fanin.confined.describe`."""
    said: dict[str, Any] = _look(name)["said"]
    return said


def _look(name: str) -> dict[str, Any]:
    place = (name, str(Path.cwd()))
    if place in _described and _states([file for file, _, _ in _described[place][0]]) == _described[place][0]:
        return _described[place][1]
    told = _Call([name], WATCH.get(), LOADED).do({"describe": name})
    try:
        looked = wire.looked_at(told["said"])
        _check_object(name, looked["object"])
    except (OSError, ValueError) as error:
        raise AlgorithmError(f"{UNREADABLE}: {error}") from None
    _described[place] = (_states([str(file) for file in looked["files"]]), looked)
    return looked


def _check_object(name: str, told: list[str] | None) -> None:
    """What is loaded by the next worker is what a compiler made: code may have written the description, and would choose what another worker reads."""
    if name.startswith("py:") != (told is None):
        raise ValueError("it names an object for a class, or none for a C file")
    if told is not None:
        file = Path(told[0])
        state = file.lstat()
        if file.parent != Path(_native.c_places(name)[0]) or not stat.S_ISREG(state.st_mode) or state.st_size > LARGEST:
            raise ValueError("its object is none that was compiled")


def _states(files: list[str]) -> list[tuple[str, int, int]]:
    states = []
    for file in files:
        try:
            found = Path(file).stat()
        except OSError:
            states.append((file, 0, 0))
        else:
            states.append((file, found.st_mtime_ns, found.st_size))
    return states


def call(work: tuple[Any, ...], names: list[str], watch: Watch | None) -> dict[str, pl.DataFrame]:
    """Do a job in a worker.

    Parameters
    ----------
    work : tuple
        A job, the name of its method, and what the method gets after the watch.
    names : list of str
        The code that it uses.
    watch : Watch or None
        Told how far it is, and asked whether to go on.

    Raises
    ------
    fanin.AlgorithmError
        When the code does not return, or returns nonsense.
    fanin.Interrupted
        When the watch was stopped.
    """
    told = {name: _look(name) for name in names}
    asked = _Call(names, watch, "during a run")
    made: dict[str, bytes] = asked.do({"told": told, "work": pickle.dumps(work)})["frames"]
    missing = [name for name in getattr(work[0], "frames", ()) if name not in made]
    if missing or not made:
        raise asked.unreadable(f"it has no results{' ' if missing else ''}{', '.join(missing)}")
    try:
        # Another process reads what code may have written, and writes it anew.
        read = _Call(names, watch, READ).do({"frames": made})["frames"]
    except Interrupted:
        raise
    except FaninError as error:
        raise asked.unreadable(error) from None
    made_of = {name: wire.frame(arrow) for name, arrow in read.items()}
    if (odd := wire.oddity(made_of)) is not None:
        raise asked.unreadable(odd)
    return made_of


class _Call:
    """One piece of work of a worker."""

    def __init__(self, names: list[str], watch: Watch | None, when: str) -> None:
        self._names, self._watch, self._when = names, watch, when
        self._limit = limit_s()
        self._said = bytearray()
        self._frames: dict[str, bytes] = {}
        self._answer: dict[str, Any] | None = None
        self._error: FaninError | None = None
        self._refused: AlgorithmError | None = None
        self._status: int | None = None
        self._fraction, self._stopped, self._slept = 0.0, False, False

    def do(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Ask, wait, and give ``frames`` or ``said``."""
        asked = {
            **asked,
            "folder": str(Path.cwd()),
            "environment": environment(),
            "path": list(sys.path),
            "named": {name: str(path) for name, path in _native.named_c_files()},
        }
        with ExitStack() as open_files:
            (request, ask), (result, put), (said, printed) = (os.pipe() for _ in range(3))
            files = [
                open_files.enter_context(os.fdopen(fd, mode, buffering=0))
                for fd, mode in ((result, "rb"), (said, "rb"))
            ]
            asking = open_files.enter_context(os.fdopen(ask, "wb", buffering=0))
            about, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            open_files.enter_context(about)
            try:
                _send([request, put, printed, theirs.fileno()])
            finally:
                theirs.close()
                for each in (request, put, printed):
                    os.close(each)
            whole = False
            try:
                pid = json.loads(about.recv(4096) or b"{}").get("pid")
                with suppress(BrokenPipeError):
                    view = memoryview(pickle.dumps(asked))
                    while view:
                        view = view[asking.write(view) or 0 :]
                asking.close()
                whole = self._receive(files[0].fileno(), files[1].fileno(), about, pid)
            finally:
                if not whole:
                    # The worker ends it then.
                    about.shutdown(socket.SHUT_WR)
                status = _status(about) if self._status is None else self._status
                if self._when == LOADED and (not whole or status):
                    for name in self._names:
                        if not name.startswith("py:"):
                            remove_abandoned(Path(_native.c_places(name)[0]))
        if self._stopped:
            raise Interrupted("stopped")
        if self._refused is not None:
            raise self._refused
        if not whole:
            did = f"waited for {WAITING * self._limit:g} s" if self._slept else "used the processor for {} s"
            raise self._death(f"it was stopped: it {did} without coming back to the simulator")
        return self._outcome(status)

    def _receive(self, result: int, said: int, about: socket.socket, pid: int) -> bool:
        """Take everything until both ends are closed and the process has ended; False when it is to be stopped."""
        from fanin.runs.executor import memory_left

        room = memory_left()
        waiting, reader = select.poll(), wire.Reader(None if room is None else room // 4)
        for each in (result, said, about.fileno()):
            waiting.register(each, select.POLLIN | select.POLLHUP)
        last, since, used = -1.0, time.monotonic(), _used_s(pid)
        left = {result, said, about.fileno()}
        while left:
            for each, _ in waiting.poll(TICK_MS):
                if each == about.fileno():
                    self._status = _told_status(about)
                    if self._status is not None:
                        waiting.unregister(each)
                        left.discard(each)
                    continue
                data = os.read(each, 1 << 20)
                if not data:
                    waiting.unregister(each)
                    left.discard(each)
                elif each == said:
                    self._said += data[: MOST_SAID - len(self._said)]
                else:
                    try:
                        for kind, body in reader.take(data):
                            self._take(kind, body)
                    except OverflowError as error:
                        self._refused = self.unreadable(error)
                        return False
            if self._watch is not None and not self._watch.advance(self._fraction):
                self._stopped = True
                return False
            if self._fraction != last:
                last, since, used = self._fraction, time.monotonic(), _used_s(pid)
            elif _used_s(pid) - used > self._limit:
                return False
            elif time.monotonic() - since > WAITING * self._limit:
                self._slept = True
                return False
        return True

    def _take(self, kind: bytes, body: bytes) -> None:
        try:
            if kind == wire.PROGRESS:
                fraction = float(struct.unpack("<d", body)[0])
                # Code may have written it: what is no number, or goes back, is no progress.
                if self._fraction < fraction <= 1:
                    self._fraction = fraction
            elif kind == wire.FRAME:
                name, arrow = wire.named(body)
                self._frames[name] = arrow
                # What is sent is progress as well.
                self._fraction += 1e-9
            elif kind == wire.SAID:
                self._answer = json.loads(body)
            elif kind == wire.ERROR:
                self._error = _error(*wire.error_of(body))
            elif kind == wire.DONE and self._answer is None:
                self._answer = {}
        except Exception as error:
            self._error = self.unreadable(error)

    def unreadable(self, why: object) -> AlgorithmError:
        """What came back is nothing that a worker writes: code wrote there itself."""
        named = "" if self._when == LOADED else f"{self._called()}: "
        return AlgorithmError(f"{named}{UNREADABLE}: {why}")

    def _outcome(self, status: int) -> dict[str, Any]:
        ended = os.waitstatus_to_exitcode(status)
        if self._error is None and (self._answer is None or ended != 0):
            if ended >= 0:
                raise self._death(f"it ended its process with exit code {ended}")
            if -ended == signal.SIGSYS:
                raise self._death("it was ended: it tried to send a signal to another process, or to reach its memory,")
            if -ended == signal.SIGKILL:
                raise self._death("it was ended by SIGKILL, as the system does when memory runs out,")
            name = signal.Signals(-ended).name if -ended in {s.value for s in signal.Signals} else f"signal {-ended}"
            raise self._death(f"it ended its process by {name}")
        if self._said and self._when != READ:
            for line in self._said.decode(errors="replace").splitlines():
                # The file's name before it shows that it is not fanin's own word.
                print(wire.printable(f"{self._called()} says: {line}"), file=sys.stderr)
        if self._error is not None:
            raise self._error
        return {"frames": self._frames, "said": self._answer}

    def _called(self) -> str:
        return " or ".join(f"`{name}`" for name in self._names)

    def _death(self, how: str) -> AlgorithmError:
        lines = [wire.printable(line) for line in self._said.decode(errors="replace").splitlines() if line.strip()]
        last = f" and said: {lines[-1][:200]}" if lines and self._when != READ else ""
        sentence = f"{how.format(f'{self._limit:g}')} {self._when}{last}"
        # Where a plan is made, the engine puts the name before it; of results that are read the asker does.
        return AlgorithmError(sentence if self._when in (LOADED, READ) else f"{self._called()}: {sentence}")


LOADED = "while it was loaded"
READ = "while its results were read"
UNREADABLE = "what came back from its process cannot be read"


def _status(about: socket.socket) -> int:
    """How a piece of work ended, once it has; before that its number may come, if an interrupt did not let it be read."""
    about.settimeout(PATIENCE_S)
    try:
        while (status := _told_status(about)) is None:
            pass
    except TimeoutError:
        if _worker is not None:
            _worker.kill()
        return int(signal.SIGKILL)
    return status


def _told_status(about: socket.socket) -> int | None:
    """How a piece of work ended, if the next message says so. Whoever kills the worker kills its work as well."""
    told = about.recv(4096)
    status = json.loads(told).get("status") if told else signal.SIGKILL
    return None if status is None else int(status)


def _used_s(pid: int) -> float:
    """Processor time of a process in seconds (``proc(5)``, fields 14 and 15 of its stat)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        return 0.0


def _error(kind: str, message: str) -> FaninError:
    """The error that a worker raised; of a class that fanin has not, a fault of code or of fanin. Only a user interrupts."""
    known = getattr(errors, kind, None)
    if isinstance(known, type) and issubclass(known, FaninError) and not issubclass(known, Interrupted):
        return known(message)
    return EngineError(message)
