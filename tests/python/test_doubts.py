"""What a comparison says of a capture that does not show all that decides."""

from __future__ import annotations

import json
from collections.abc import Sequence

import polars as pl
from fanin._native import Replay
from fanin.comparison import doubts
from fanin.comparison.columns import RESPONSES, ROUNDS, RUNS

ROUND_MS = 5.0

NO_WAY = pl.DataFrame(schema={"connection": pl.UInt32, "way": pl.Float64})


def replay(rounds: int = 40, *, between: tuple[int, int] | None = None, **more: object) -> Replay:
    """Two servers that are asked together, each round taking 5 ms."""
    ns = int(ROUND_MS * 1e6)
    message = {
        "think_ns": 0,
        "request_bytes": 100,
        "service_ns": 20_000,
        "response_bytes": 5_000,
        "pieces": [{"pause_ns": 0, "bytes": 5_000}],
        "took_ns": ns,
        "overlapped": False,
    }
    if between is not None:
        message["service_between_ns"] = between
    connections = [
        {
            "server": server,
            "connection": server,
            "start_ns": 0,
            "opened": True,
            "messages": [{"start_ns": 2 * n * ns, **message} for n in range(rounds)],
        }
        for server in (0, 1)
    ]
    text = {
        "format": "fanin-workload",
        "version": 2,
        "source": "test",
        "aggregator": "10.0.0.1",
        "servers": ["10.0.0.2", "10.0.0.3"],
        "connections": connections,
        "rounds": [{"group": 0, "requests": [(0, n), (1, n)], "took_ns": ns} for n in range(rounds)],
        **more,
    }
    return Replay.from_json(json.dumps(text))


def replayed(rounds_ms: Sequence[float], timeouts: int = 0) -> doubts.Replayed:
    """Two seeds of replays whose rounds all take these times."""
    rows = [(seed, n, ms) for seed in (1, 2) for n, ms in enumerate(rounds_ms)]
    empty = {"release_ms": 0.0, "done_ms": 0.0, "cc": "cubic"}
    rounds = pl.DataFrame(
        [{**empty, "seed": s, "round": n, "group": 0, "requests": 2, "completion_ms": ms} for s, n, ms in rows],
        schema=ROUNDS,
    )
    responses = pl.DataFrame(
        [{**empty, "seed": s, "connection": 0, "response": n, "completion_ms": ms, "timeouts": 0} for s, n, ms in rows],
        schema=RESPONSES,
    )
    runs = pl.DataFrame([{"seed": seed, "timeouts": timeouts, "drops": 0} for seed in (1, 2)], schema=RUNS)
    return doubts.Replayed(responses, rounds, runs)


def kinds(told: Sequence[str]) -> list[str]:
    return [getattr(warning, "kind", "") for warning in told]


def test_a_replay_that_is_what_was_captured_is_not_doubted() -> None:
    for ms in (ROUND_MS, 1.09 * ROUND_MS, ROUND_MS / 1.09):
        assert doubts.against_the_capture(replay(), "cubic", replayed([ms] * 40), {}) == []


def test_a_replay_that_takes_longer_or_shorter_than_the_capture_is_doubted() -> None:
    for ms, says in ((2 * ROUND_MS, "10.0 ms instead of 5.00 ms"), (ROUND_MS / 2, "2.50 ms instead of 5.00 ms")):
        told = doubts.against_the_capture(replay(), "cubic", replayed([ms] * 40), {})
        assert kinds(told) == [doubts.NOT_AS_CAPTURED]
        assert f"the median round {says}" in told[0]


def test_few_rounds_show_no_tail() -> None:
    # One round in forty of the replay waits for a timeout; a capture of forty may have had none by chance.
    slow = [ROUND_MS] * 39 + [205.0]
    assert doubts.against_the_capture(replay(), "cubic", replayed(slow), {}) == []


def test_servers_times_that_matter_and_are_not_seen_are_said() -> None:
    unsure, one, other = replay(between=(10_000, 110_000)), replayed([4.7] * 40), replayed([5.4] * 40)
    assert json.loads(unsure.to_json())["connections"][0]["messages"][0]["service_ns"] == 20_000
    moved = unsure.otherwise()
    assert moved is not None
    # As far from the one bound as it was from the other.
    assert json.loads(moved.to_json())["connections"][0]["messages"][0]["service_ns"] == 100_000
    told = doubts.against_others(unsure, "cubic", one, lambda _replay, _settings: other)
    assert kinds(told) == ["server-times-unseen"]
    assert "a median round of 5.40 ms instead of 4.70 ms" in told[0]
    assert doubts.against_others(unsure, "cubic", one, lambda _replay, _settings: one) == []
    assert replay().otherwise() is None
    assert doubts.against_others(replay(), "cubic", one, lambda *_: other) == []


def by_a_timer(took_ms: float, *, regardless: bool = False) -> Replay:
    """The same every 10 ms by a timer, one answer of which took so long."""
    text = json.loads(replay().to_json())
    for connection in text["connections"]:
        for message in connection["messages"]:
            message["release"] = {"by": "clock"}
    text["connections"][1]["messages"][7]["took_ns"] = int(took_ms * 1e6)
    text["connections"][0]["messages"][5]["release"] = {"by": "clock", "regardless": regardless}
    delay = dict.fromkeys(("p10_ns", "median_ns", "p90_ns"), int(2e6 * ROUND_MS))
    edge = {"event": "timer", "requests": 78, "delay": delay}
    about = {"connections": [0, 1], "servers": 2, "upstream": False, "rounds": 40, "requests": 80}
    text["groups"] = [{**about, "spread": delay, "released_by": [edge]}]
    return Replay.from_json(json.dumps(text))


