"""Calibration: the racks whose replay is the capture are found, and where none is, that is said."""

from __future__ import annotations

import math
import random
from pathlib import Path

import fanin as api
import pytest
from fanin.calibration import Calibrated, Calibration, Shown, apart, calibrate
from fanin.calibration.search import FEWEST_RACKS, MOST_RACKS, most_racks
from fanin.calibration.space import between, open_values
from fanin.rack.proposal import RackProposal
from fanin.rack.queue import Finding
from hypothesis import given
from hypothesis import strategies as st

from .conftest import SMALL


def service(buffer: float, seed: int, requests: int = 200) -> Shown:
    """A service whose requests take 10 ms, and the more often 210 ms the smaller the buffer is."""
    draw = random.Random(f"{buffer} {seed}")
    slow = min(0.6, 4.0 / buffer)
    took = [10 + draw.random() + (200 if draw.random() < slow else 0) for _ in range(requests)]
    return Shown.of(took, round(40_000 / buffer + draw.gauss(0, 5)))


def on(racks, seed):
    return [[service(float(dict(rack)["rack.buffer"][:-1]), seed)] for rack in racks]


@pytest.mark.parametrize("truth", [20, 60, 150, 400])
def test_the_buffer_of_a_service_is_found_from_its_timeouts_and_retransmissions(truth: int) -> None:
    sizes = ["16p", "32p", "64p", "128p", "256p", "512p"]
    found = calibrate(service(truth, 7), {"rack.buffer": sizes}, on)
    low, high = (int(end[:-1]) for end in found.ranges()["rack.buffer"])
    assert low / 1.2 <= truth <= high * 1.2
    assert high / low < 5, "a range that says nothing"
    assert math.isclose(sum(fit.weight for fit in found.fits), 1.0)


def test_a_capture_that_no_rack_gives_has_no_fit() -> None:
    capture = Shown.of([52 + n / 50 for n in range(200)], 500)
    found = calibrate(capture, {"rack.buffer": ["16p", "64p", "256p"]}, on)
    assert not found.reproduced
    assert found.kept() == ()
    assert len(found.tried) > 3, "near the best ones more were tried"


def test_without_open_values_the_rack_itself_is_judged() -> None:
    steady = Shown.of([10 + n / 100 for n in range(100)], 0)
    found = calibrate(steady, {}, lambda racks, seed: [[steady] for _ in racks])
    assert [fit.settings for fit in found.fits] == [()]


def test_a_rack_whose_requests_do_not_complete_does_not_fit() -> None:
    steady = Shown.of([10 + n / 100 for n in range(100)], 0)
    assert not calibrate(steady, {}, lambda racks, seed: [[Shown((), 0)] for _ in racks]).reproduced


def test_at_most_so_many_racks_are_tried() -> None:
    values = {"rack.rate": [f"{n}00Mbps" for n in range(1, 10)], "rack.buffer": [f"{n}0p" for n in range(1, 10)]}
    asked: list[int] = []

    def count(racks, seed):
        asked.extend([len(racks)] if seed == 1 else [])
        return on(racks, seed)

    calibrate(service(60, 7), values, count)
    assert sum(asked) <= MOST_RACKS


@pytest.mark.parametrize("truth", [20, 60, 150])
def test_of_a_capture_without_end_few_racks_are_tried_evenly_and_that_is_said(truth: int) -> None:
    sizes = ["16p", "32p", "64p", "128p", "256p", "512p"]
    values = {"rack.rate": [f"{n}00Mbps" for n in range(1, 8)], "rack.buffer": sizes}
    first: list[dict[str, str]] = []

    def told(racks, seed):
        first.extend(map(dict, racks if not first else []))
        return on(racks, seed)

    found = calibrate(service(truth, 7), values, told, most_racks(1e9))
    assert len(found.tried) == FEWEST_RACKS
    assert len(first) <= FEWEST_RACKS / 2
    for key, ends in (("rack.rate", ("100Mbps", "700Mbps")), ("rack.buffer", ("16p", "512p"))):
        assert {rack[key] for rack in first} >= set(ends), "both ends of what is open"
    (note,) = Calibrated(found, widened=False).notes()
    assert note.startswith("12 racks were tried, where 60 may be, since the capture has more than 2 million packets")
    assert Calibrated(calibrate(service(truth, 7), values, on), widened=False).notes() == []


@given(st.integers(20, 400), st.floats(1.0, 200.0), st.integers(0, 5_000))
def test_a_replay_that_equals_the_capture_is_never_apart(requests: int, median: float, losses: int) -> None:
    shown = Shown.of([median * (1 + n / requests) for n in range(requests)], losses)
    assert all(abs(z) < 0.5 for z in apart(shown, [shown, shown]).values())


