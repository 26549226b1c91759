"""The worker process: waits for work, and forks a process for each piece, which gives its rights away before it loads code."""

from __future__ import annotations

import gc
import json
import os
import pickle
import selectors
import signal
import socket
import sys
import warnings
from contextlib import suppress
from typing import Any

from fanin import _native
from fanin.confined import inside, wire

DESCRIPTORS = 4
"""With each piece of work: where to read it, where to write what it gives, where what it prints goes, and a socket about the process."""

ENDINGS = (signal.SIGTERM, signal.SIGHUP)
"""Signals that end a piece of work, though not the worker."""


def serve(descriptor: int) -> None:
    """Wait for work on a socket until its other end is closed."""
    # Loaded once, before any fork; nothing of it is used here.
    import fanin.runs.replay  # noqa: F401

    # Polars warns of forks because its pool of threads may be at work; here it never began.
    warnings.simplefilter("ignore")
    # What a terminal or a service manager says to all is for the process that asked: it stops its runs, and its end is this one's.
    for ending in (signal.SIGINT, *ENDINGS):
        signal.signal(ending, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    _adopt()
    gc.freeze()
    children: dict[int, tuple[int, socket.socket]] = {}
    with selectors.DefaultSelector() as ready, socket.socket(fileno=descriptor) as control:
        ready.register(control, selectors.EVENT_READ, None)
        try:
            while True:
                for key, _ in ready.select():
                    if key.fileobj is control:
                        if not _begin(control, ready, children):
                            return
                    elif key.data is not None and key.data in children:
                        _end(key.data, ready, children)
        finally:
            for pid in children:
                _kill(pid)


def _begin(control: socket.socket, ready: selectors.BaseSelector, children: dict[int, Any]) -> bool:
    """Fork a process for one piece of work; False when there will be no more."""
    told, descriptors, _, _ = socket.recv_fds(control, 16, DESCRIPTORS)
    if not told or len(descriptors) != DESCRIPTORS:
        return False
    request, result, said, about = descriptors
    parent, pid = os.getpid(), os.fork()
    if pid == 0:
        # Nothing of the parent's is this process's: it must not run what stands after this in the parent.
        code = 1
        try:
            control.close()
            # It tells the worker what has happened, by numbers of descriptors: code could make something happen to any of them.
            ready.close()
            os.close(about)
            for _, (other, line) in children.items():
                os.close(other)
                line.close()
            code = _work(parent, request, result, said)
        finally:
            os._exit(code)
    for each in (request, result, said):
        os.close(each)
    line = socket.socket(fileno=about)
    handle = os.pidfd_open(pid)
    children[pid] = (handle, line)
    line.send(json.dumps({"pid": pid}).encode())
    ready.register(handle, selectors.EVENT_READ, pid)
    # Whoever asked wants it no more when the other end is closed.
    ready.register(line, selectors.EVENT_READ, pid)
    return True


def _end(pid: int, ready: selectors.BaseSelector, children: dict[int, tuple[int, socket.socket]]) -> None:
    """A process has ended, or its caller has stopped waiting for it."""
    handle, line = children.pop(pid)
    # What has ended already ends no other way, and takes what it started with it.
    _kill(pid)
    _, status = os.waitpid(pid, 0)
    _wait_for_group(pid)
    for each in (handle, line):
        ready.unregister(each)
    os.close(handle)
    with suppress(OSError):
        line.send(json.dumps({"status": status}).encode())
    line.close()


def _kill(pid: int) -> None:
    """End a process that was not waited for, and the compiler that it may have started."""
    for end in (os.killpg, os.kill):
        with suppress(ProcessLookupError):
            end(pid, signal.SIGKILL)


def _wait_for_group(pid: int) -> None:
    """Until the compiler has ended as well: killed, it may still make a file in a folder that the caller is about to remove."""
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-pid, 0)


def _adopt() -> None:
    """Become the parent of what outlives its own (``PR_SET_CHILD_SUBREAPER``, prctl(2)), so that its end can be waited for."""
    import ctypes

    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)


def _work(parent: int, request: int, result: int, said: int) -> int:
    """Do one piece of work in this process; its exit code."""
    for ending in ENDINGS:
        signal.signal(ending, signal.SIG_DFL)
    for standard in (1, 2):
        os.dup2(said, standard)
    os.close(said)
    with open(request, "rb") as file:
        asked = pickle.load(file)
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    sys.path[:] = asked["path"]
    out = wire.Writer(result)
    try:
        if "describe" in asked:
            _describe(asked, out, parent)
        else:
            _native.end_with_parent(parent, group=False)
            (_read if "frames" in asked else _run)(asked, out)
        out.put(wire.DONE)
    except BaseException as error:
        out.put(wire.ERROR, json.dumps({"class": type(error).__name__, "message": _sentence(error)}).encode())
    sys.stdout.flush()
    sys.stderr.flush()
    return 0


def _name_files(named: dict[str, str]) -> None:
    for name, path in named.items():
        _native.name_c_file(name, path)


def _describe(asked: dict[str, Any], out: wire.Writer, parent: int) -> None:
    # A group of its own with the compiler, so that both are ended at once.
    os.setpgid(0, 0)
    _native.end_with_parent(parent, group=True)
    inside.become({}, lambda: None)
    _name_files(asked["named"])
    out.put(wire.SAID, json.dumps(inside.look(asked["describe"])).encode())


def _read(asked: dict[str, Any], out: wire.Writer) -> None:
    """What Polars makes of frames that code may have written."""
    inside.become({}, lambda: None)
    inside.confine([])
    out.frames({name: wire.frame(arrow) for name, arrow in asked["frames"].items()})


def _run(asked: dict[str, Any], out: wire.Writer) -> None:
    watch = _native.Watch()
    beat = inside.Beat(watch, out.progress)
    inside.become(asked["told"], beat.start)
    _name_files(asked["named"])
    job, method, args, named = pickle.loads(asked["work"])
    try:
        frames = getattr(job, method)(watch, *args, **named)
    finally:
        beat.stop()
    out.frames(frames)


def _sentence(error: BaseException) -> str:
    from fanin.algorithms import describe
    from fanin.errors import FaninError

    return str(error) if isinstance(error, FaninError) else describe(error)
