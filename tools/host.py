"""``fanin-host`` and the launcher as static programs: ``tools/host.py ARCHITECTURE PROGRAM...``, into ``target/host``.

They are linked with musl, whose code a distribution's own tools need not have: Rust brings the library, Debian's ``musl-dev`` the headers. Where one of
both is missing they are linked with glibc, as static, and that is said. libbpf needs libelf and zlib; both are compiled here from the sources that its
crate carries, by the C compiler alone (elfutils' own ``configure`` wants autoconf, and argp, fts and obstack, which libelf does not use).
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))

CONFIG = """\
#define HAVE_DECL_MEMRCHR 1
#define HAVE_DECL_POWEROF2 1
#define HAVE_DECL_MEMPCPY 1
#define HAVE_DECL_REALLOCARRAY 1
#define HAVE_ERR_H 1
#define HAVE_MREMAP 1
#define HAVE_VISIBILITY 1
#define HAVE_FALLTHROUGH 1
#include <eu-config.h>
"""
"""What elfutils' ``configure`` finds with both C libraries. No threads share one ELF file here, and no file is compressed by zstd."""


def main(arch: str, *programs: str) -> None:
    """Compile, strip, and copy."""
    lacking = without_musl(arch)
    if lacking is not None:
        print(f"linking with glibc, not musl: {lacking}", flush=True)
    target = triple(arch)
    flags = compiler_flags(arch)
    libraries = TARGET / "host" / "lib" / target
    _libraries(arch, flags, libraries)
    name = target.upper().replace("-", "_")
    environment = {
        **os.environ,
        f"CARGO_TARGET_{name}_LINKER": compiler(arch),
        f"CC_{name.lower()}": compiler(arch),
        f"CFLAGS_{name.lower()}": " ".join(flags),
        "LIBBPF_SYS_LIBRARY_PATH": str(libraries),
        "LIBBPF_SYS_EXTRA_CFLAGS": " ".join(f"-I{source() / part}" for part in ("elfutils/libelf", "zlib")),
        # The system's would name its own libelf.
        "PKG_CONFIG": "true",
        "RUSTFLAGS": "-C target-feature=+crt-static",
    }
    packages = [word for program in programs for word in ("--package", PACKAGES[program])]
    how = ["--release", "--features", "fanin-host/static", "--target", target, "--config", "profile.release.strip=true"]
    words = ["cargo", "build", *packages, *how]
    if subprocess.run(words, cwd=ROOT, env=environment, check=False).returncode != 0:
        sys.exit(f"{' and '.join(programs)} cannot be built for {target}; what Cargo says is above")
    for program in programs:
        # That of another architecture is told apart by its name.
        end = "" if arch == platform.machine() else f"-{DEBIAN[arch]}"
        shutil.copy(TARGET / target / "release" / program, ROOT / "target/host" / f"{program}{end}")


PACKAGES = {"fanin-host": "fanin-host", "fanin": "fanin-launcher"}
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}


@cache
def without_musl(arch: str) -> str | None:
    """What is missing to link with musl, and how to get it."""
    target = f"{arch}-unknown-linux-musl"
    if not _rusts_libc(target).exists():
        # A new machine's Rust has only its own target; that of an offline one keeps it.
        if shutil.which("rustup"):
            subprocess.run(["rustup", "--quiet", "target", "add", target], check=False, capture_output=True)
        if not _rusts_libc(target).exists():
            return f"Rust has no musl for {arch} here (rustup target add {target})"
    if not _headers(arch).is_dir():
        return f"musl's headers are missing (Debian: apt install musl-dev{_debian(arch)})"
    return None


def triple(arch: str) -> str:
    """Rust's name of what is compiled for."""
    return f"{arch}-unknown-linux-{'gnu' if without_musl(arch) else 'musl'}"


def compiler(arch: str) -> str:
    """The C compiler, which also links."""
    return "cc" if arch == platform.machine() else f"{arch}-linux-gnu-gcc"


def compiler_flags(arch: str) -> list[str]:
    """With musl, its headers in place of glibc's, and the kernel's behind them."""
    # Helpers for those, in libgcc, are not linked with.
    options = ["-O2", "-mno-outline-atomics"] if arch == "aarch64" else ["-O2"]
    if without_musl(arch):
        return options
    own = subprocess.run(
        [compiler(arch), "-print-file-name=include"], check=True, capture_output=True, text=True
    ).stdout.strip()
    places = ["-isystem", str(_headers(arch)), "-isystem", own, "-idirafter", str(_kernel_headers(arch))]
    return [*options, "-U_FORTIFY_SOURCE", "-nostdinc", *places]


