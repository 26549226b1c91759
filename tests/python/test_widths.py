"""Tables on terminals of 80, 60 and 40 columns: no number, address or name is cut, and none is wider than the terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from pathlib import Path

import pytest

from . import faults

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("widths")
    faults.with_store(folder)
    return folder


def shown(folder: Path, words: str, columns: int) -> list[str]:
    """The lines that a command shows on a terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = {name: value for name, value in faults.environment(folder).items() if name != "COLUMNS"}
    with subprocess.Popen(
        ["bash", "-c", f"exec fanin {words}"], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=theirs,
        stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        os.close(theirs)
        told = b""
        # Linux answers EIO where the other end is closed.
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:
                break
            told += part
        os.close(ours)
    assert process.returncode == 0, told
    return ESCAPES.sub("", told.decode()).replace("\r", "").splitlines()


@pytest.mark.parametrize("columns", [80, 60, 40])
@pytest.mark.parametrize(
    "words",
    [
        "run incast.toml --cc dctcp",
        "trains small.pcap.gz",
        "diff small.pcap.gz small.pcap.gz",
        "store ls",
        "query 'select * from sweep'",
        "compare small.pcap.gz --rack rack.toml --cc cubic,dctcp --seeds 1",
    ],
    ids=lambda words: str(words).split()[0],
)
def test_a_table_cuts_nothing(place: Path, words: str, columns: int) -> None:
    rows = [line for line in shown(place, words, columns) if line.startswith(("│", "┃"))]
    assert rows
    assert [line for line in rows if "…" in line] == []
    assert [line for line in rows if len(line) > columns] == []