def test_whether_a_timer_waits_for_a_late_answer_is_tried_where_none_was_late() -> None:
    other = by_a_timer(ROUND_MS).unwaiting()
    assert other is not None
    releases = [m["release"] for c in json.loads(other.to_json())["connections"] for m in c["messages"]]
    # Before its first answer no connection waits for one.
    assert [r.get("regardless", False) for r in releases] == 2 * ([False] + [True] * 39)
    # An answer that took longer than the period and was waited for shows it, and so does a request that did not wait.
    assert by_a_timer(2 * ROUND_MS).unwaiting() is None
    assert by_a_timer(ROUND_MS, regardless=True).unwaiting() is None
    assert replay().unwaiting() is None
    one, two = replayed([5.0] * 40, timeouts=30), replayed([5.0] * 40)
    told = doubts.against_others(by_a_timer(ROUND_MS), "cubic", one, lambda *_: two)
    assert kinds(told) == ["timer-untested"]
    assert "0 timeouts a run instead of 30" in told[0]
    assert doubts.against_others(by_a_timer(ROUND_MS), "cubic", one, lambda *_: one) == []


def test_a_replay_whose_seeds_all_lie_beyond_the_capture_is_doubted_however_far_they_are_apart() -> None:
    one, two = replayed([6.0] * 40), replayed([600.0] * 40)
    of = [seeds.rounds.filter(pl.col("seed") == seed) for seeds, seed in ((one, 1), (two, 2))]
    told = doubts.against_the_capture(
        replay(), "cubic", doubts.Replayed(one.responses, pl.concat(of), one.runs), NO_WAY
    )
    assert kinds(told) == [doubts.NOT_AS_CAPTURED]
    # One of them is like the capture.
    near = replayed([5.2] * 40).rounds.filter(pl.col("seed") == 1)
    like = doubts.Replayed(one.responses, pl.concat([near, of[1]]), one.runs)
    assert doubts.against_the_capture(replay(), "cubic", like, {}) == []


def test_trims_own_waits_are_tried() -> None:
    asked: list[dict[str, str]] = []

    def again(other: Replay | None, settings: object) -> doubts.Replayed:
        asked.append(dict(settings))  # type: ignore[call-overload]
        assert other is None
        return replayed([4.7] * 40)

    told = doubts.against_others(replay(), "trim", replayed([5.4] * 40), again)
    assert kinds(told) == ["held-back"]
    assert asked == [{"cc.trim_async": "false"}]


def test_what_nothing_asked_for_and_what_was_not_told_apart_is_said() -> None:
    assert doubts.about_the_capture(replay(), independent=False) == []
    assert kinds(doubts.about_the_capture(replay(untold=3), independent=False)) == ["requests-untold"]
    unasked = json.loads(replay().to_json())
    for message in unasked["connections"][0]["messages"]:
        message["request_bytes"] = 0
    found = Replay.from_json(json.dumps(unasked))
    assert found.unasked == 39
    assert kinds(doubts.about_the_capture(found, independent=False)) == ["unasked"]
    assert doubts.about_the_capture(found, independent=True) == []


def test_writes_that_nothing_asked_for_and_no_pause_separates_are_said() -> None:
    def pushed(writes: int) -> Replay:
        text = json.loads(replay(rounds=1).to_json())
        for connection in text["connections"]:
            connection["messages"][0]["request_bytes"] = 0
            connection["unasked_writes"] = writes
        return Replay.from_json(json.dumps({**text, "rounds": []}))

    # One long answer of one write for each of two servers; then twenty that look like one.
    assert doubts.about_the_capture(pushed(1), independent=False) == []
    assert pushed(20).merged == 38
    told = doubts.about_the_capture(pushed(20), independent=False)
    assert kinds(told) == ["unasked"]
    assert told[0].startswith("38 writes")
    assert doubts.about_the_capture(pushed(20), independent=True) == []


def alone(count: int) -> Replay:
    """So many connections with one request each, answered within a round's time."""
    text = json.loads(replay(rounds=1).to_json())
    text["connections"] = [{**text["connections"][0], "connection": n} for n in range(count)]
    return Replay.from_json(json.dumps({**text, "rounds": []}))


def test_a_connection_for_each_request_is_held_against_its_capture_too() -> None:
    there = alone(40)
    for ms, says in ((ROUND_MS, []), (2 * ROUND_MS, [doubts.NOT_AS_CAPTURED])):
        one = replayed([ms] * 40)
        first = one.responses.with_columns(
            connection=pl.col("response"), response=pl.lit(0, one.responses.schema["response"])
        )
        told = doubts.against_the_capture(there, "cubic", doubts.Replayed(first, one.rounds.clear(), one.runs), NO_WAY)
        assert kinds(told) == says


def test_where_a_sample_does_not_bound_p99_an_earlier_quantile_stands_in() -> None:
    # Forty rounds of a capture took 5 ms; an eighth of the replay's take twice as long, which chance alone would have shown in one of the forty.
    told = doubts.against_the_capture(replay(), "cubic", replayed([ROUND_MS] * 35 + [2 * ROUND_MS] * 5), {})
    assert kinds(told) == [doubts.NOT_AS_CAPTURED]
    assert "the p90 round 10.0 ms instead of 5.00 ms" in told[0]
