"""Names for what is kept of a kernel's runs: by kernel and by what is handed to it, so that a change of the simulator runs no kernel again."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import TYPE_CHECKING

from fanin import _native
from fanin.kernel.cache import Kernel, algorithms_key, file_hash, sources, transport_key
from fanin.kernel.machine import scratch

if TYPE_CHECKING:
    from fanin._native import Plan


@cache
def reader() -> str:
    """Names how a kernel's records become results."""
    root = sources()
    files = (root / "crates/kernel/src").rglob("*.rs")
    return file_hash((str(p.relative_to(root)), p) for p in files)


OWN = ("programs", "receivers")
"""What is handed to a kernel in which algorithms of fanin's run."""


def engine_of(kernel: Kernel, how: str) -> str:
    """A kernel as a store's engine; `how` says what else makes frames of its records."""
    extra = file_hash((file.name, file) for file in kernel.extra) if kernel.extra else "plain"
    return f"linux-{kernel.version}-hz{kernel.hertz}-{transport_key()}-{extra}-{kernel.guest.name}-{how}-{reader()}"


def handed(plan: Plan, kernel: Kernel, seed: int, whose: str, what: str = "") -> str:
    """Names a run by what is handed to a kernel, with `whose` algorithms, and `what` is kept of it.

    Linux's own algorithms do the same whatever becomes of fanin's.
    """
    with scratch() as folder:
        _native.kernel_prepare(plan, folder, whose, kernel.hertz)
        key = file_hash((p.name, p) for p in folder.iterdir() if p.is_file())
        own = algorithms_key() if any((folder / name).exists() for name in OWN) else ""
    return hashlib.sha256(f"{key} {own} {whose} {seed} {what}".encode()).hexdigest()[:32]