def test_a_mean_that_is_nearly_three_times_as_long_is_apart_though_the_counts_of_slow_requests_are_not() -> None:
    # As in one of twenty captures of a service: 11 ms measured, 30 ms replayed, no count further apart than 2.1.
    capture = Shown.of([8.0] * 180 + [20.0] * 16 + [55.0] * 4, 100)
    replay = Shown.of([8.0] * 170 + [20.0] * 12 + [210.0] * 18, 100)
    found = apart(capture, [replay, replay])
    assert found.pop("mean") > 5
    assert all(abs(z) < 2.5 for z in found.values())


def test_chance_alone_hardly_ever_puts_a_mean_apart() -> None:
    replays = [service(60, seed) for seed in (1, 2)]
    far = [abs(apart(service(60, seed), replays)["mean"]) > 2.5 for seed in range(100, 300)]
    assert sum(far) <= 10


@given(st.floats(1.5, 20.0))
def test_a_median_that_is_half_as_long_again_is_apart(factor: float) -> None:
    capture = Shown.of([10 + n / 100 for n in range(100)], 10)
    replay = Shown.of([factor * ms for ms in capture.took_ms], 10)
    assert apart(capture, [replay])["p50"] > 2.5


def test_few_requests_are_held_against_nothing() -> None:
    assert apart(Shown.of([1.0] * 9, 0), [Shown.of([9.0] * 9, 0)]) == {}


def test_retransmissions_that_the_tap_cannot_see_are_not_compared() -> None:
    capture = Shown.of([10.0 + n / 10 for n in range(50)], None)
    assert "retransmissions" not in apart(capture, [Shown.of(capture.took_ms, 900)])


def test_medians_of_runs_that_differ_among_each_other_are_not_held_to_be_exact() -> None:
    # A full queue drops in step: each run keeps to a rhythm of its own, and a capture is one run.
    runs = [Shown(tuple(ms + n / 1000 for n in range(60)), 0) for ms in (13.0, 16.5)]
    capture = Shown(tuple(17.8 + n / 1000 for n in range(60)), 0)
    assert abs(apart(capture, runs)["p50"]) < 1.5
    assert apart(capture, [runs[0], runs[0]])["p50"] < -3


def test_a_median_between_requests_with_losses_and_without_says_little() -> None:
    # Of 60 requests 28 had no loss here, and 32 there.
    def half(without: int) -> Shown:
        return Shown(tuple([8.6] * without + [14.0 + n / 100 for n in range(60 - without)]), 100)

    assert abs(apart(half(32), [half(28), half(28)])["p50"]) < 2.5
    assert apart(half(60), [half(4), half(4)])["p50"] > 2.5


def test_a_comparison_tries_fewer_racks_by_the_packets_of_its_capture_and_notes_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # 31,747 packets, and 39.9 MB of payload, which are 26,366 full ones; six racks are tried without a limit.
    monkeypatch.setattr("fanin.calibration.search.FEWEST_RACKS", 1)
    monkeypatch.setattr("fanin.calibration.search.MANY_PACKETS", 2_000)
    monkeypatch.setenv("FANIN_STORE", str(tmp_path))
    result = api.compare(SMALL, cc=["cubic"], seeds=1)
    assert result.calibration is not None
    assert len(result.calibration.calibration.tried) == int(MOST_RACKS * 2_000 / 31_747) == 3
    assert any(note.startswith("3 racks were tried, where 60 may be") for note in result.notes)


def test_what_none_of_the_replayed_requests_shows_is_no_contradiction_where_few_real_ones_do() -> None:
    # Three of 200 requests took a little longer than 1.5 medians, and none of 400 that were replayed.
    capture = Shown.of([10 + n / 1000 for n in range(197)] + [15.8, 16.0, 16.3], 0)
    replay = Shown.of([10 + n / 1000 for n in range(200)], 0)
    assert -2.5 < apart(capture, [replay, replay])["slower than 1.5 medians"] < -0.5
    many = Shown.of([10 + n / 1000 for n in range(160)] + [16.0] * 40, 0)
    assert apart(many, [replay, replay])["slower than 1.5 medians"] < -2.5


def test_counts_of_slow_requests_are_as_far_apart_either_way() -> None:
    some, none = (Shown.of([10.0] * (200 - slow) + [30.0] * slow, 0) for slow in (3, 0))
    more, fewer = (apart(*pair)["slower than 1.5 medians"] for pair in ((none, [some]), (some, [none])))
    assert more > 0 > fewer
    assert math.isclose(more, -fewer, rel_tol=0.3)


