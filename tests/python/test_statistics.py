"""Laws of the statistics, and that ties stay visible."""

from __future__ import annotations

import math

import polars as pl
import pytest
from fanin.comparison import RUNS
from fanin.frames import thin
from fanin.ranking import STATISTICS, overlap, rank
from fanin.stats import Estimate, estimate, nearest_rank, student_t_975
from hypothesis import given
from hypothesis import strategies as st

times = st.lists(st.floats(0.001, 1e6), min_size=1, max_size=200)


@given(times, st.floats(0.001, 1.0))
def test_a_percentile_is_the_least_value_that_covers_its_share(values: list[float], q: float) -> None:
    found = nearest_rank(sorted(values), len(values), q)
    assert found is not None
    covered = sum(v <= found for v in values)
    below = sum(v < found for v in values)
    assert covered >= q * len(values) - 1e-6
    assert below < q * len(values) + 1e-6


@given(times, st.integers(1, 50))
def test_unfinished_responses_can_only_raise_a_percentile(values: list[float], unfinished: int) -> None:
    for q in (0.5, 0.95, 0.99):
        without = nearest_rank(sorted(values), len(values), q)
        with_them = nearest_rank(sorted(values), len(values) + unfinished, q)
        assert with_them is None or (without is not None and with_them >= without)


@pytest.mark.parametrize(
    ("degrees", "t"),
    [
        (1, 12.7062),
        (4, 2.7764),
        (9, 2.2622),
        (30, 2.0423),
        (31, 2.0395),
        (40, 2.0211),
        (60, 2.0003),
        (120, 1.9799),
        (1000, 1.9623),
    ],
)
def test_students_t_is_the_tables(degrees: int, t: float) -> None:
    assert student_t_975(degrees) == pytest.approx(t, abs=6e-5)


def test_an_interval_worked_by_hand() -> None:
    # Mean 3, s = sqrt(2.5), t(4) = 2.776: half-width 2.776 * sqrt(2.5 / 5) = 1.963.
    found = estimate([1, 2, 3, 4, 5])
    assert found.value == 3
    assert found.high == pytest.approx(4.963, abs=1e-3)
    assert found.low == pytest.approx(1.037, abs=1e-3)


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=40), st.floats(0.1, 10))
def test_an_interval_scales_with_its_values(values: list[float], k: float) -> None:
    one, scaled = estimate(values), estimate([k * v for v in values])
    assert one.high is not None
    assert one.value is not None
    assert scaled.high is not None
    assert scaled.value is not None
    assert scaled.high - scaled.value == pytest.approx(k * (one.high - one.value), rel=1e-6, abs=1e-6)


def runs(p99: dict[str, list[float | None]]) -> pl.DataFrame:
    rows = [
        {**dict.fromkeys(RUNS, 1), "cc": cc, "seed": seed, "unfinished": 0, **dict.fromkeys(STATISTICS, value)}
        for cc, values in p99.items()
        for seed, value in enumerate(values, start=1)
    ]
    return pl.DataFrame(rows, schema=RUNS)


def ranked(p99: dict[str, list[float | None]]) -> list[tuple[str, int, int]]:
    names = dict.fromkeys(p99, False)
    return [(r.cc, r.rank, r.tier) for r in rank(runs(p99), names, dict.fromkeys(p99, ""), "p99")]


def test_algorithms_that_cannot_be_told_apart_share_a_tier() -> None:
    assert ranked({"slow": [9.0, 9.1, 9.2], "b": [1.0, 1.2, 1.4], "a": [1.1, 1.2, 1.5]}) == [
        ("b", 1, 1),
        ("a", 2, 1),
        ("slow", 3, 2),
    ]


def test_what_has_no_value_comes_last() -> None:
    assert [cc for cc, _, _ in ranked({"lost": [None, None], "slow": [9.0, 9.0], "quick": [1.0, 1.0]})] == [
        "quick",
        "slow",
        "lost",
    ]


def test_equal_values_are_ordered_by_name() -> None:
    assert [cc for cc, _, _ in ranked({"b": [1.0, 2.0], "a": [1.0, 2.0]})] == ["a", "b"]


@given(st.permutations(["a", "b", "c", "d"]))
def test_the_order_of_runs_does_not_matter(order: list[str]) -> None:
    values: dict[str, list[float | None]] = {"a": [1.0, 1.1], "b": [1.0, 1.2], "c": [3.0, 3.1], "d": [None, 3.0]}
    assert ranked({name: values[name] for name in order}) == ranked(values)


@given(st.floats(-10, 10), st.floats(0, 5), st.floats(-10, 10), st.floats(0, 5))
def test_overlap_is_symmetric(a: float, wa: float, b: float, wb: float) -> None:
    one, two = Estimate(a, a - wa, a + wa), Estimate(b, b - wb, b + wb)
    assert overlap(one, two) == overlap(two, one)
    assert overlap(one, one)


@given(st.lists(st.integers(0, 300), min_size=1, max_size=400), st.integers(1, 50))
def test_thinning_keeps_the_extremes_and_never_invents(values: list[int], points: int) -> None:
    trace = pl.DataFrame({"cc": ["x"] * len(values), "t": [float(i) for i in range(len(values))], "v": values})
    kept = thin(trace, "t", "v", by=["cc"], points=points)
    assert kept.height <= min(len(values), 4 * points)
    assert kept["v"].max() == max(values)
    assert kept["v"].min() == min(values)
    assert kept["t"].is_sorted()
    assert kept.join(trace, on=["t", "v"], how="semi").height == kept.height
    assert math.isclose(float(kept["t"][0]), 0.0)
