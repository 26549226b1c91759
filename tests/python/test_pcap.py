"""Captures of runs from Python and the command; what is in them is tested beside the Rust code and here by tshark and by fanin itself."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import fanin as api
import pytest

from .conftest import ROOT, Fanin

LOSSY = """
[topology]
senders = 4
buffer = "16p"
[stack]
profile = "linux"
[cc]
name = "cubic"
[[workload]]
kind = "incast"
bytes = "100KB"
request = "300B"
rounds = 2
"""


def test_the_folder_has_a_file_per_place_that_saw_something(tmp_path: Path) -> None:
    result = api.run("lossy.toml", text=LOSSY, pcap=tmp_path / "all")
    names = {file.stem for file in (tmp_path / "all").iterdir()}
    hosts = {"client", "s1", "s2", "s3", "s4"}
    assert names == hosts | {f"switch-{h}" for h in hosts} | {f"{h}-switch" for h in hosts}
    assert result.flows.drop("cc").equals(api.run("lossy.toml", text=LOSSY).flows.drop("cc"))
    assert result.packets.height == 0


def test_ports_that_the_scenario_measures_are_the_ones_captured(tmp_path: Path) -> None:
    result = api.run("lossy.toml", text=LOSSY + '[measure]\npackets = ["switch->client"]\n', pcap=tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["switch-client.pcap"]
    assert set(result.packets["port"].unique()) == {"switch->client"}


def test_several_runs_have_a_folder_each(tmp_path: Path) -> None:
    api.run("lossy.toml", text=LOSSY, cc=["cubic", "gss+newreno"], seeds=2, pcap=tmp_path, pcap_at=["client"])
    folders = sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*.pcap"))
    assert folders == [f"{cc}-{seed}/client.pcap" for cc in ("cubic", "gss+newreno") for seed in (1, 2)]


def test_fanin_reads_in_its_own_capture_what_it_simulated(tmp_path: Path) -> None:
    result = api.run("lossy.toml", text=LOSSY, pcap=tmp_path, pcap_at=["client"])
    found = api.trains(tmp_path / "client.pcap", gap="1ms")
    assert found.summary["connections"] == 4
    assert found.warnings == []
    answers = result.messages.filter(result.messages["class"] != "request")
    assert found.turns["response_bytes"].sort().to_list() == answers["bytes"].sort().to_list()


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_counts_the_retransmissions_of_every_sender(tmp_path: Path) -> None:
    result = api.run("lossy.toml", text=LOSSY, pcap=tmp_path, pcap_at=["s*"])
    kinds = ("retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order")
    repeats = " || ".join(f"tcp.analysis.{kind}" for kind in kinds)
    total = 0
    for host in range(1, 5):
        done = subprocess.run(
            [
                "tshark",
                "-r",
                str(tmp_path / f"s{host}.pcap"),
                "-Y",
                f"tcp.srcport >= 40000 && tcp.len > 0 && ({repeats})",
            ],
            capture_output=True,
            text=True,
            check=True,
        )
        sent = result.flows.filter(src=f"s{host}")["retransmissions"].sum()
        assert len(done.stdout.splitlines()) == sent
        total += sent
    assert total > 0


def test_what_cannot_be_is_one_sentence_and_leaves_nothing(fanin: Fanin, tmp_path: Path) -> None:
    (tmp_path / "lossy.toml").write_text(LOSSY)
    (tmp_path / "file").write_text("")
    for arguments, said in (
        (("--pcap", "caps", "--pcap-at", "clint"), "did you mean `client`?"),
        (("--pcap-at", "client"), "give both"),
        (("--pcap", "file"), "choose another folder with --pcap"),
    ):
        done = fanin("run", "lossy.toml", *arguments)
        assert (done.code, done.err.count("\n"), said in done.err) == (2, 1, True), done.err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "lossy.toml"]


def test_the_command_says_where_the_captures_are(fanin: Fanin, tmp_path: Path) -> None:
    done = fanin(
        "run", ROOT / "examples/dumbbell.toml", "--set", "run.duration=600ms", "--pcap", "caps", "--pcap-at", "left"
    )
    assert done.code == 0, done.err
    assert "captures: caps" in done.err
    assert sorted(p.name for p in (tmp_path / "caps").iterdir()) == ["left-right.pcap", "left-s1.pcap", "left-s2.pcap"]
