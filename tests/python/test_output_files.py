"""Files that a command makes: what it reads is not replaced, and neither are links, pipes and devices."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from fanin.disk.files import write_text
from fanin.errors import OutputError

from .conftest import INCAST, SMALL, Fanin


@pytest.mark.parametrize("option", ["--workload", "--spans-out"])
def test_a_capture_is_not_replaced_by_what_is_made_of_it(option: str, fanin: Fanin, tmp_path: Path) -> None:
    capture = tmp_path / "a.pcap.gz"
    capture.write_bytes(SMALL.read_bytes())
    (tmp_path / "link").symlink_to(capture)
    (tmp_path / "same").hardlink_to(capture)
    for name in ("a.pcap.gz", "link", "same"):
        done = fanin("trains", "a.pcap.gz", option, name)
        assert (done.code, done.out) == (2, "")
        assert f"command line `{option} {name}`: the command reads this file; choose another place" in done.err
    assert capture.read_bytes() == SMALL.read_bytes()


def test_a_scenario_is_not_replaced_by_its_picture(fanin: Fanin, tmp_path: Path) -> None:
    (tmp_path / "net.html").write_text(INCAST)
    done = fanin("draw", "net.html", "--out", "net.html")
    assert done.code == 2
    assert "the command reads this file" in done.err
    assert (tmp_path / "net.html").read_text() == INCAST


def test_a_link_stays_and_its_target_is_written(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    link.symlink_to("target")
    for text in ("one", "two"):
        write_text(text, link, "--out")
        assert link.is_symlink()
        assert target.read_text() == text


def test_a_pipe_takes_the_bytes_and_stays_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(
        OutputError, match=r"pipe: cannot be written \(nothing reads this pipe\); choose another place with --out"
    ):
        write_text("lost", pipe, "--out")
    got: list[str] = []
    opened = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(opened, True)

    def read() -> None:
        with os.fdopen(opened) as reading:
            got.append(reading.read())

    reader = threading.Thread(target=read)
    write_text("all of it", pipe, "--out")
    reader.start()
    reader.join()
    assert got == ["all of it"]
    assert pipe.is_fifo()


def test_standard_output_by_its_name_gets_the_file(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "fanin", "trains", str(SMALL), "--workload", "/dev/stdout", "--json"]
    for shell in (f"{' '.join(words)} | cat", f"{' '.join(words)} > made; cat made"):
        done = subprocess.run(shell, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert '"connections":' in done.stdout
    assert Path("/dev/stdout").is_symlink()


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="there is no /dev/shm")
def test_a_file_in_memory_is_replaced_as_any_other() -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        for text in ("one", "two"):
            write_text(text, f"{folder}/a.txt", "--out")
            assert Path(folder, "a.txt").read_text() == text


def test_a_full_device_is_one_sentence() -> None:
    with pytest.raises(OutputError, match=r"/dev/full: cannot be written \(no space left on device\)"):
        write_text("x", "/dev/full", "--out")
    assert Path("/dev/full").is_char_device()


def test_a_reader_that_has_gone_ends_a_command_as_a_signal_would(tmp_path: Path) -> None:
    shell = f"set -o pipefail; {sys.executable} -m fanin list cc | true"
    assert subprocess.run(["bash", "-c", shell], cwd=tmp_path, capture_output=True, check=False).returncode == 141


def test_a_full_standard_error_leaves_the_exit_code() -> None:
    shell = f"{sys.executable} -m fanin trains nosuch.pcap 2> /dev/full"
    assert subprocess.run(["bash", "-c", shell], capture_output=True, check=False).returncode == 2
