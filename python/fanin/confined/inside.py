"""The side of a worker: what it was told, and how it gives its rights away."""

from __future__ import annotations

import json
import os
import resource
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fanin import _native
from fanin.confined.environment import COMPILERS
from fanin.disk.scratch import scratch_folder

SYSTEM = (
    "/usr",
    "/lib",
    "/lib64",
    "/lib32",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/proc/self",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/filesystems",
    "/proc/sys/kernel",
    "/proc/sys/vm",
    "/sys/devices/system",
    "/sys/fs/cgroup",
    "/dev/null",
    "/dev/zero",
    "/dev/urandom",
)
"""What loaders, C libraries and Python read. Of other processes nothing: what a user's programs were started with may be secret."""


@dataclass
class _Worker:
    """What a worker was told of code, by name, and what it does once it has no rights any more."""

    told: dict[str, dict[str, Any]] = field(default_factory=dict)
    confined: bool = False
    begin: Callable[[], None] = lambda: None


_worker: _Worker | None = None


def become(told: dict[str, dict[str, Any]], begin: Callable[[], None]) -> None:
    """Make this process a worker; `begin` is called when it has given its rights away."""
    global _worker
    _worker = _Worker(told, begin=begin)


def is_worker() -> bool:
    """Whether this process may load code, without rights."""
    return _worker is not None


def told(name: str) -> dict[str, Any] | None:
    """What this worker was told of code; None in a process that is no worker."""
    if _worker is None:
        return None
    return _worker.told[name]["said"] if name in _worker.told else None


def confine(writable: list[Path]) -> None:
    """Give the rights of this process away, once, and be ready to load code."""
    assert _worker is not None
    if _worker.confined:
        return
    if len(list(Path("/proc/self/task").iterdir())) > 1:
        # Rights are a thread's: another would keep them.
        raise RuntimeError("a worker has a second thread before it gives its rights away")
    objects = {name: tuple(one["object"]) for name, one in _worker.told.items() if one["object"] is not None}
    readable = {*SYSTEM, *_own()}
    readable |= {path for path, _ in objects.values()}
    if len(objects) < len(_worker.told):
        # Classes are found in the current folder or on Python's path, and may import what is beside them.
        readable |= {str(Path.cwd()), *(path for path in sys.path if path)}
    copied = sorted(path for path, _ in objects.values())
    _native.confine(sorted(readable), [str(folder) for folder in writable], _memory(), copied=copied)
    _native.admit_code(objects)
    _worker.confined = True
    _worker.begin()


def _own() -> set[str]:
    """Python's folders and fanin's."""
    return {sys.prefix, sys.base_prefix, sys.exec_prefix, str(Path(__file__).parents[1])}


def _memory() -> int | None:
    """Address space that the run may have: what it has, and what the machine has left."""
    from fanin.runs.executor import memory_left

    left = memory_left()
    if left is None:
        return None
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    return left + pages * os.sysconf("SC_PAGE_SIZE")


def look(name: str) -> dict[str, Any]:
    """Compile code with the rights of a compiler, load it without any, and say what it says of itself.

    Returns
    -------
    dict
        ``said`` as :func:`fanin.confined.describe`, ``object`` (path and version of compiled C, else None), ``files`` that it was made from.
    """
    assert _worker is not None
    compiled: tuple[str, str] | None = None
    files: list[str] = []
    if not name.startswith("py:"):
        from fanin.confined.client import limit_s

        cache, source = map(Path, _native.c_places(name))
        with scratch_folder(cache) as work:
            _confine_compiler(source, cache)
            with _limited(limit_s()):
                path, version, made_from = _native.compile_c(name, work)
        compiled, files = (str(path), version), [str(Path(file).resolve()) for file in made_from]
    _worker.told[name] = {"object": compiled}
    confine([])
    said = _native.describe_code(name)
    if compiled is None:
        files = _sources(name)
    # As it will be read on the other side.
    told: dict[str, Any] = json.loads(json.dumps({"said": said, "object": compiled, "files": files}))
    return told


def _confine_compiler(source: Path, cache: Path) -> None:
    """Keep the rights to start programs, to read what compilers read and what is beside the file, and to write into the cache."""
    readable = {*SYSTEM, *_own(), str(source.parent), str(source.resolve().parent), str(cache)}
    for program in dict.fromkeys((os.environ.get("CC", "cc"), "cc", "clang")):
        found = shutil.which(program)
        for place in (Path(found), Path(found).resolve()) if found else ():
            # A compiler that was installed elsewhere has its own headers and libraries beside `bin`.
            own = place.parent.name == "bin" and (place.parents[1] / "lib").is_dir()
            readable.add(str(place.parents[1] if own else place.parent))
    for paths in COMPILERS:
        readable |= {path for path in os.environ.get(paths, "").split(os.pathsep) if path}
    _native.confine(sorted(readable), [str(cache), "/dev/null"], _memory(), programs=True)


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Let each program that is started use the processor for so long."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    before, most = resource.getrlimit(resource.RLIMIT_CPU)
    limit = int(used.ru_utime + used.ru_stime + seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit if most == resource.RLIM_INFINITY else min(limit, most), most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_CPU, (before, most))


def _sources(name: str) -> list[str]:
    """The files of a class and its bases, and what they import beside them."""
    from fanin.algorithms import CongestionControl, find, sources

    cls = find(name)
    own = [base for base in (cls.__mro__ if cls else ()) if base not in (CongestionControl, object)]
    return [str(file.resolve()) for file in dict.fromkeys(file for base in own for file in sources(base))]


class Beat:
    """Tells every tenth of a second how far a run is, from a thread."""

    def __init__(self, watch: _native.Watch, tell: Callable[[float], None]) -> None:
        self._watch, self._tell = watch, tell
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._go, daemon=True)

    def start(self) -> None:
        """Begin; the thread has the rights that this process has left."""
        self._thread.start()

    def _go(self) -> None:
        while not self._end.wait(0.1):
            self._tell(self._watch.fraction)

    def stop(self) -> None:
        """No more is told."""
        self._end.set()
        if self._thread.ident is not None:
            self._thread.join()
