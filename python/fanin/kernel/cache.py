"""Where built kernels are, and which one fits this fanin.

A kernel is known by the version of its source, its HZ, and a hash of everything of fanin's that is in it. Its core, all but fanin's Rust, is
kept under a hash of its own, since it takes minutes; so has the program that runs in the kernel.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fanin import _native
from fanin.errors import EngineError

HERTZ = (250, 1000)
"""Timer frequencies that a kernel is built for; the first is Debian's, and the default."""

IN_CORE = ("kernel/config", "kernel/cc", "kernel/net", "kernel/um", "python/fanin/kernel/edits.py")
"""What of fanin is compiled with the kernel: a change of it compiles all of it again."""

ALGORITHMS = ("crates/linuxcc", "crates/cc")
"""What of fanin runs in a kernel only where an algorithm of fanin's does."""

IN_KERNEL = (*IN_CORE, "kernel/abi", *ALGORITHMS, "crates/fabric", "crates/switch", "crates/units")
"""What of fanin is in the kernel. What is not in the core is Rust, linked to it in seconds."""

IN_GUEST = ("crates/guest", "crates/player")
"""What of fanin the program in the kernel is made of."""


UNRELATED = {"target", "tests", "benches"}
"""Folders in these that are not compiled into it."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A built kernel and the program that runs in it.

    Attributes
    ----------
    linux, guest : pathlib.Path
        The two binaries.
    version : str
        Version of the source, such as ``6.12.117``.
    hertz : int
        Timer frequency: 250 or 1000.
    extra : tuple of pathlib.Path
        C files that were built in with ``--cc``, as they were then.
    """

    linux: Path
    guest: Path
    version: str
    hertz: int
    extra: tuple[Path, ...] = ()


def folder() -> Path:
    """The cache: ``$FANIN_KERNEL_CACHE``, else ``fanin/kernel`` in the user's cache folder (XDG)."""
    own = os.environ.get("FANIN_KERNEL_CACHE")
    if own:
        return Path(own).absolute()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base).absolute() / "fanin" / "kernel"


def sources() -> Path:
    """The folder of fanin's own source, which a kernel is built with.

    Raises
    ------
    fanin.EngineError
        When fanin was installed without it.
    """
    root = Path(__file__).resolve().parents[3]
    if not (root / "kernel" / "config").is_file():
        raise EngineError(
            "the virtual kernel is built from fanin's source, and this installation has none; clone the repository and run `make build` there"
        )
    return root


def file_hash(files: Iterable[tuple[str, Path]]) -> str:
    """Hash of files by name and content."""
    total = hashlib.sha256()
    for name, path in sorted(files):
        content = path.read_bytes()
        total.update(f"{name}\0{len(content)}\0".encode())
        total.update(content)
    return total.hexdigest()[:12]


def _hash_of(parts: tuple[str, ...]) -> str:
    root = sources()
    files = []
    for part in parts:
        path = root / part
        inside = (
            [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file() and not UNRELATED & set(p.parts)]
        )
        files += [(str(p.relative_to(root)), p) for p in inside]
    return file_hash(files)


def kernel_key() -> str:
    """Hash of what of fanin is in a kernel."""
    return _hash_of(IN_KERNEL)


@functools.cache
def transport_key() -> str:
    """Hash of what of fanin is in a kernel whatever algorithm runs."""
    return _hash_of(tuple(part for part in IN_KERNEL if part not in ALGORITHMS))


@functools.cache
def algorithms_key() -> str:
    """Hash of fanin's algorithms in a kernel."""
    return _hash_of(ALGORITHMS)


def configuration_hash() -> str:
    """Hash of what decides how a source tree is configured and edited."""
    return _hash_of(("kernel/config", "kernel/um", "python/fanin/kernel/edits.py"))


def core_path(version: str, hertz: int, extra: str = "") -> Path:
    """Folder of a kernel but for fanin's Rust, once compiled; `extra` is the hash of C files built in."""
    suffix = f"-cc{extra}" if extra else ""
    return folder() / f"core-{version}-hz{hertz}-{_hash_of(IN_CORE)}{suffix}"


def guest_path() -> Path:
    """Where the program for the kernel is, once built."""
    return folder() / f"guest-{_hash_of(IN_GUEST)}"


def kernel_path(version: str, hertz: int, extra: str = "") -> Path:
    """Where a kernel of this source version is, once built; `extra` is the hash of C files built in."""
    suffix = f"-cc{extra}" if extra else ""
    return folder() / f"linux-{version}-hz{hertz}-{kernel_key()}{suffix}"


def extra_folder(kernel: Path) -> Path:
    """Where the C files are kept that a kernel was built with."""
    return kernel.with_name(f"{kernel.name}.cc")


def built(hertz: int) -> list[Path]:
    """Kernels for this fanin, the newest build first: with C files of the user's, and without."""
    found = [
        p
        for p in folder().glob(f"linux-*-hz{hertz}-{kernel_key()}*")
        if p.is_file() and p.suffix not in (".cc", ".part")
    ]
    return sorted(found, key=lambda p: p.stat().st_mtime, reverse=True)


def find(hertz: int = HERTZ[0]) -> Kernel:
    """The kernel to run with.

    Parameters
    ----------
    hertz : int
        Timer frequency, 250 or 1000.

    Returns
    -------
    Kernel

    Raises
    ------
    fanin.EngineError
        When it is not built, or was built from other files of fanin's.
    """
    option = "" if hertz == HERTZ[0] else f" --hz {hertz}"
    kernels = built(hertz)
    if not kernels or not guest_path().is_file():
        older = any(folder().glob(f"linux-*-hz{hertz}-*"))
        why = "was built for another version of fanin" if older else "is not built"
        raise EngineError(f"the virtual kernel (HZ={hertz}) {why}; run `fanin kernel build{option}`")
    path = kernels[0]
    version = path.name.split("-hz")[0].removeprefix("linux-")
    extra = tuple(sorted(extra_folder(path).glob("*.c")))
    for file in extra:
        # `--cc` takes the name of a file that is built in, too.
        _native.name_c_file(file.stem, file)
    return Kernel(linux=path, guest=guest_path(), version=version, hertz=hertz, extra=extra)
