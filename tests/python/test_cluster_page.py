"""The commands of docs/how-to/cluster.md, as a reader types them, with one machine for head and worker."""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .conftest import ROOT

pytest.importorskip("distributed", reason="the optional dependency group `cluster` is not installed")


def test_the_commands_by_hand_run_a_sweep(tmp_path: Path) -> None:
    text = (ROOT / "docs/how-to/cluster.md").read_text()
    block = next(b for b in re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL) if "HEAD" in b)
    scheduler, worker, sweep = (line.partition(" #")[0].strip() for line in block.splitlines())
    (tmp_path / "sweep.toml").write_text(
        (ROOT / "examples/sweeps/incast.toml").read_text().replace("../incast.toml", str(ROOT / "examples/incast.toml"))
        .replace("[4, 8, 16, 32]", "[4]").replace("seeds = 5", "seeds = 1").replace("points = 3", "points = 2")
    )  # fmt: skip
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])

    def words(command: str) -> list[str]:
        return shlex.split(
            command.replace("HEAD", "127.0.0.1").replace("8786", port).replace("--nthreads 16", "--nthreads 1")
        )

    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    place = {**os.environ, "PATH": path, "FANIN_STORE": str(tmp_path / "store")}
    started: list[subprocess.Popen[bytes]] = []
    try:
        for command in (scheduler, worker):
            started.append(
                subprocess.Popen(
                    words(command), cwd=tmp_path, env=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
                )
            )
            time.sleep(0.5)
        done = subprocess.run(
            words(sweep), cwd=tmp_path, env=place, capture_output=True, text=True, timeout=300, check=False
        )
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait()
    assert done.returncode == 0, done.stderr
    assert "dctcp" in done.stdout


def test_the_job_script_for_slurm_is_a_script_that_names_what_exists() -> None:
    text = (ROOT / "docs/how-to/cluster.md").read_text()
    script = next(b for b in re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL) if "#SBATCH" in b)
    assert subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode == 0
    for command in ("scheduler", "worker"):
        told = subprocess.run(
            [sys.executable, "-m", "distributed.cli.dask_" + command, "--help"],
            capture_output=True,
            text=True,
            check=False,
        ).stdout
        used = re.findall(rf"dask {command} (.*)", script)
        assert used
        for option in re.findall(r"--[a-z-]+", used[0]):
            assert option.replace("--no-", "--") in told.replace("--no-", "--"), f"dask {command} has no {option}"
