"""How ``make host`` links the programs for a host."""

from __future__ import annotations

import importlib
import shutil
import struct
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
PT_INTERP = 3


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "tools")
    return importlib.import_module("host")


def test_without_musl_the_programs_are_linked_with_glibc_and_what_is_missing_is_named(
    host: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    said = "Rust has no musl for m68k here (rustup target add m68k-unknown-linux-musl)"
    assert host.without_musl("m68k") == said
    assert host.triple("m68k") == "m68k-unknown-linux-gnu"
    assert host.musl("m68k") is None
    # Rust's library alone is not enough: libbpf is compiled against musl's headers.
    monkeypatch.setattr(host, "_rusts_libc", lambda _: Path(sys.executable))
    host.without_musl.cache_clear()
    assert host.without_musl("m68k").startswith("musl's headers are missing (Debian: apt install musl-dev")
    host.without_musl.cache_clear()


@pytest.mark.parametrize("name", ["fanin-host", "fanin-host-arm64", "fanin"])
def test_a_program_for_a_host_asks_for_no_loader_and_no_library(name: str) -> None:
    program = ROOT / "target/host" / name
    if not program.exists():
        pytest.skip(f"{name} is not built (make host, make host-arm64)")
    data = program.read_bytes()
    assert len(data) < 4e6
    start, size, count = (struct.unpack_from(form, data, at)[0] for form, at in (("<Q", 32), ("<H", 54), ("<H", 56)))
    kinds = [struct.unpack_from("<I", data, start + size * n)[0] for n in range(count)]
    assert PT_INTERP not in kinds
