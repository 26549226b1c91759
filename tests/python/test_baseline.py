"""What the hosts run today, told from a capture of it."""

from __future__ import annotations

import json
from pathlib import Path

import fanin
import pytest
from fanin.capture.measured import Today, seen_baseline

from .conftest import HTTP, Fanin, merged

LONG = """
[topology]
senders = 4
rate = "1Gbps"
delay = "25us"
buffer = "100p"
mark = "20p"
[stack]
profile = "linux"
[[workload]]
kind = "long"
[run]
duration = "1s"
"""

SHORT = LONG.replace('kind = "long"', 'kind = "incast"\nbytes = "48KB"\nrounds = 30').replace(
    "senders = 4", "senders = 12"
)


def captured(folder: Path, cc: str, text: str = LONG, at: str = "s[0-9]*", seed: int = 1) -> Path:
    """A run's capture: at the servers, or with ``s*-switch`` and ``switch-s*`` on their cables, or at the client."""
    fanin.run("today.toml", text=text, cc=cc, seed=seed, pcap=folder / cc)
    files = [file for file in (folder / cc).glob("*.pcap") for one in at.split(",") if file.match(f"{one}.pcap")]
    return merged(files, folder / f"{cc}.pcap")


def seen(capture: Path) -> Today | None:
    found = fanin.trains(capture)
    return seen_baseline(found, found.workload(None).aggregator)


def told(capture: Path) -> str | None:
    today = seen(capture)
    return today.cc if today else None


@pytest.mark.parametrize("cc", ["bbr", "cubic", "reno", "dctcp"])
def test_long_responses_tell_what_their_senders_run(tmp_path: Path, cc: str) -> None:
    for seed in (1, 2):
        folder = tmp_path / str(seed)
        folder.mkdir()
        assert told(captured(folder, cc, at="s[1-4]", seed=seed)) == cc
    # On the cable, half a round trip away from the sender.
    folder = tmp_path / "cable"
    folder.mkdir()
    assert told(captured(folder, cc, at="s[1-4]-switch,switch-s[1-4]")) == cc


@pytest.mark.parametrize("cc", ["bbr", "cubic", "reno"])
def test_nothing_is_said_of_a_capture_from_behind_the_queue(tmp_path: Path, cc: str) -> None:
    assert seen(captured(tmp_path, cc, at="client")) is None


@pytest.mark.parametrize("cc", ["bbr", "cubic", "reno"])
def test_short_responses_lose_too_few_windows_to_tell(tmp_path: Path, cc: str) -> None:
    today = seen(captured(tmp_path, cc, text=SHORT, at="s[0-9],s1[0-9]"))
    if cc == "bbr":
        assert today is None
    else:
        assert today is not None
        assert today.cc is None
        assert "as with none that paces" in today.why


@pytest.mark.parametrize("cc", ["bbr", "cubic", "dctcp", "reno", "vegas"])
@pytest.mark.parametrize("size", ["8KB", "32KB", "128KB", "512KB"])
def test_responses_of_any_size_are_told_rightly_or_not_at_all(tmp_path: Path, cc: str, size: str) -> None:
    text = LONG.replace('kind = "long"', f'kind = "incast"\nbytes = "{size}"\nrounds = 60').replace("1s", "400ms")
    today = seen(captured(tmp_path, cc, text=text))
    if cc == "dctcp":
        assert today is not None
        assert today.cc == "dctcp"
    elif cc == "vegas":
        # It halves its window as Reno does: that is all there is to see.
        assert today is None or today.cc is None or (today.cc == "reno" and "look the same" in today.why)
    else:
        assert today is None or today.cc in {None, cc}


def test_a_busy_host_that_sends_in_between_is_not_taken_for_bbr() -> None:
    # Reno on shaped links of a machine with two cores: 7 % of its packets follow an acknowledgement.
    assert seen(HTTP) is None


def test_the_answer_says_how_it_is_known(tmp_path: Path, fanin: Fanin) -> None:
    capture = captured(tmp_path, "reno", at="s[1-4]")
    done = fanin("compare", capture, "--cc", "cubic,reno", "--seeds", "2", "--json", "--out", tmp_path / "out")
    assert done.code == 0, done.err
    said = json.loads(done.out)
    assert said["baseline"]["cc"] == "reno"
    assert "losses that took a part of the window left more than half" in said["baseline"]["why"]
    assert any(sentence.startswith("Your hosts run reno: ") for sentence in said["answer"]["support"])
    other = captured(tmp_path, "cubic", text=SHORT, at="s[0-9],s1[0-9]")
    done = fanin("compare", other, "--cc", "cubic,reno", "--seeds", "2", "--json", "--out", tmp_path / "out")
    support = json.loads(done.out)["answer"]["support"]
    assert any("presumed to run cubic" in s and "the capture shows only that" in s for s in support)
