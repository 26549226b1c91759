"""Names and texts from outside in what commands print: each stays on its line, and nothing in it steers a terminal."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from . import faults

NAME = "x\nINJECTED \x1b[2J\u202e\r\u2028INJECTED"
"""Ends of lines of every kind, an escape sequence, a mark that turns the direction of text."""

QUOTED = r"$'x\nINJECTED \x1b[2J\u202e\r\u2028INJECTED{}'"
"""The same for bash, with what follows it."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = faults.place(tmp_path_factory.mktemp("names"))
    written = json.dumps(NAME)
    (folder / f"{NAME}.toml").write_text(faults.SCENARIO)
    (folder / f"{NAME}-bad.toml").write_text("[topology]\nbufer = 3\n")
    (folder / f"{NAME}-cut.pcap").write_bytes(b"junk" * 10)
    (folder / f"{NAME}.c").write_text("int x = ;\n")
    (folder / f"{NAME}.csv").write_text("a,b\n1,2\n")
    shutil.copy(faults.SMALL, folder / f"{NAME}.pcap.gz")
    (folder / "title.toml").write_text(faults.SCENARIO.replace('"four at once"', written))
    (folder / "key.toml").write_text(f"{faults.SCENARIO}{written} = 3\n")
    (folder / "kind.toml").write_text(faults.SCENARIO.replace('"incast"', written))
    (folder / "cc.toml").write_text(f"{faults.SCENARIO}[cc]\nname = {written}\n")
    (folder / "axis.toml").write_text(faults.SWEEP.replace("[axis.n]", f"[axis.{written}]"))
    (folder / "none.toml").write_text(faults.SWEEP.replace('"incast.toml"', written))
    return folder


@pytest.mark.parametrize(
    "words",
    [
        f"run {QUOTED.format('.toml')}",
        f"run {QUOTED.format('-bad.toml')}",
        f"run incast.toml --out {QUOTED.format('.toml')}",
        f"run incast.toml --cc {QUOTED.format('')}",
        f"run incast.toml --cc {QUOTED.format('.c')}",
        f"run --{QUOTED.format('')}",
        "run title.toml",
        "run key.toml",
        "run kind.toml",
        "run cc.toml",
        f"draw {QUOTED.format('-bad.toml')} --out out.html",
        f"trains {QUOTED.format('.pcap.gz')}",
        f"trains {QUOTED.format('-cut.pcap')}",
        f"trains small.pcap.gz --spans {QUOTED.format('.csv')}",
        f"rack {QUOTED.format('.pcap.gz')}",
        f"rack small.pcap.gz --out {QUOTED.format('.toml')}",
        f"diff {QUOTED.format('.pcap.gz')} small.pcap.gz",
        f"compare {QUOTED.format('.pcap.gz')} --rack rack.toml --cc cubic,dctcp --seeds 1",
        f"compare small.pcap.gz --rack {QUOTED.format('-bad.toml')}",
        f"compare small.pcap.gz --aggregator {QUOTED.format('')}",
        "sweep axis.toml",
        "sweep none.toml",
        f"query {QUOTED.format('')}",
        f"plot {QUOTED.format('')} --x a --y b",
        f"{QUOTED.format('')}",
    ],
)  # fmt: skip
def test_a_name_stays_on_its_line(place: Path, words: str) -> None:
    ended = faults.in_shell(place, ":", words)
    for told in (ended.out, ended.err):
        assert not set("\x1b\u202e\r\u2028") & set(told)
        assert [line for line in told.splitlines() if line.lstrip().startswith("INJECTED")] == []
    assert faults.NEVER.search(ended.err) is None
    if ended.code == 2:
        assert len(ended.err.splitlines()) == 1, ended.err
