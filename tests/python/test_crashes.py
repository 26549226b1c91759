"""A sweep loses no run, however it ends: the store that is finished later is that of a sweep that was never disturbed.

``FANIN_CRASHES=100`` kills a hundred times; fewer unless set, so that the suite stays short.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fanin.sweep import sweep

from .conftest import Fanin
from .test_sweep import SWEEP, contents, written

CRASHES = int(os.environ.get("FANIN_CRASHES", "12"))

MANY = SWEEP.replace("[2, 4]", "[2, 3, 4, 5, 6, 7]").replace("seeds = 2", "seeds = 4")
RUNS = 48


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("undisturbed")
    assert sweep(written(folder, MANY), store=folder / "store").ran == RUNS
    return contents(folder / "store")


def test_a_sweep_killed_at_random_points_finishes_with_the_same_store(
    tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    file = written(tmp_path, MANY)
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("crashes.py")), str(file), str(tmp_path), str(CRASHES)],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [line[0] for line in lines].count("killed") == CRASHES
    entries = [int(line[2]) for line in lines if line[0] == "killed"]
    assert any(0 < count < RUNS for count in entries), "no kill fell into the middle"
    # Within a store the entries only grow.
    for before, after in itertools.pairwise(lines):
        if before[1] == after[1]:
            assert int(before[2]) <= int(after[2])
    for line in lines:
        if line[0] == "finished":
            assert contents(tmp_path / f"store{line[1]}") == undisturbed


def test_two_sweeps_on_one_store_at_once_do_no_harm(tmp_path: Path, undisturbed: dict[str, bytes]) -> None:
    file = written(tmp_path, MANY)
    command = [sys.executable, "-m", "fanin", "sweep", str(file), "--store", str(tmp_path / "store"), "--json"]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
    for process in both:
        _, said = process.communicate(timeout=300)
        assert process.returncode == 0, said
    assert contents(tmp_path / "store") == undisturbed


def test_a_clock_that_is_set_back_changes_nothing(
    tmp_path: Path, undisturbed: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(tmp_path, MANY)
    (tmp_path / "half.toml").write_text(MANY.replace("[2, 3, 4, 5, 6, 7]", "[2, 3, 4]"))
    sweep(tmp_path / "half.toml", store=tmp_path / "store")
    for path in (tmp_path / "store").rglob("*"):
        os.utime(path, (4e9, 4e9))  # the year 2096
    monkeypatch.setattr(time, "time", lambda: 6e8)  # the year 1989
    found = sweep(file, store=tmp_path / "store")
    assert (found.found, found.ran) == (RUNS // 2, RUNS // 2)
    (tmp_path / "store/sweeps/half.parquet").unlink()
    assert contents(tmp_path / "store") == undisturbed


def in_a_mount(folder: Path, size: str, steps: list[str]) -> subprocess.CompletedProcess[str]:
    """Run shell commands where `folder` is a small file system of its own, which ends with them."""
    script = "\n".join(["set -u", f"mount -t tmpfs -o size={size} none {folder}", *steps])
    return subprocess.run(["unshare", "--mount", "bash", "-c", script], capture_output=True, text=True, check=False)


def need_mounts(folder: Path) -> None:
    if shutil.which("unshare") is None or in_a_mount(folder, "64k", ["true"]).returncode != 0:
        pytest.skip("mounting a small file system needs root and unshare(1)")


def test_a_full_disk_ends_a_sweep_in_a_sentence_and_it_goes_on_when_there_is_room(
    tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    need_mounts(disk)
    file = written(tmp_path, MANY)
    command = f"{sys.executable} -m fanin sweep {file} --store {disk}/store"
    source = random.Random(3)
    for attempt in range(max(1, CRASHES // 6)):
        done = in_a_mount(
            disk,
            f"{source.randrange(30, 400)}k",
            [
                f"{command} > /dev/null; echo full $?",
                f"mount -o remount,size=64m {disk}",
                f"{command} > /dev/null; echo done $?",
                f"cp -r {disk}/store {tmp_path}/copy{attempt}",
            ],
        )
        assert done.stdout.split() == ["full", "2", "done", "0"], done.stderr
        assert "the store cannot be written (no space left on device)" in done.stderr
        assert "Traceback" not in done.stderr
        assert contents(tmp_path / f"copy{attempt}") == undisturbed


def test_a_store_that_becomes_read_only_is_said_and_can_still_be_asked(
    tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    need_mounts(disk)
    file = written(tmp_path, MANY)
    (tmp_path / "half.toml").write_text(
        MANY.replace("[2, 3, 4, 5, 6, 7]", "[2, 3, 4]").replace("scenario", 'name = "small"\nscenario', 1)
    )
    option = f"--store {disk}/store"
    done = in_a_mount(
        disk,
        "64m",
        [
            f"{sys.executable} -m fanin sweep {tmp_path}/half.toml {option} > /dev/null; echo half $?",
            f"mount -o remount,ro {disk}",
            f"{sys.executable} -m fanin sweep {file} {option} > /dev/null; echo refused $?",
            f"{sys.executable} -m fanin query 'select 1 from runs limit 1' {option} > /dev/null; echo asked $?",
            f"mount -o remount,rw {disk}",
            f"{sys.executable} -m fanin sweep {file} {option} > /dev/null; echo done $?",
            f"cp -r {disk}/store {tmp_path}/copy",
        ],
    )
    assert done.stdout.split() == ["half", "0", "refused", "2", "asked", "0", "done", "0"], done.stderr
    assert "the store cannot be written (read-only file system)" in done.stderr
    assert contents(tmp_path / "copy") == undisturbed


def test_the_command_of_the_manual_resumes(tmp_path: Path, fanin: Fanin) -> None:
    file = written(tmp_path, MANY)
    first = fanin("sweep", file, "--store", tmp_path / "store")
    again = fanin("sweep", file, "--store", tmp_path / "store")
    assert (first.code, again.code) == (0, 0)
    assert f"0 ran, {RUNS} found in the store" in again.err
    assert first.out == again.out
