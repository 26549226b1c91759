"""What must hold before a release: ``tools/release_check.py``, called by ``make release-check``.

The version is that of Cargo.toml; CHANGELOG.md has it with a date, its tag is on this commit, and a clean clone builds a wheel that works in an
environment of its own. The container is built where docker or podman can.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path


def main() -> int:
    """Every check, a line each; 1 where one fails."""
    version = tomllib.loads(Path("Cargo.toml").read_text())["workspace"]["package"]["version"]
    done = [
        told("nothing is uncommitted", not out("git", "status", "--porcelain")),
        told(f"CHANGELOG.md has {version} with a date", is_dated(version)),
        told(
            f"the tag v{version} is on this commit", f"v{version}" in out("git", "tag", "--points-at", "HEAD").split()
        ),
    ]
    if shutil.which("actionlint"):
        done.append(told("the hosting's workflows are as actionlint wants them", runs("actionlint")))
    else:
        print("left out: the hosting's workflows (actionlint is not installed)")
    with tempfile.TemporaryDirectory() as place:
        clone = Path(place) / "fanin"
        cloned = runs("git", "clone", "--quiet", ".", str(clone))
        done.append(told("a clean clone builds a wheel that works alone", cloned and runs("make", "wheel", at=clone)))
        if done[-1]:
            shutil.copytree(clone / "dist", "dist", dirs_exist_ok=True)
            done += container(clone)
    return 0 if all(done) else 1


def is_dated(version: str) -> bool:
    """The version's section of the changelog says when it was released."""
    return bool(
        re.search(rf"^## {re.escape(version)} - \d{{4}}-\d\d-\d\d$", Path("CHANGELOG.md").read_text(), re.MULTILINE)
    )


def container(clone: Path) -> list[bool]:
    """The image, built and run; nothing where no builder works."""
    for builder in ("docker", "podman"):
        if shutil.which(builder) and not subprocess.run([builder, "info"], capture_output=True, check=False).returncode:
            built = runs(
                builder, "build", "--quiet", "--file", "Containerfile", "--tag", "fanin-release-check", ".", at=clone
            )
            ran = built and runs(builder, "run", "--rm", "fanin-release-check", "--version")
            return [told("the container is built and runs", ran)]
    print("left out: the container (neither docker nor podman works here)")
    return []


def out(*words: str) -> str:
    """What a command prints."""
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


def runs(*words: str, at: Path = Path()) -> bool:
    """Whether a command succeeds."""
    return subprocess.run(words, cwd=at, check=False).returncode == 0


def told(what: str, holds: bool) -> bool:
    """Say it."""
    print(f"{'holds' if holds else 'FAILS'}: {what}", flush=True)
    return holds


if __name__ == "__main__":
    sys.exit(main())
