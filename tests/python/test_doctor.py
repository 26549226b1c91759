"""`fanin doctor` and tables on narrow terminals."""

from __future__ import annotations

import getpass
import io
import json
import os
import socket
from pathlib import Path

import pytest
from fanin import compare, run, trains
from fanin.errors import MemoryLimitError
from fanin.runs import executor
from fanin.terminal import display
from rich.console import Console

from .conftest import HTTP, INCAST, RACK, SMALL, Fanin


def test_doctor_says_versions_and_kernel_and_no_name_address_or_path(fanin: Fanin) -> None:
    outcome = fanin("doctor", "--json")
    told = outcome.json()
    assert told["versions"]["fanin"]
    assert told["machine"]["kernel"] == os.uname().release
    assert told["works"]["compare, run, sweep (simulator)"] == "yes"
    text = json.dumps(told).replace(os.uname().release, "")
    assert str(Path.home()) not in text
    assert "/" not in text.replace("GNU/Linux", "")
    for name in {socket.gethostname(), getpass.getuser()} - {"root", "localhost"}:
        assert name not in text


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_number_or_address_is_cut_on_a_narrow_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(display, "_out", lambda: Console(file=shown, width=width, highlight=False))
    found = trains(SMALL)
    display.trains_result(found)
    display.run_result(run("incast.toml", text=INCAST))
    text = shown.getvalue()
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    cells = set(text.replace("│", " ").split())
    for c in found.connections:
        assert f"{c['server_ip']}:{c['server_port']}" in cells
        assert str(c["to_client"]["payload_bytes"]) in cells


def test_a_comparison_that_memory_does_not_hold_is_refused_before_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "memory_left", lambda: 1000)
    monkeypatch.setenv("FANIN_STORE", "/proc/none")
    with pytest.raises(
        MemoryLimitError, match=r"a replay of 8 connections needs about 0\.0 GB of memory, and 0\.0 GB are left"
    ):
        compare(HTTP, RACK, cc=["cubic"], seeds=1)
