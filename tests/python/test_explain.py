"""Why a response was slow, from the trace."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import fanin
import polars as pl
import pytest
from fanin.comparison.columns import PACKETS, PAUSES, WINDOW
from fanin.words.explain import Explanation, explained, explanations

CAPTURE, RACK = "data/captures/http_onoff_8to1.pcap.gz", "examples/rack.toml"
SEGMENT, LINE_US = 1448, 12.0


@pytest.fixture(scope="module")
def ran() -> fanin.CompareResult:
    return fanin.compare(CAPTURE, RACK, cc=["bbr"], seeds=1, settings={"rack.rate": "1Gbps"})


def told(
    ran: fanin.CompareResult, apart_us: float, windows: list[tuple[float, float, float, str]], **more: Any
) -> Explanation:
    """What is said of twenty packets that came so far apart; of the sender: when (ms), cwnd, in flight, state."""
    packets = [
        ("bbr", 0, 100.0 + n * apart_us / 1e3 + late, event, n * SEGMENT, SEGMENT)
        for n in range(20)
        for event, late in (("accepted", 0.0), ("delivered", LINE_US / 1e3))
    ]
    window = [("bbr", 0, at, cwnd, None, flight, 0.1, state) for at, cwnd, flight, state in windows]
    made = replace(
        ran,
        packets=pl.DataFrame(packets, schema=PACKETS, orient="row"),
        window=pl.DataFrame(window, schema=WINDOW, orient="row"),
        pauses=pl.DataFrame([(0, 3, more.get("paused_ms", 0.0)), (0, 2, 99.0)], schema=PAUSES, orient="row"),
    )
    took = 19 * apart_us / 1e3 + LINE_US / 1e3
    response = {
        "cc": "bbr", "connection": 0, "response": 3, "bytes": 20 * SEGMENT,
        "release_ms": 100.0, "done_ms": 100.0 + took, "completion_ms": took, "timeouts": 0,
    }  # fmt: skip
    return explained(made, response)


def test_a_window_that_bbr_keeps_small_to_probe_is_told_with_what_it_was_before(ran: fanin.CompareResult) -> None:
    probing = [(50.0, 80.0, 10.0, "open"), (90.0, 4.0, 0.0, "open"), (100.1, 4.0, 4.0, "open")]
    found = told(ran, 60, probing)
    assert found.cause == "probing"
    assert (
        "for 1.15 ms (100%) BBR kept its window at 4 packets, after 80, to see the shortest round trip"
        in found.sentence
    )
    # A window that was never larger is no probe, nor is one that a loss cut.
    assert told(ran, 60, probing[1:]).cause == "window"
    assert told(ran, 60, [(50.0, 80.0, 10.0, "loss"), *probing[1:]]).cause != "probing"


def test_packets_that_bbr_paces_though_its_window_has_room_are_told_with_their_rate(ran: fanin.CompareResult) -> None:
    room = [(99.0, 30.0, 2.0, "open"), (100.4, 30.0, 6.0, "open")]
    found = told(ran, 60, room)
    assert found.cause == "pacing"
    assert "they left at 193 Mbps of the link's 1.00 Gbps" in found.sentence
    assert "25 more on average" in found.sentence
    # As fast as the link takes them, or with a full window, it was not the pacing.
    assert told(ran, LINE_US, room).cause != "pacing"
    assert told(ran, 60, [(99.0, 6.0, 6.0, "open")]).cause != "pacing"


def test_pauses_of_the_capture_are_not_taken_for_waiting_of_the_sender(ran: fanin.CompareResult) -> None:
    window = [(99.0, 30.0, 30.0, "open")]
    found = told(ran, 1000, window, paused_ms=17.0)
    assert found.cause == "pause"
    assert "17.0 ms of it (89%) are pauses in the capture" in found.sentence
    assert told(ran, 1000, window, paused_ms=1.0).cause != "pause"


def test_a_comparison_knows_the_pauses_of_its_responses(ran: fanin.CompareResult) -> None:
    asked = ran.responses.select("connection", "response").unique()
    assert asked.join(ran.pauses, on=["connection", "response"], how="anti").is_empty()
    assert ran.pauses.height == asked.height


SHORT = """
[topology]
senders = 4
rate = "1Gbps"
delay = "50us"
buffer = "400p"
[stack]
profile = "linux"
[[workload]]
kind = "http_on_off"
responses = 100
size = { uniform = ["10KB", "60KB"] }
gap = { exponential = "20ms" }
closed_loop = true
request = "100B"
[run]
duration = "4s"
"""


def test_in_a_run_of_short_responses_the_slowest_of_bbr_met_its_probing(tmp_path: Path) -> None:
    fanin.run("short.toml", text=SHORT, cc="bbr", seeds=1, pcap=tmp_path, pcap_at=["client"])
    rack = tmp_path / "rack.toml"
    rack.write_text('[rack]\nrate = "1Gbps"\ndelay = "50us"\nbuffer = "400p"\n')
    settings = {"cc.bbr_min_rtt_window": "700ms"}
    found = fanin.compare(tmp_path / "client.pcap", rack, cc=["bbr", "cubic"], seeds=1, settings=settings)
    causes = {e.cc: e.cause for e in explanations(found)}
    assert causes["bbr"] == "probing"
    assert causes["cubic"] != "probing"