def test_medians_of_microseconds_are_not_told_apart() -> None:
    # Answers of one packet: 20 us in the capture, 26 in the replay, and hosts take as long.
    capture, replay = (Shown(tuple(us / 1e3 + n / 1e9 for n in range(400)), 0) for us in (20, 26))
    assert abs(apart(capture, [replay, replay])["p50"]) < 2.5
    longer = (Shown(tuple(1e3 * ms for ms in shown.took_ms), 0) for shown in (capture, replay))
    assert apart(next(longer), [next(longer)])["p50"] > 2.5


def rack_of(rate: tuple[str, ...], buffer: tuple[str, ...]) -> RackProposal:
    """A proposal of a rate and a buffer: value, certainty, and the ends of its range."""
    return RackProposal(
        tuple(
            Finding(key, value, certainty, "", *ends)
            for key, (value, certainty, *ends) in (("rack.rate", rate), ("rack.buffer", buffer))
        )
    )


def steady_ms(median: float) -> Shown:
    return Shown(tuple(median * (1 + n / 10_000) for n in range(-100, 100)), 0)


def by_rate(took: dict[str, float]):
    """Replays whose requests take as long as the rate says."""
    return lambda racks, seed: [[steady_ms(took[dict(rack)["rack.rate"]])] for rack in racks]


@given(st.floats(12, 1e3), st.floats(1.0, 3.0), st.floats(1.0, 3.0))
def test_rates_that_are_tried_lie_in_the_range_of_a_bounded_one_and_are_more_than_one_unless_it_is_narrow(
    told: float, below: float, above: float
) -> None:
    low, value, high = (f"{mbps:.1f}Mbps" for mbps in (told / below, told, told * above))
    tried = open_values(rack_of((value, "bounded", low, high), ("100p", "measured"))).get("rack.rate", [])
    ends = [between.position("rack.rate", end) for end in (low, high)]
    assert all(0.98 * ends[0] <= between.position("rack.rate", rate) <= 1.02 * ends[1] for rate in tried)
    assert len(tried) > 1 or max(told * 1e6 / ends[0], ends[1] / (told * 1e6)) < 1.16


def test_a_rate_between_the_proposed_one_and_its_bound_is_found() -> None:
    # The packets of a token bucket follow each other faster than its rate: 240 Mbps where it is 200.
    values = {
        "rack.rate": open_values(rack_of(("240Mbps", "bounded", "190Mbps", "240Mbps"), ("80p", "measured")))[
            "rack.rate"
        ]
    }
    found = calibrate(steady_ms(10), values, by_rate({"190Mbps": 13.0, "200Mbps": 10.0, "240Mbps": 7.0}))
    assert found.ranges()["rack.rate"] == ("200Mbps", "200Mbps")


def test_the_rate_that_packets_tell_stays_in_the_range_unless_the_replay_is_evidence_against_it() -> None:
    values, told = {"rack.rate": ["300Mbps", "400Mbps"]}, {"rack.rate": "300Mbps"}
    capture, near = steady_ms(10), {"300Mbps": 12.5, "400Mbps": 10.0}
    assert calibrate(capture, values, by_rate(near)).ranges()["rack.rate"] == ("400Mbps", "400Mbps")
    found = calibrate(capture, values, by_rate(near), told=told)
    assert found.ranges()["rack.rate"] == ("300Mbps", "400Mbps")
    assert dict(found.kept()[0].settings) == {"rack.rate": "400Mbps"}, "the likeliest is as it was"
    assert len(found.kept()) == 2
    far = {"300Mbps": 20.0, "400Mbps": 10.0}
    assert calibrate(capture, values, by_rate(far), told=told).ranges()["rack.rate"] == ("400Mbps", "400Mbps")
    neither = {"300Mbps": 12.5, "400Mbps": 7.0}
    assert not calibrate(capture, values, by_rate(neither), told=told).reproduced


def test_all_that_the_capture_allows_is_tried_again_beside_what_may_be_in_effect_under_load(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[dict[str, list[str]]] = []

    def none_fits(base, cc, of, shown, values, **how):
        asked.append({key: list(options) for key, options in values.items()})
        return Calibration(shown, (), {key: tuple(options) for key, options in values.items()})

    monkeypatch.setattr("fanin.calibration.case.calibrated", none_fits)
    monkeypatch.setenv("FANIN_STORE", str(tmp_path))
    result = api.compare(SMALL, cc=["cubic"], seeds=1)
    assert result.calibration is not None
    assert not result.calibration.reproduced
    first = open_values(api.propose_rack(SMALL))
    assert first, "a capture that leaves something open"
    assert len(asked) > 1, "more is tried where nothing fits"
    assert all(set(options) <= set(later[key]) for later in asked for key, options in first.items())
    assert any(len(asked[-1][key]) > len(options) for key, options in first.items())
