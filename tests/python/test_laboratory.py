"""A part of the laboratory of services (`python -m tests.services`), for real: what is read of a capture beside what the application logged."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from fanin.capture import closing

from tests.services import __main__ as laboratory
from tests.services import judge, patterns, rack, servers

PART = ("fan", "semaphore", "4 users", "redis")
REQUESTS = 60
MBPS, BUFFER = 100, 400
"""A third of the laboratory's rate: requests take so long that what a busy machine's application takes itself, 0.3 to 0.7 ms of each, is below a tenth."""

TRIES = 3
"""A machine that is busy with other things leaves packets out of a capture, and wakes the application late."""


@pytest.fixture(scope="module")
def laboratory_is_here() -> None:
    """Root, namespaces, and the programs that capture."""
    if (why := rack.missing()) is not None:
        pytest.skip(why)


@pytest.mark.usefixtures("laboratory_is_here")
@pytest.mark.parametrize("name", PART)
def test_a_service_that_runs_now_is_read_as_its_application_says(name: str) -> None:
    service = replace(patterns.named(name), mbps=MBPS, buffer=BUFFER)
    if (why := servers.missing(service.server)) is not None:
        pytest.skip(why)
    seen: list[judge.Row] = []
    for seed in range(TRIES):
        with tempfile.TemporaryDirectory() as folder:
            seen += laboratory.rows(service, seed, Path(folder), ["aggregator"], REQUESTS)
        if seen[-1].verdict == "right":
            return
    pytest.fail("\n".join(laboratory.line(row) for row in seen))


def test_a_reading_that_is_off_by_more_than_its_bounds_is_not_right() -> None:
    log = judge.Counted(responses=1_000, requests=100, p50=10.0, p99=50.0)

    def verdict(read: judge.Counted, *warnings: str) -> str:
        return judge.Row("made up", "aggregator", log, read, warnings).verdict

    assert verdict(judge.Counted(1_009, 98, 10.9, 45.1)) == "right"
    assert verdict(log, "missing-data") == "doubted"
    for wrong in (
        judge.Counted(1_011, 100, 10.0, 50.0),
        judge.Counted(1_000, 97, 10.0, 50.0),
        judge.Counted(1_000, 100, 11.1, 50.0),
        judge.Counted(1_000, 100, 10.0, 44.0),
        judge.Counted(1_000, 0, float("nan"), float("nan")),
    ):
        assert (verdict(wrong), verdict(wrong, "missing-data")) == ("WRONG", "warned")


def test_a_note_about_the_applications_own_time_excuses_requests_that_are_too_short_and_nothing_else() -> None:
    log = judge.Counted(responses=1_000, requests=100, p50=1.0, p99=5.0)

    def verdict(read: judge.Counted) -> str:
        return judge.Row("made up", "aggregator", log, read, (), own_time=True).verdict

    assert verdict(judge.Counted(1_000, 100, 0.8, 4.8)) == "warned"
    assert verdict(log) == "right"
    for wrong in (
        judge.Counted(1_000, 100, 1.2, 5.2),
        judge.Counted(1_000, 97, 0.8, 4.8),
        judge.Counted(250, 100, 0.8, 4.8),
        judge.Counted(1_000, 100, 0.8, 5.6),
    ):
        assert verdict(wrong) == "WRONG"


class Made:
    """Thirty requests of 5 ms, which are released as said and begin with so many messages within so many microseconds."""

    def __init__(
        self, released_by: list[dict[str, object]], first_messages: int, spread_us: int, connections: int | None = None
    ) -> None:
        self.group = {"released_by": released_by, "spread": {"median_ns": 1_000 * spread_us}}
        first, own = {"median": first_messages}, {"median": connections or first_messages}
        self.closing = {"group": 0, "requests": 30, "first_messages": first, "connections_per_request": own}

    def round_times_ms(self) -> list[float]:
        return [5.0] * 30

    def groups_json(self) -> str:
        return json.dumps([self.group])

    def closings_json(self) -> str:
        return json.dumps([self.closing])


def test_an_applications_own_time_is_told_by_the_pace_of_the_messages_with_which_its_requests_begin() -> None:
    def told(first: int, connections: int | None = None) -> str | None:
        inside = {"event": "inside", "delay": {"median_ns": 50_000}}
        return closing.unseen(cast(Any, Made([inside], first, 60, connections)))

    assert "6% of the median request" in (told(2) or "")
    assert told(12) is None, "2 % of a request"
    assert "6% of the median request" in (told(12, connections=2) or ""), "six calls of a connection leave as one"


def test_it_is_said_where_no_pause_tells_a_request_from_a_stage() -> None:
    def told(within_us: int) -> str | None:
        inside = {"event": "inside", "delay": {"median_ns": 200_000}}
        answers = {"event": "answers", "delay": {"p90_ns": 1_000 * within_us}}
        return closing.at_once(cast(Any, Made([answers, inside], 4, 10)))

    assert "within 190 µs of the answers" in (told(190) or "")
    assert told(210) is None
