"""Put the papers into the wheel that maturin built: ``tools/wheel.py DIST PAPERS``."""

from __future__ import annotations

import base64
import hashlib
import sys
import zipfile
from pathlib import Path

HOME = "fanin/papers/published"


def main(dist: Path, papers: Path) -> None:
    """Add the files and their lines of RECORD (PEP 427)."""
    (wheel,) = dist.glob("*.whl")
    beside = wheel.with_suffix(".part")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(beside, "w", zipfile.ZIP_DEFLATED) as new:
        record = next(name for name in old.namelist() if name.endswith(".dist-info/RECORD"))
        lines = old.read(record).decode().splitlines()
        for item in old.infolist():
            if item.filename != record:
                new.writestr(item, old.read(item.filename))
        for file in sorted(p for p in papers.rglob("*") if p.is_file() and _belongs(p.relative_to(papers))):
            name, content = f"{HOME}/{file.relative_to(papers).as_posix()}", file.read_bytes()
            new.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines.append(f"{name},sha256={digest},{len(content)}")
        new.writestr(record, "\n".join(lines) + "\n")
    beside.replace(wheel)


def _belongs(file: Path) -> bool:
    """No compiled Python, nothing that `fanin reproduce` wrote."""
    return "__pycache__" not in file.parts and file.name not in ("gallery.html", "claims.json")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
