"""Texts that are the same every time they are made, kept in the user's cache between runs.

A file that was cut or changed is made again: a page's policy must not vouch for it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path


def kept(name: str, make: Callable[[], str]) -> str:
    """The text of this name, made only where the cache has none."""
    content = recalled(name)
    if content is not None:
        return content.decode()
    text = make()
    keep(name, text.encode())
    return text


def recalled(name: str) -> bytes | None:
    """What was kept under a name, whole; None without."""
    try:
        content, _, digest = (cache_folder() / name).read_bytes().rpartition(b"\n//")
    except (OSError, RuntimeError):
        return None
    return content if digest.decode("ascii", "replace") == hashlib.sha256(content).hexdigest() else None


def keep(name: str, content: bytes) -> None:
    """Keep it, whole or not at all; a home that cannot be written costs the next run the same time."""
    beside = None
    try:
        home = cache_folder()
        home.mkdir(parents=True, exist_ok=True)
        beside = home / f"{name}.{os.getpid()}.part"
        beside.write_bytes(b"%s\n//%s" % (content, hashlib.sha256(content).hexdigest().encode()))
        beside.replace(home / name)
    except (OSError, RuntimeError):
        if beside is not None:
            beside.unlink(missing_ok=True)


def cache_folder() -> Path:
    """``fanin`` in the user's cache; raises RuntimeError where the user has no home."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fanin"
