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
import tomllib
import venv
from pathlib import Path

MOST = 150e6
"""Bytes of the environment."""


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
            subprocess.run([home / "bin/pip", "uninstall", "--quiet", "--yes", "setuptools", "pip"], check=True)
        empty = Path(place) / "empty"
        empty.mkdir()
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))} | {"HOME": place}
        # Where no shell is among the processes above (nohup, a service), typer would take none for the one that is named.
        clean["_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION"] = "1"

        def fanin(*arguments: object) -> str:
            command = [home / "bin/fanin", *map(str, arguments)]
            return subprocess.run(command, cwd=empty, env=clean, check=True, capture_output=True, text=True).stdout

        version = fanin("--version").split()[1]
        assert version in wheel.name, (version, wheel.name)
        fanin("compare", capture, "--seeds", "3", "--out", "results", "--plan", "plan.toml")
        assert (empty / "results/report.html").stat().st_size > 100_000
        assert json.loads((empty / "results/compare.json").read_text())["answer"]["headline"]
        assert "trim" in fanin("list", "paper")
        fanin("trains", capture, "--out", "trains")
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
        (parts,) = home.rglob("fanin-*.dist-info/sboms/*.json")
        listed = {part["name"] for part in json.loads(parts.read_text())["components"]}
        assert {"fanin-host", "polars", "vega", "libelf", "zlib"} <= listed
        assert listed & {"musl", "glibc"}
        assert "complete" in fanin("--show-completion", "bash")
        assert (home / "share/man/man1/fanin-compare.1").exists()
        assert (home / "bin/fanin").read_bytes().startswith(b"\x7fELF")
        query = subprocess.run(
            [home / "bin/fanin", "query", "select 1"], cwd=empty, env=clean, check=False, capture_output=True, text=True
        )
        assert "pip install 'fanin[sweep]'" in query.stderr, query.stderr
        on_a_host(home / "bin/fanin-host", empty / "plan.toml", clean)
        # Bytecode comes as modules are first used.
        files = [file for file in home.rglob("*") if file.is_file() and not file.is_symlink() and file.suffix != ".pyc"]
        size = sum(file.stat().st_size for file in files)
        assert size <= MOST, f"the environment has {size / 1e6:.0f} MB"
        print(
            f"{wheel.name}: works alone ({wheel.stat().st_size / 1e6:.1f} MB; the environment has {size / 1e6:.0f} MB)"
        )


def on_a_host(program: Path, plan: Path, env: dict[str, str]) -> None:
    """Copy the program and the plan to a network namespace, and apply, measure and undo there, where neither Python nor `ip` is used."""
    place, end = plan.parent, tomllib.loads(plan.read_text())["servers"]
    name = f"fanin-wheel-{os.getpid()}"
    if os.geteuid() != 0 or subprocess.run(["ip", "netns", "add", name], check=False, capture_output=True).returncode:
        print("not tried: fanin-host in a network namespace, which takes root")
        return

    def sh(*words: object) -> str:
        return subprocess.run([*map(str, words)], check=True, capture_output=True, text=True, env=env).stdout

    def within(*words: object) -> str:
        return sh("ip", "netns", "exec", name, *words)

    try:
        for words in (
            "link set lo up",
            "link add d0 type veth peer name d1",
            f"addr add {end['hosts'][0]}/32 dev d0",
            "link set d1 up",
            "link set d0 up",
            *(f"route add {peer} dev d0" for peer in end["peers"]),
        ):
            sh("ip", "-n", name, *words.split())
        host = place / "host"
        host.mkdir()
        shutil.copy(program, host)
        shutil.copy(plan, host)
        there = [host / program.name, "--state", host / "state"]
        routes = sh("ip", "-n", name, "route")
        within(*there, "apply", host / "plan.toml")
        changed = sh("ip", "-n", name, "route")
        assert all(f"{option} " in changed and value in changed for option, value in end["route"].items()), changed
        within(*there, "measure", host / "hosts.toml")
        assert "wakeup" in (host / "hosts.toml").read_text()
        within(*there, "undo")
        assert sh("ip", "-n", name, "route") == routes
        checks = {row["what"]: row["ok"] for row in json.loads(within(*there, "check"))["checks"]}
        assert checks["built with BPF"]
    finally:
        subprocess.run(["ip", "netns", "del", name], check=False)


SCENARIO = """
[topology]
senders = 2
[[workload]]
kind = "incast"
bytes = "64KB"
"""

if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
