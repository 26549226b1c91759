"""Scratch files and folders. Their maker holds a lock on each while it works, so that what a killed process left is known, and removed by the next.

The system releases the lock of a process that ends, however it ends. Where a file system has no locks, nothing that another process made is removed.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from fanin.process.limits import files_limited

PREFIX = ".fanin-"
"""Of what stands beside results until it is whole."""


@contextmanager
def scratch_folder(parent: str | Path, prefix: str = PREFIX) -> Iterator[Path]:
    """A folder that is removed when the block ends; those of killed processes are removed first.

    Parameters
    ----------
    parent : path
        Where.
    prefix : str
        Of its name.

    Raises
    ------
    OSError
        When none can be made in `parent`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place, scratch_folder(place) as folder:
    ...     folder.parent == Path(place), folder.is_dir()
    (True, True)
    """
    with _made(lambda path: path.mkdir(0o700), Path(parent), prefix, "") as folder:
        yield folder


@contextmanager
def scratch_file(parent: str | Path, suffix: str, prefix: str = PREFIX) -> Iterator[Path]:
    """An empty file that is removed when the block ends, unless it was moved; those of killed processes are removed first.

    Raises
    ------
    OSError
        When none can be made in `parent`.
    """
    with _made(lambda path: path.touch(0o600, exist_ok=False), Path(parent), prefix, suffix) as file:
        yield file


@contextmanager
def _made(make: Callable[[Path], None], parent: Path, prefix: str, suffix: str) -> Iterator[Path]:
    remove_abandoned(parent, prefix)
    lock: int | None = None
    while True:
        path = parent / f"{prefix}{secrets.token_hex(8)}{suffix}"
        another = False
        # Before it is there: memory may run out in making it.
        with going([path]):
            try:
                try:
                    make(path)
                except FileExistsError:
                    another = True
                    raise
                lock = locked(path)
                # Before it was locked, or even opened, another process may have taken it for abandoned.
                if path.exists():
                    yield path
                    return
            finally:
                if not another:
                    remove(path)
                    if path.exists():
                        # Without memory it cannot be listed: it goes as the process ends.
                        _LIVE.insert(0, path.absolute())
                if lock is not None:
                    os.close(lock)
                    lock = None


@contextmanager
def going(paths: Sequence[Path]) -> Iterator[None]:
    """Have scratch and empty folders removed if memory runs out before the block ends: the last named first, each list in its order."""
    mine = [path.absolute() for path in paths]
    _LIVE[:0] = mine
    try:
        _tell()
        yield
    finally:
        for one in mine:
            if not any(one in other.parents for other in _LIVE):
                _LIVE.remove(one)
        _tell()


_LIVE: list[Path] = []
"""What is to go when this process ends without a chance to remove it."""


def is_left() -> bool:
    """Outside every block: something could not be removed."""
    return bool(_LIVE)


def remove_all() -> None:
    """Remove what is to go when this process ends, as it ends without a chance to leave its blocks."""
    for path in list(_LIVE):
        if path.name.startswith((PREFIX, ".new-")):
            remove(path)
        else:
            with suppress(OSError):
                path.rmdir()


def _tell() -> None:
    native = sys.modules.get("fanin._native")
    if native is not None:
        native.clean_without_memory(_LIVE)


def remove_abandoned(parent: str | Path, prefix: str = PREFIX) -> None:
    """Remove what killed processes of this user left in a folder: no process holds its lock."""
    for path in of_this_user(parent, prefix):
        lock = locked(path, wait=False)
        if lock is not None:
            # Under the lock, so that its maker, if it is only just about to lock it, finds it gone.
            remove(path)
            os.close(lock)


def of_this_user(parent: str | Path, prefix: str) -> list[Path]:
    """Files and folders of this user whose names begin so."""
    try:
        with os.scandir(parent) as entries:
            return [
                Path(entry.path)
                for entry in entries
                if entry.name.startswith(prefix)
                and not entry.is_symlink()
                and entry.stat(follow_symlinks=False).st_uid == os.getuid()
            ]
    except OSError:
        return []


def locked(path: Path, *, wait: bool = True) -> int | None:
    """The lock of a file or folder as an open handle; None where it cannot be had: the file system has none, or, without `wait`, another has it."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        os.close(handle)
        return None
    return handle


def _reserve() -> list[int]:
    """Open handles to be given up where few are allowed (``ulimit -n``) and what is half written must go."""
    kept: list[int] = []
    if files_limited():
        with suppress(OSError):
            kept.extend(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC) for _ in range(3))
    return kept


_RESERVE = _reserve()


def remove(path: Path) -> None:
    """Remove a file or a folder, if it can be."""
    if path.is_dir() and not path.is_symlink():
        # An empty one goes without a handle, of which there may be none left (ulimit -n).
        with suppress(OSError):
            path.rmdir()
            return
        shutil.rmtree(path, ignore_errors=True)
        if path.exists() and _RESERVE:
            # To list a folder takes handles.
            while _RESERVE:
                os.close(_RESERVE.pop())
            shutil.rmtree(path, ignore_errors=True)
        return
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return
