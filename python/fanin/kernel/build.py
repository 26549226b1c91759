"""From the distribution's kernel source to one binary in the cache.

Everything happens below the cache folder, as the user who asks. What is C is compiled once into a core (one object and how to link it), in
minutes; fanin's Rust is linked to it in seconds, so that a change of an algorithm or of the switch compiles no kernel. The source tree is
removed, unless it is kept so that a change of the C takes seconds, too.
"""

from __future__ import annotations

import fcntl
import hashlib
import lzma
import os
import re
import shlex
import shutil
import subprocess
import tarfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fanin.disk.files import shown
from fanin.errors import EngineError
from fanin.kernel import cache, edits
from fanin.process.progress import Progress, silent

PROGRAMS = {
    "make": "make",
    "gcc": "gcc",
    "ld": "binutils",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "xz": "xz-utils",
    "tar": "tar",
    "cargo": "cargo (or https://rustup.rs)",
}
"""What a build calls, and the Debian package it comes from."""

HEADERS = {"gelf.h": "libelf-dev", "libelf.h": "libelf-dev", "openssl/opensslv.h": "libssl-dev"}
"""Headers that a build may miss, and their packages."""

SOURCES = Path("/usr/src")
"""Where Debian's linux-source packages put their tarballs."""

SERIES = "6.12"
"""The kernel that the configuration and the C files are written for, and that every number in the docs was made with."""

ROOM = 16 * 2**20
"""Where fewer bytes are free, a build fails for want of room: linkers write their output in one piece, and say little."""

UNITS = 1150
"""Files that a build compiles, about: for the progress display."""

KERNEL_OBJECT, RUST_OBJECT, LINKER_SCRIPT, LINK_LINE = "kernel.o", "rust.o", "vmlinux.lds", "link"
"""Files of a core: all of the kernel but fanin's Rust, the place of that, and how they are linked."""

TAIL_LINES = 15
"""How much of a log is shown when a build fails."""

ProgressMaker = Callable[[str, int], Progress]


@dataclass(frozen=True, slots=True)
class Source:
    """Kernel source: a tarball, or a folder that is left as it is."""

    path: Path
    version: str


def find_source(given: Path | None = None) -> Source:
    """Find the source to build from: `given`, a tarball or a folder, else the distribution's package.

    Raises
    ------
    fanin.EngineError
        When there is none, or it is no kernel source.
    """
    if given is None:
        found = sorted(SOURCES.glob(f"linux-source-{SERIES}*.tar.*"))
        if not found:
            raise EngineError(
                f"there is no kernel source in {SOURCES}; install Debian's package (apt-get install linux-source-{SERIES}), or name a "
                "tarball or folder with --source"
            )
        given = found[-1]
    if given.is_dir():
        makefile = given / "Makefile"
        text = makefile.read_text(errors="replace") if makefile.is_file() else ""
    elif given.is_file():
        text = _makefile_of(given)
    else:
        raise EngineError(f"{shown(given)}: there is no such file or folder; name a kernel's source with --source")
    parts = dict(re.findall(r"^(VERSION|PATCHLEVEL|SUBLEVEL) = (\d+)$", text, re.MULTILINE))
    if len(parts) < 3:
        raise EngineError(f"{shown(given)}: this is no kernel source; name the tarball or folder of Linux {SERIES}")
    version = ".".join(parts[name] for name in ("VERSION", "PATCHLEVEL", "SUBLEVEL"))
    if not version.startswith(f"{SERIES}."):
        raise EngineError(f"{shown(given)}: it is Linux {version}, and fanin's files are for Linux {SERIES}")
    return Source(given.absolute(), version)


