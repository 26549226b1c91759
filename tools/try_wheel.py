"""Try the wheel where nothing else is: ``tools/try_wheel.py DIST CAPTURE``.

An environment of its own with the wheel and what it depends on, an empty folder, and the commands that a new user types first.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path


def main(dist: Path, capture: Path) -> None:
    """Install and run; an error ends it."""
    (wheel,) = (p.resolve() for p in dist.glob("*.whl"))
    capture = capture.resolve()
    with tempfile.TemporaryDirectory() as place:
        home = Path(place) / "env"
        uv = shutil.which("uv")
        if uv:
            subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, home], check=True)
            subprocess.run([uv, "pip", "install", "--quiet", "--python", home / "bin/python", wheel], check=True)
        else:
            venv.create(home, with_pip=True)
            subprocess.run([home / "bin/pip", "install", "--quiet", wheel], check=True)
        empty = Path(place) / "empty"
        empty.mkdir()
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))} | {"HOME": place}

        def fanin(*arguments: object) -> str:
            command = [home / "bin/fanin", *map(str, arguments)]
            return subprocess.run(command, cwd=empty, env=clean, check=True, capture_output=True, text=True).stdout

        version = fanin("--version").split()[1]
        assert version in wheel.name, (version, wheel.name)
        fanin("compare", capture, "--seeds", "2", "--out", "results")
        assert (empty / "results/report.html").stat().st_size > 100_000
        assert json.loads((empty / "results/compare.json").read_text())["answer"]["headline"]
        assert "trim" in fanin("list", "paper")
        (empty / "flows.toml").write_text(SCENARIO)
        fanin("run", "flows.toml")
        probe = (
            "from fanin.papers import load; from fanin.papers.judgement import judgement_of;"
            "print(sum(judgement_of(paper) is not None for paper in load()))"
        )
        found = subprocess.run(
            [home / "bin/python", "-c", probe], cwd=empty, env=clean, check=True, capture_output=True, text=True
        )
        assert int(found.stdout) >= 5, found.stdout
        assert "complete" in fanin("--show-completion", "bash")
        print(f"{wheel.name}: works alone ({wheel.stat().st_size / 1e6:.1f} MB)")


SCENARIO = """
[topology]
senders = 2
[[workload]]
kind = "incast"
bytes = "64KB"
"""

if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
