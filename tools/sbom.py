"""What the wheel is made of, in CycloneDX 1.5: ``tools/sbom.py FILE``; ``tools/wheel.py`` puts it into the wheel.

Compiled in are the crates of the native module, of ``fanin-host`` and of the launcher, the C libraries that the two static programs are linked
with, and the scripts of the pages. Required or optional are the Python packages that it asks for, as locked.
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any
from urllib.parse import quote

import host
import vl_convert
from packaging.markers import Marker

ROOT = Path(__file__).parents[1]

CRATES = (
    ("-p", "fanin-python"),
    ("-p", "fanin-host", "-p", "fanin-launcher", "--features", "fanin-host/static"),
)
"""As `make build` and `make host` compile them."""

IN_WORDS = {
    "BSD License": "BSD-3-Clause",
    "Apache Software License": "Apache-2.0",
    "GNU General Public License v2 or later (GPLv2+)": "GPL-2.0-or-later",
    "MIT License": "MIT",
    "ISC License": "ISC",
    "ISC License (ISCL)": "ISC",
    "Apache 2.0": "Apache-2.0",
    "BSD": "BSD-3-Clause",
}
"""What packages say that name no expression."""

Component = dict[str, Any]


def document() -> dict[str, Any]:
    """The whole of it."""
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    components = {part["purl"]: part for part in (*_crates(), *_libraries(), *_scripts(), *_packages())}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": _part("application", "fanin", version, "MIT OR Apache-2.0", "pypi")},
        "components": [components[key] for key in sorted(components)],
    }


def _part(kind: str, name: str, version: str, licence: str, where: str, scope: str = "required") -> Component:
    purl = f"pkg:{where}/{name}@{quote(version)}"
    return {
        "type": kind, "bom-ref": purl, "name": name, "version": version, "scope": scope, "purl": purl,
        "licenses": [{"expression": licence}],
    }  # fmt: skip


def _crates() -> Iterator[Component]:
    for chosen in CRATES:
        words = [
            "cargo",
            "tree",
            "--locked",
            "--edges",
            "normal",
            "--target",
            f"{platform.machine()}-unknown-linux-gnu",
        ]
        tree = subprocess.run(
            [*words, "--prefix", "none", "--format", "{p}|{l}", *chosen], cwd=ROOT, capture_output=True, text=True, check=True
        )  # fmt: skip
        for line in tree.stdout.splitlines():
            # A macro runs in the compiler; `(*)` was said before.
            found = re.fullmatch(r"(\S+) v(\S+)(?: \(/.*\))?\|(.+)", line)
            if found is not None and not line.endswith("(*)"):
                yield _part("library", found[1], found[2], found[3].replace("/", " OR "), "cargo")


def _libraries() -> Iterator[Component]:
    """The C libraries that `tools/host.py` links statically; libbpf comes with its crate."""
    elfutils, zlib = host.source() / "elfutils/configure.ac", host.source() / "zlib/zlib.h"
    version = _found(r"AC_INIT\(\[elfutils\],\[([0-9.]+)\]", elfutils.read_text(encoding="utf-8"))
    yield _part("library", "libelf", version, "LGPL-3.0-or-later OR GPL-2.0-or-later", "generic")
    version = _found(r'ZLIB_VERSION "([^"]+)"', zlib.read_text(encoding="utf-8"))
    yield _part("library", "zlib", version, "Zlib", "generic")
    libc = host.musl(platform.machine())
    if libc is not None:
        asked = subprocess.run(["ar", "p", libc, "version.lo"], capture_output=True, check=True).stdout
        yield _part("library", "musl", _found(r"\0(\d+\.\d+\.\d+)\0", asked.decode("latin-1")), "MIT", "generic")
    else:
        yield _part("library", "glibc", platform.libc_ver()[1], "LGPL-2.1-or-later", "generic")


def _found(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    assert found is not None, pattern
    return found[1]


def _scripts() -> Iterator[Component]:
    versions = {
        "vega": vl_convert.get_vega_version(),
        "vega-lite": vl_convert.get_vegalite_versions()[-1],
        "vega-embed": vl_convert.get_vega_embed_version(),
    }
    for name, version in versions.items():
        yield _part("library", name, version, "BSD-3-Clause", "npm")


def _packages() -> Iterator[Component]:
    locked = {package["name"]: package for package in tomllib.loads((ROOT / "uv.lock").read_text())["package"]}
    own = locked["fanin"]
    optional = [each for extra in own.get("optional-dependencies", {}).values() for each in extra]
    required = _closure(own["dependencies"], locked)
    for name in sorted(_closure([*own["dependencies"], *optional], locked)):
        scope = "required" if name in required else "optional"
        yield _part("library", name, locked[name]["version"], _licence(name), "pypi", scope)


def _closure(wanted: list[dict[str, Any]], locked: dict[str, Any]) -> set[str]:
    found: set[str] = set()
    waiting = list(wanted)
    while waiting:
        one = waiting.pop()
        applies = "marker" not in one or Marker(one["marker"]).evaluate()
        if applies and one["name"] not in found:
            found.add(one["name"])
            waiting += locked[one["name"]].get("dependencies", [])
    return found


def _licence(name: str) -> str:
    """Its SPDX expression, as its metadata have it."""
    try:
        about = metadata(name)
    except PackageNotFoundError:
        return "NOASSERTION"
    said = about.get("License-Expression") or about.get("License") or ""
    if said and len(said) < 60 and "\n" not in said:
        return IN_WORDS.get(said, said)
    classes = [c.rpartition(" :: ")[2] for c in about.get_all("Classifier") or () if c.startswith("License :: ")]
    return " OR ".join(IN_WORDS.get(one, one) for one in classes) or "NOASSERTION"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(document(), indent=1) + "\n", encoding="utf-8")