def _makefile_of(tarball: Path) -> str:
    try:
        with tarfile.open(tarball) as archive:
            for member in archive:
                if member.name.count("/") == 1 and member.name.endswith("/Makefile"):
                    file = archive.extractfile(member)
                    return file.read().decode(errors="replace") if file else ""
    except tarfile.ReadError as error:
        raise EngineError(
            f"{shown(tarball)}: this is no tarball, or a damaged one; name the tarball or folder of Linux {SERIES} with --source"
        ) from error
    except (tarfile.TarError, OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "it is damaged or cut short"
        raise EngineError(
            f"{shown(tarball)}: this tarball cannot be read ({why.lower()}); name another with --source"
        ) from error
    return ""


def check_tools() -> None:
    """Raise with the packages to install when a program that a build needs is missing."""
    missing = {program: package for program, package in PROGRAMS.items() if shutil.which(program) is None}
    if missing:
        packages = " ".join(dict.fromkeys(missing.values()))
        raise EngineError(f"building the kernel needs {', '.join(missing)}; Debian: apt-get install {packages}")


def build(
    source: Path | None = None,
    *,
    hertz: int = cache.HERTZ[0],
    cc: Sequence[Path] = (),
    keep: bool = False,
    progress: ProgressMaker = silent,
) -> cache.Kernel:
    """Build the virtual kernel, or return the one that is there.

    Parameters
    ----------
    source : pathlib.Path, optional
        A tarball or folder of Linux 6.12; the distribution's package unless given.
    hertz : int
        Timer frequency: 250, as Debian's kernels have it, or 1000.
    cc : sequence of pathlib.Path
        C files that register a ``tcp_congestion_ops``, to be built in.
    keep : bool
        Keep the source tree with its objects, so that the next build compiles only what changed.
    progress : callable
        Makes the progress display.

    Returns
    -------
    fanin.kernel.cache.Kernel

    Raises
    ------
    fanin.EngineError
        When something it needs is missing, or the build fails; with the last lines of its log.
    """
    files = [checked_c_file(path) for path in cc]
    # A wrong name is said before anything is compiled.
    wanted = find_source(source) if source is not None else None
    root = cache.folder()
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot_write(root, error) from error
    with _alone(root, progress):
        if not cache.guest_path().is_file():
            if shutil.which("cargo") is None:
                check_tools()
            with progress("compiling the player", 1):
                _build_guest(root)
        if wanted is None and (files or not cache.built(hertz)):
            wanted = find_source(None)
        if wanted is not None:
            extra = cache.file_hash((path.name, path) for path in files) if files else ""
            target = cache.kernel_path(wanted.version, hertz, extra)
            if not target.is_file():
                check_tools()
                core = cache.core_path(wanted.version, hertz, extra)
                if not core.is_dir():
                    _build_core(root, wanted, hertz, files, core, keep, progress)
                extra_folder = cache.extra_folder(target)
                shutil.rmtree(extra_folder, ignore_errors=True)
                extra_folder.mkdir()
                for path in files:
                    shutil.copyfile(path, extra_folder / path.name)
                with progress("linking fanin's Rust", 1):
                    _link(root, core, target)
            # The newest is the one that runs use.
            os.utime(target)
    return cache.find(hertz)


def _cannot_write(root: Path, error: OSError) -> EngineError:
    why = (error.strerror or "unknown reason").lower()
    return EngineError(f"{shown(root)}: cannot be written ({why}); choose another folder with FANIN_KERNEL_CACHE")


@contextmanager
def _alone(root: Path, progress: ProgressMaker) -> Iterator[None]:
    """One build at a time in a cache; another waits and finds what the first has built."""
    try:
        lock = (root / "build.lock").open("w")
    except OSError as error:
        raise _cannot_write(root, error) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with progress("waiting for another build", 1):
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def checked_c_file(path: Path) -> Path:
    """A C file with a ``tcp_congestion_ops`` in it."""
    if not path.is_file():
        raise EngineError(f"{shown(path)}: there is no such file; name a C file with --cc")
    if path.suffix != ".c" or not re.search(
        r"\btcp_register_congestion_control\b|\bCC_REGISTER\b", path.read_text(errors="replace")
    ):
        raise EngineError(
            f"{shown(path)}: it does not call tcp_register_congestion_control(); --cc takes a C file as in Linux's net/ipv4/tcp_*.c"
        )
    return path


def _build_guest(root: Path) -> None:
    # Named by the source as it is now, not as it may be when the build ends.
    made = cache.guest_path()
    target = "x86_64-unknown-linux-gnu"
    # Static: it starts faster, and the guest has no other file.
    environment = {**os.environ, "RUSTFLAGS": "-C target-feature=+crt-static"}
    command = ["cargo", "build", "--release", "--locked", "-p", "fanin-guest", "--target", target]
    # A folder for each source tree: two trees would take each other's program for their own.
    place = root / "cargo" / hashlib.sha256(str(cache.sources()).encode()).hexdigest()[:8]
    command += ["--target-dir", str(place)]
    _run(command, cache.sources(), root / "build.log", environment=environment)
    _install(place / target / "release" / "fanin-guest", made)


def _build_core(
    root: Path, source: Source, hertz: int, cc: Sequence[Path], core: Path, keep: bool, progress: ProgressMaker
) -> None:
    """Compile all that is C."""
    log = root / "build.log"
    # A tree that was configured otherwise cannot be gone on with.
    kept = root / f"tree-{source.version}-hz{hertz}-{cache.configuration_hash()}"
    tree = kept if kept.is_dir() or keep else root / f"building-{os.getpid()}"
    try:
        if not tree.is_dir():
            with progress("unpacking the source", 1):
                _unpack(source, tree, log, hertz)
        _put_in(tree, cc, log, root)
        with progress("compiling the kernel", UNITS) as bar:
            jobs = len(os.sched_getaffinity(0))
            environment = {**os.environ, "KBUILD_BUILD_TIMESTAMP": "2025-01-01", "KBUILD_BUILD_USER": "fanin"}
            environment["KBUILD_BUILD_HOST"] = "fanin"
            make = ["make", "ARCH=um", f"-j{jobs}", "linux"]
            _run(make, tree, log, environment=environment, bar=bar)
            # Once more the last step alone, to be told how it is done.
            (tree / "vmlinux").unlink()
            _run([*make, "V=1"], tree, log, environment=environment)
        _save_core(tree, log, core)
    finally:
        if tree != kept:
            shutil.rmtree(tree, ignore_errors=True)


def _save_core(tree: Path, log: Path, core: Path) -> None:
    """Keep what a link needs: every object but fanin's Rust as one, the linker's script, and the compiler's options."""
    links = [line for line in log.read_text(errors="replace").splitlines() if re.match(r"\++ \S+ .*-o vmlinux ", line)]
    options = shlex.split(links[-1].lstrip("+ ")) if links else []
    script = next((o for o in options if "--script=" in o), None)
    parts = [o for o in options if o.endswith((".o", ".a"))]
    if script is None or not parts or not parts[0].endswith(("vmlinux.a", "vmlinux.o")):
        raise EngineError(f"this kernel source links in an unknown way; use Debian's linux-source-{SERIES}")
    part = core.with_name(core.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    try:
        members = subprocess.run(["ar", "t", "vmlinux.a"], cwd=tree, capture_output=True, text=True, check=True).stdout
        objects = part / "objects"
        objects.write_text("\n".join(m for m in members.split() if not m.endswith("net/fanin/rust.o")))
        libraries = sorted(str(p.relative_to(tree)) for p in tree.glob("lib/lib.a"))
        whole = ["ld", "-m", "elf_x86_64", "-z", "noexecstack", "-r", "-o", str(part / KERNEL_OBJECT), f"@{objects}"]
        _run([*whole, "--start-group", *libraries, "--end-group"], tree, log)
        objects.unlink()
        shutil.copy(tree / script.split("--script=")[1], part / LINKER_SCRIPT)
        for object_ in parts[1:]:
            shutil.copy(tree / object_, part / Path(object_).name)
        others = [o for o in options if o not in parts and "--script=" not in o and "whole-archive" not in o]
        others = [o for o in others if not o.endswith(("-start-group", "-end-group"))]
        at = others.index("-o")
        del others[at : at + 2]
        libs = [o for o in others if o.startswith("-l")]
        line = [o for o in others if o not in libs] + [f"-Wl,--script={LINKER_SCRIPT}", KERNEL_OBJECT]
        line += [Path(o).name for o in parts[1:]] + [RUST_OBJECT, *libs]
        (part / LINK_LINE).write_text(shlex.join(line))
        shutil.rmtree(core, ignore_errors=True)
        part.rename(core)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _link(root: Path, core: Path, target: Path) -> None:
    """The core with fanin's Rust as it is now."""
    log = root / "build.log"
    place = root / f"linking-{os.getpid()}"
    shutil.rmtree(place, ignore_errors=True)
    try:
        shutil.copytree(core, place)
        _rust_object(root, log, place / RUST_OBJECT)
        command = shlex.split((core / LINK_LINE).read_text())
        _run([*command, "-o", "linux"], place, log)
        _install(place / "linux", target)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _unpack(source: Source, tree: Path, log: Path, hertz: int) -> None:
    """Unpack and configure: the tree appears under its name when it is ready to compile."""
    part = tree.with_name(tree.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        if source.path.is_dir():
            shutil.copytree(source.path, part, symlinks=True)
            _run(["make", "ARCH=um", "mrproper"], part, log)
        else:
            part.mkdir()
            # Not read by a build for this architecture.
            options = [
                "--exclude=*/Documentation/*/*",
                "--exclude=*/drivers/gpu/drm/*.h",
                "--exclude=*/tools/testing/*",
            ]
            _run(["tar", "-xf", str(source.path), "--strip-components=1", *options], part, log)
        _configure(part, hertz, log)
        part.rename(tree)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _configure(tree: Path, hertz: int, log: Path) -> None:
    """Configuration, and the places of the source that virtual time needs changed."""
    edits.apply(tree, hertz, SERIES)
    shutil.copy(cache.sources() / "kernel/um/archrandom.h", tree / "arch/um/include/asm/archrandom.h")
    (tree / "net/fanin").mkdir()
    (tree / "net/fanin/Makefile").touch()
    _run(["make", "ARCH=um", "allnoconfig"], tree, log)
    fragment = cache.sources() / "kernel/config"
    _run(["scripts/kconfig/merge_config.sh", "-m", ".config", str(fragment)], tree, log)
    _run(["make", "ARCH=um", "olddefconfig"], tree, log)
    made = set((tree / ".config").read_text().splitlines())
    lost = [line for line in fragment.read_text().splitlines() if line.startswith("CONFIG_") and line not in made]
    if lost:
        raise EngineError(f"this kernel source does not take {', '.join(lost)}; use Debian's linux-source-{SERIES}")


def _put_in(tree: Path, cc: Sequence[Path], log: Path, root: Path) -> None:
    """Copy our own files into the tree; those that are there as they are stay untouched, so that make sees no change."""
    place = tree / "net/fanin"
    for file in (cache.sources() / "kernel/net").iterdir():
        _copy_changed(file, place / file.name)
    _put_in_cc(place / "cc", [*sorted((cache.sources() / "kernel/cc").glob("*.[ch]")), *cc])
    made = root / f"rust-{os.getpid()}.o"
    try:
        _rust_object(root, log, made)
        _copy_changed(made, place / "rust.o_shipped")
    finally:
        made.unlink(missing_ok=True)


def _rust_object(root: Path, log: Path, made: Path) -> None:
    """Make one object of fanin's Rust: every function that the kernel's C calls, and what they need."""
    library = root / "cargo/release/libfanin_kernel.a"
    command = ["cargo", "build", "--release", "--locked", "--target-dir", str(root / "cargo")]
    _run(command, cache.sources() / "kernel/abi", log)
    wanted = [option for symbol in _symbols() for option in ("-u", symbol)]
    _run(["ld", "-r", *wanted, str(library), "-o", str(made)], root, log)
    # What the Rust compiler keeps for link-time optimisation: the kernel's linker warns of it.
    _run(["objcopy", "-R", ".llvmbc", "-R", ".llvmcmd", "--strip-debug", str(made)], root, log)


def _symbols() -> list[str]:
    """What the kernel's C calls of Rust: the functions that kernel/abi exports."""
    sources = (cache.sources() / "kernel/abi/src").glob("*.rs")
    return sorted(name for p in sources for name in re.findall(r'pub unsafe extern "C" fn (\w+)', p.read_text()))


def _put_in_cc(folder: Path, files: Sequence[Path]) -> None:
    """Congestion controls: fanin's twins (see docs/linux.md), then the user's; a file of the same name takes the place of ours."""
    chosen = {path.name: path for path in files}
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.[ch]"):
        if old.name not in chosen:
            old.unlink()
    for name, path in chosen.items():
        _copy_changed(path, folder / name)
    objects = " ".join(name.removesuffix(".c") + ".o" for name in sorted(chosen) if name.endswith(".c"))
    makefile = folder / "Makefile"
    text = f"obj-y := {objects}\n"
    if not makefile.is_file() or makefile.read_text() != text:
        makefile.write_text(text)


def _copy_changed(source: Path, target: Path) -> None:
    if not target.is_file() or source.read_bytes() != target.read_bytes():
        shutil.copyfile(source, target)


def _install(made: Path, target: Path) -> None:
    """Into the cache, whole or not at all."""
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    shutil.copy(made, part)
    part.chmod(0o755)
    part.replace(target)


def _run(
    command: Sequence[str],
    folder: Path,
    log: Path,
    *,
    environment: dict[str, str] | None = None,
    bar: Progress | None = None,
) -> None:
    """Run a step of the build; its output goes to the log."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        compiled = 0
        try:
            assert process.stdout is not None  # as asked for
            for line in process.stdout:
                output.write(line)
                if line.startswith(b"  CC"):
                    compiled += 1
                    if bar is not None:
                        bar.update(min(compiled, UNITS - 1))
            process.wait()
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
    if process.returncode != 0:
        raise EngineError(failure(log, command[0]))


def failure(log: Path, step: str) -> str:
    """Say what a failed step said last, and which package it misses if that is why."""
    text = log.read_text(errors="replace")
    hints = [package for header, package in HEADERS.items() if f"{header}: No such file" in text]
    if re.search(r"cannot find -l(c|util|m)\b", text):
        hints.append("libc6-dev")
    if hints:
        return f"building the kernel needs {hints[0]}; Debian: apt-get install {hints[0]}"
    if shutil.disk_usage(log.parent).free < ROOM:
        return f"no space is left in {shown(log.parent)}; make room, or choose another folder with FANIN_KERNEL_CACHE"
    lines = [line for line in text.strip().splitlines() if line.strip()][-TAIL_LINES:]
    end = "\n  ".join(lines)
    return f"building the kernel failed in `{Path(step).name}`; the whole log is {log}, and its end:\n  {end}"
