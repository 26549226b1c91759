"""Complete the wheel that maturin built: ``tools/wheel.py DIST PAPERS HOST SHARE``.

Added are the papers, the scripts of the pages, ``fanin-host`` beside the command, and man pages and completions under ``share``. The command is the
launcher, and Python's entry stands beside it as ``fanin-python``. The list of parts (SBOM) is of all that, in place of the native module's alone.
"""

from __future__ import annotations

import base64
import hashlib
import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import sbom
from fanin import html

PAPERS = "fanin/papers/published"
SBOMS = ".dist-info/sboms/"
PROGRAM = 0o100755 << 16
"""A file that can be run, in a zip file."""


def main(dist: Path, papers: Path, host: Path, share: Path) -> None:
    """Add the files and their lines of RECORD (PEP 427)."""
    (wheel,) = dist.glob("*.whl")
    beside = wheel.with_suffix(".part")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(beside, "w", zipfile.ZIP_DEFLATED) as new:
        record = next(name for name in old.namelist() if name.endswith(".dist-info/RECORD"))
        lines = old.read(record).decode().splitlines()
        scripts = record.removesuffix("RECORD") + "entry_points.txt"
        for item in old.infolist():
            if item.filename not in (record, scripts) and SBOMS not in item.filename:
                new.writestr(item, old.read(item.filename))
        entry = old.read(scripts).decode()
        assert "\nfanin=" in entry, entry
        data = record.removesuffix(".dist-info/RECORD") + ".data"
        lines = [line for line in lines if not line.startswith(f"{scripts},") and SBOMS not in line]
        added = [
            (scripts, entry.replace("\nfanin=", "\nfanin-python=").encode(), 0),
            (
                record.removesuffix(".dist-info/RECORD") + SBOMS + "fanin.cdx.json",
                json.dumps(sbom.document()).encode(),
                0,
            ),
            *_added(papers, host, share, data),
        ]
        for name, content, mode in added:
            item = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            item.external_attr = mode
            new.writestr(item, content, zipfile.ZIP_DEFLATED)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines.append(f"{name},sha256={digest},{len(content)}")
        new.writestr(record, "\n".join(lines) + "\n")
    beside.replace(wheel)


def _added(papers: Path, host: Path, share: Path, data: str) -> Iterator[tuple[str, bytes, int]]:
    """Name in the wheel, content and mode of each."""
    for file in sorted(p for p in papers.rglob("*") if p.is_file() and _belongs(p.relative_to(papers))):
        yield f"{PAPERS}/{file.relative_to(papers).as_posix()}", file.read_bytes(), 0
    yield f"fanin/html/{html.SHIPPED}", html.libraries().encode(), 0
    for program in ("fanin", "fanin-host"):
        yield f"{data}/scripts/{program}", (host / program).read_bytes(), PROGRAM
    for file in sorted(p for p in share.rglob("*") if p.is_file()):
        yield f"{data}/data/share/{file.relative_to(share).as_posix()}", file.read_bytes(), 0


def _belongs(file: Path) -> bool:
    """No compiled Python, nothing that `fanin reproduce` wrote."""
    return "__pycache__" not in file.parts and file.name not in ("gallery.html", "claims.json")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
