"""What must hold before a release: ``tools/release_check.py``, called by ``make release-check``.

The version is that of Cargo.toml; CHANGELOG.md has it with a date, its tag is on this commit, and a clean clone builds a wheel that works in an
environment of its own. The workflows are read by actionlint and the container is built and run, where the machine has what that takes; ``CONTAINER`` in
the environment holds more words for the builder (``--build-arg BASE=...``).
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

IMAGE = "localhost/fanin-release-check"
CAPTURE = Path("data/captures/nginx_16to1_before.pcap.gz")
OTHER = 12345
"""A user that no image knows: whom a container runs as where root asks for it."""


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
    words = actionlint()
    if words:
        done.append(told("the hosting's workflows are as actionlint wants them", runs(*words)))
    else:
        print("left out: the hosting's workflows (neither actionlint nor Go is installed)")
    with tempfile.TemporaryDirectory() as place:
        clone = Path(place) / "fanin"
        cloned = runs("git", "clone", "--quiet", ".", str(clone))
        done.append(told("a clean clone builds a wheel that works alone", cloned and runs("make", "wheel", at=clone)))
        if done[-1]:
            shutil.copytree(clone / "dist", "dist", dirs_exist_ok=True)
            shutil.copy(clone / "target/host/fanin-host", "dist")
            done += container(clone)
    return 0 if all(done) else 1


def is_dated(version: str) -> bool:
    """The version's section of the changelog says when it was released."""
    return bool(
        re.search(rf"^## {re.escape(version)} - \d{{4}}-\d\d-\d\d$", Path("CHANGELOG.md").read_text(), re.MULTILINE)
    )


def actionlint() -> list[str]:
    """The words that call it: as it is installed, or as Go builds it; none where there is neither."""
    go = shutil.which("go")
    installed = shutil.which("actionlint")
    if not installed and go:
        installed = shutil.which("actionlint", path=f"{out(go, 'env', 'GOPATH')}/bin")
    if installed:
        return [installed]
    return [go, "run", "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12"] if go else []


def container(clone: Path) -> list[bool]:
    """The image, built and run on a capture by a user who is not root; nothing where no builder works."""
    for builder in ("docker", "podman", "buildah"):
        # buildah without root keeps other users of an image apart from the one who calls it: what they wrote could not be removed.
        if not shutil.which(builder) or (builder == "buildah" and os.getuid()):
            continue
        if subprocess.run([builder, "info"], capture_output=True, check=False).returncode:
            continue
        more = shlex.split(os.environ.get("CONTAINER", ""))
        words = [builder, "build", "--file", "Containerfile", "--tag", IMAGE, *more, "dist"]
        done = [told(f"{builder} builds the container", runs(*words, at=clone))]
        if done[0]:
            with tempfile.TemporaryDirectory() as data:
                done.append(told("a user who is not root compares a capture in it", compares(builder, Path(data))))
            subprocess.run([builder, "rmi", "--force", IMAGE], capture_output=True, check=False)
        return done
    print("left out: the container (neither docker nor podman works here, nor buildah as root)")
    return []


def compares(builder: str, data: Path) -> bool:
    """The container reads and writes a folder of its user, as its head comment says."""
    shutil.copy(CAPTURE, data / "x.pcap.gz")
    user, group = os.getuid(), os.getgid()
    if not user:
        user, group = OTHER, OTHER
        for place in (data, data / "x.pcap.gz"):
            os.chown(place, user, group)
    rootless = builder == "podman" and os.getuid()
    options = [*(["--userns", "keep-id"] if rootless else ["--user", f"{user}:{group}"]), "--volume", f"{data}:/data"]
    asked = ["compare", "/data/x.pcap.gz", "--seeds", "1", "--cc", "cubic,dctcp"]
    if builder == "buildah":
        name = out("buildah", "from", IMAGE)
        ran = runs("buildah", "run", *options, name, "--", "fanin", *asked)
        subprocess.run(["buildah", "rm", name], capture_output=True, check=False)
    else:
        ran = runs(builder, "run", "--rm", *options, IMAGE, *asked)
    report = data / "fanin-x/report.html"
    return ran and report.is_file() and report.stat().st_uid == user


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