def _debian(arch: str) -> str:
    """The end of a package's name."""
    return "" if arch == platform.machine() else f":{DEBIAN.get(arch, arch)}"


def _headers(arch: str) -> Path:
    return Path(f"/usr/include/{arch}-linux-musl")


def _kernel_headers(arch: str) -> Path:
    """Links to linux, asm and asm-generic alone: glibc's own headers stand beside them."""
    folder = TARGET / "host/include" / arch
    folder.mkdir(parents=True, exist_ok=True)
    places = [Path(f"/usr/include/{arch}-linux-gnu"), Path(f"/usr/{arch}-linux-gnu/include"), Path("/usr/include")]
    for part in ("asm", "asm-generic", "linux"):
        found = next((place / part for place in places if (place / part).is_dir()), None)
        if found is None:
            sys.exit(f"the kernel's headers ({part}) are missing (Debian: apt install linux-libc-dev{_debian(arch)})")
        (folder / part).unlink(missing_ok=True)
        (folder / part).symlink_to(found)
    return folder


def musl(arch: str) -> Path | None:
    """The library that the programs are linked with."""
    return None if without_musl(arch) else _rusts_libc(f"{arch}-unknown-linux-musl")


def _rusts_libc(target: str) -> Path:
    asked = ["rustc", "--print", "target-libdir", "--target", target]
    folder = subprocess.run(asked, check=False, capture_output=True, text=True).stdout.strip()
    return Path(folder or "/nowhere") / "self-contained/libc.a"


@cache
def source() -> Path:
    """Of libbpf's crate, with elfutils and zlib in it."""
    asked = ["cargo", "metadata", "--locked", "--format-version", "1", "--features", "fanin-host/static"]
    about = json.loads(subprocess.run(asked, cwd=ROOT, check=True, capture_output=True, text=True).stdout)
    return Path(next(p["manifest_path"] for p in about["packages"] if p["name"] == "libbpf-sys")).parent


def _libraries(arch: str, flags: list[str], folder: Path) -> None:
    """libelf.a and libz.a; compiled once for a version, a compiler's options and a text of this file."""
    stamp = f"{source().name} {flags} {Path(__file__).read_text(encoding='utf-8')}"
    if (folder / "stamp").exists() and (folder / "stamp").read_text(encoding="utf-8") == stamp:
        return
    # libbpf's own makefile keeps what it compiled with other options.
    for old in (folder, *(TARGET / triple(arch) / "release/build").glob("libbpf-sys-*")):
        shutil.rmtree(old, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "config.h").write_text(CONFIG, encoding="utf-8")
    zlib, elf, shared = source() / "zlib", source() / "elfutils/libelf", source() / "elfutils/lib"
    includes = [f"-I{where}" for where in (folder, elf, shared, zlib)]
    both = [*flags, "-fPIC", "-w"]
    _archive(arch, folder / "libz.a", zlib, [*both, "-DHAVE_UNISTD_H", "-DHAVE_HIDDEN"])
    _archive(arch, folder / "libelf.a", elf, [*both, "-std=gnu99", "-D_GNU_SOURCE", "-DHAVE_CONFIG_H", *includes])
    # A crate asks for libdl; musl has it in libc, and that of glibc must not be found in its place.
    (folder / "libdl.a").write_bytes(b"!<arch>\n")
    (folder / "stamp").write_text(stamp, encoding="utf-8")


def _archive(arch: str, library: Path, folder: Path, flags: list[str]) -> None:
    """Every C file of a folder."""
    objects = library.with_suffix("")
    objects.mkdir()

    def compiled(file: Path) -> Path:
        made = objects / f"{file.stem}.o"
        if subprocess.run([compiler(arch), *flags, "-c", str(file), "-o", str(made)], check=False).returncode != 0:
            sys.exit(f"{compiler(arch)} cannot compile {file.name} for {triple(arch)}; what it says is above")
        return made

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        files = list(pool.map(compiled, sorted(folder.glob("*.c"))))
    ar = "ar" if arch == platform.machine() else f"{arch}-linux-gnu-ar"
    subprocess.run([ar, "rcs", str(library), *map(str, files)], check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
