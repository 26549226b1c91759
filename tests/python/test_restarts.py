"""A lower floor of the retransmission timer leaves the requests that do not wait for it as they are."""

from __future__ import annotations

import json

import pytest
from fanin import trains
from fanin._native import Replay
from fanin.capture.restarts import windows_to_keep
from fanin.comparison.candidates import Choice, space_of, with_host_settings
from fanin.runs.job import Document
from fanin.runs.replay import ReplayJob, Traffic
from fanin.settings import Candidate
from fanin.settings.lines import recommendation

from tests.python.conftest import ROOT, SMALL

RACK = '[rack]\nrate = "1Gbps"\ndelay = "25us"\nbuffer = "100p"\n'
LARGEST = 32_853
"""Bytes of the largest answers of SMALL, of which none waits for the timer; pauses between its requests are 10 ms and more."""


@pytest.fixture(scope="module")
def replay() -> Replay:
    return trains(SMALL).workload()


def window_to_keep(replay: Replay, floor_ms: float, now_ms: float, mss: int, initial: float) -> int | None:
    return windows_to_keep(replay, [floor_ms], now_ms, mss, initial).get(floor_ms)


def job(replay: Replay, stack: str = "") -> ReplayJob:
    return ReplayJob(Document(f"{RACK}[stack]\n{stack}\n", "rack.toml"), Traffic(replay), "", 0)


def floors(base: ReplayJob, cc: str) -> list[str]:
    found = space_of(base, [cc], switch=False).neighbours(Candidate(cc))
    return [c.label for c in found if "RTO" in c.label]


def test_a_whole_answer_goes_in_one_window(replay: Replay) -> None:
    assert window_to_keep(replay, 5, 200, 1448, 10) == -(-LARGEST // 1448)
    assert window_to_keep(replay, 5, 200, 1000, 10) == -(-LARGEST // 1000)


def test_no_more_than_linux_s_first_receive_window_has_room_for(replay: Replay) -> None:
    workload = json.loads(replay.to_json())
    for message in (message for connection in workload["connections"] for message in connection["messages"]):
        message["response_bytes"] *= 4
        for piece in message["pieces"]:
            piece["bytes"] *= 4
    large = Replay.from_json(json.dumps(workload))
    assert window_to_keep(large, 5, 200, 1448, 10) == 65_535 // 1448


def test_where_nothing_restarts_no_window_is_needed(replay: Replay) -> None:
    assert window_to_keep(replay, 5, 200, 1448, 23) is None, "each answer fits the initial window"
    assert window_to_keep(replay, 100, 200, 1448, 10) is None, "the pauses are shorter than the floor"
    assert window_to_keep(replay, 5, 6, 1448, 10) is None, "they are longer than today's: windows restart already"


def test_where_one_request_in_twenty_waits_for_the_timer_the_floor_goes_alone() -> None:
    waiting = trains(ROOT / "data/captures/nginx_16to1_before.pcap.gz").workload()
    assert window_to_keep(waiting, 5, 200, 1448, 10) is None
    # As if so few requests waited.
    assert window_to_keep(waiting, 5, 1000, 1448, 10) is not None


def test_a_comparison_and_a_search_try_the_floor_with_its_window(replay: Replay) -> None:
    names = with_host_settings(Choice(["cubic"], ["cubic"], "cubic", []), job(replay)).names
    assert "cubic with RTO floor 5ms, initial window 23" in names
    assert "cubic with RTO floor 5ms" not in names
    assert "cubic with RTO floor 5ms, initial window 23" in floors(job(replay), "cubic")
    # It begins with two segments whatever the route says.
    assert "gss+cubic with RTO floor 5ms" in floors(job(replay), "gss+cubic")
    # Hosts that do not restart after a pause need none.
    assert "cubic with RTO floor 5ms" in floors(job(replay, 'cwnd_validation = "linux-keep"'), "cubic")
    # Nor do those whose initial window holds an answer today.
    assert "cubic with RTO floor 5ms" in floors(job(replay, "initial_window = 24"), "cubic")


def test_no_key_is_set_twice(replay: Replay) -> None:
    every = space_of(job(replay), ["cubic"], switch=False).everything()
    keys = [[key for key, _ in candidate.settings] for candidate in every]
    assert all(len(each) == len(set(each)) for each in keys)


def test_the_lines_say_why_the_window_goes_with_the_floor() -> None:
    def needs(**route: str) -> str:
        told = recommendation("cubic", aggregator="10.0.0.1", now="cubic", mark=None, route=route)
        assert told is not None
        return " ".join(told.needs)

    assert "The initial window goes with the floor" in needs(rto_min="5ms", initcwnd="23")
    assert "The initial window goes with the floor" not in needs(rto_min="5ms", initcwnd="4") + needs(rto_min="5ms")
