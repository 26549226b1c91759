"""The list of parts that goes into the wheel names everything that is compiled in or asked for, with its licence."""

from __future__ import annotations

import functools
import re
import sys
import tomllib
from importlib.metadata import metadata, requires
from pathlib import Path
from typing import Any

import fanin._native
import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PROGRAMS = [Path(fanin._native.__file__), Path(sys.executable).with_name("fanin"), ROOT / "target/release/fanin-host"]
"""What `make build` and `make linux` compile."""


@functools.cache
def components() -> list[dict[str, Any]]:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import sbom
    finally:
        sys.path.pop(0)
    found: list[dict[str, Any]] = sbom.document()["components"]
    return found


def of(kind: str) -> set[tuple[str, str]]:
    return {(part["name"], part["version"]) for part in components() if part["purl"].startswith(f"pkg:{kind}/")}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_every_crate_that_a_program_names_in_its_sources_paths_is_listed(program: Path) -> None:
    if not program.exists():
        pytest.skip(f"{program.name} is not built (make linux)")
    # Panics name the source file they are in, so what is compiled in shows itself.
    compiled = {
        (name.decode(), version.decode())
        for name, version in re.findall(
            rb"registry/src/[^/\0]+/([A-Za-z0-9_-]+?)-(\d+\.\d+\.\d+[0-9A-Za-z.+-]*)/", program.read_bytes()
        )
    }
    assert compiled or program.name == "fanin"
    assert compiled <= of("cargo")


def test_every_crate_is_one_of_the_lock_file_and_every_package_that_fanin_asks_for_is_listed() -> None:
    locked = {(p["name"], p["version"]) for p in tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]}
    assert of("cargo") <= locked
    listed = {(part["name"], part["scope"]) for part in components() if part["purl"].startswith("pkg:pypi/")}
    waiting, seen = ["fanin"], set()
    while waiting:
        for text in requires(waiting.pop()) or ():
            asked = Requirement(text)
            # As the metadata of the installed packages have it, not as the lock file has.
            if asked.name.lower() not in seen and (asked.marker is None or asked.marker.evaluate({"extra": ""})):
                seen.add(asked.name.lower())
                waiting.append(asked.name)
    assert {"polars", "rich", "typer"} <= seen
    assert {(name, "required") for name in seen} <= listed
    assert {("duckdb", "optional"), ("distributed", "optional")} <= listed


def test_every_part_has_a_licence_that_may_be_passed_on() -> None:
    allowed = set(tomllib.loads((ROOT / "deny.toml").read_text())["licenses"]["allow"])
    # Static C libraries and Python packages; each may be passed on beside fanin.
    allowed |= {"LGPL-2.1-or-later", "LGPL-3.0-or-later", "PSF-2.0"}
    for part in components():
        (said,) = (one["expression"] for one in part["licenses"])
        ways = [
            set(re.split(r" AND ", way))
            for way in re.sub(r"\((.*?)\)", lambda m: m[1].split(" OR ")[0], said).split(" OR ")
        ]
        assert any(way <= allowed for way in ways), (part["name"], said)
    assert metadata("fanin")["License-Expression"] == "MIT OR Apache-2.0"


def test_the_list_is_of_the_form_that_its_readers_expect() -> None:
    names = [part["bom-ref"] for part in components()]
    assert len(set(names)) == len(names) > 100
    assert all(re.fullmatch(r"pkg:(cargo|pypi|npm|generic)/[A-Za-z0-9._-]+@[A-Za-z0-9._%~-]+", name) for name in names)
