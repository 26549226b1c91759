"""Laws of the statistics, and that ties stay visible."""

from __future__ import annotations

import math

import polars as pl
import pytest
from fanin.comparison import RUNS
from fanin.statistics.frames import thin
from fanin.statistics.ranking import STATISTICS, RankingRow, rank
from fanin.statistics.seeds import (
    estimate,
    estimate_positive,
    holm,
    nearest_rank,
    paired_ratios,
    student_t_975,
    student_t_two_sided,
)
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


def test_each_tier_is_compared_with_its_own_best() -> None:
    # b and c cannot be told apart, though each can from a; d can from both.
    values: dict[str, list[float | None]] = {
        "a": [1.0, 1.01, 1.02, 1.03, 1.04],
        "b": [2.0, 2.05, 2.03, 2.08, 2.06],
        "c": [2.01, 2.04, 2.06, 2.07, 2.09],
        "d": [4.0, 4.04, 4.09, 4.12, 4.17],
        "e": [4.02, 4.03, 4.11, 4.10, 4.20],
    }
    assert [(name, tier) for name, _, tier in ranked(values)] == [("a", 1), ("b", 2), ("c", 2), ("d", 3), ("e", 3)]


def test_what_has_no_value_comes_last() -> None:
    assert [cc for cc, _, _ in ranked({"lost": [None, None], "slow": [9.0, 9.0], "quick": [1.0, 1.0]})] == [
        "quick",
        "slow",
        "lost",
    ]


def test_equal_rows_are_one_named_by_the_first_name() -> None:
    assert ranked({"b": [1.0, 2.0], "a": [1.0, 2.0]}) == [("a", 1, 1)]


@given(st.permutations(["a", "b", "c", "d"]))
def test_the_order_of_runs_does_not_matter(order: list[str]) -> None:
    values: dict[str, list[float | None]] = {"a": [1.0, 1.1], "b": [1.0, 1.2], "c": [3.0, 3.1], "d": [None, 3.0]}
    assert ranked({name: values[name] for name in order}) == ranked(values)


def test_seeds_that_share_their_jitter_tell_apart_what_their_intervals_do_not() -> None:
    # Each seed is 20% longer under b, give or take one percent; the seeds themselves differ by a factor of three.
    a: list[float | None] = [1.0, 1.5, 2.0, 2.5, 3.0]
    b: list[float | None] = [1.21, 1.79, 2.4, 3.02, 3.58]
    one, two = estimate_positive(a), estimate_positive(b)
    assert (one.high or 0) > (two.low or 9), "the intervals overlap"
    assert ranked({"a": a, "b": b}) == [("a", 1, 1), ("b", 2, 2)]
    # The same values in another order of seeds are no evidence.
    assert ranked({"a": a, "b": b[::-1]}) == [("a", 1, 1), ("b", 2, 1)]


def test_a_difference_that_one_comparison_would_prove_is_not_proved_by_the_best_of_twelve() -> None:
    base: list[float | None] = [1.0, 1.0, 1.0, 1.0, 1.0]
    close: list[float | None] = [1.01, 1.03, 1.05, 1.02, 1.04]
    alone = paired_ratios(close, base).p
    assert alone is not None
    assert 0.01 < alone < 0.05
    assert [tier for _, _, tier in ranked({"base": base, "close": close})] == [1, 2]
    many = {f"c{i:02}": close for i in range(12)}
    rows = rank(
        runs({"base": base, **many}), dict.fromkeys(["base", *many], False), dict.fromkeys(["base", *many], ""), "p99"
    )
    assert [row.alike for row in rows] == [(), tuple(many)[1:]], "rows that are the same are one"
    apart = {f"c{i:02}": [v ** (1 + i / 2) if v else v for v in close] for i in range(12)}
    assert {tier for _, _, tier in ranked({"base": base, **apart})} == {1}


def test_one_seed_tells_nothing_apart() -> None:
    assert ranked({"a": [1.0], "b": [9.0]}) == [("a", 1, 1), ("b", 2, 1)]


def test_candidates_come_before_models_and_are_counted_apart() -> None:
    values: dict[str, list[float | None]] = {"a": [3.0, 3.1], "b": [1.0, 1.1], "c": [2.0, 2.1]}
    rows = rank(
        runs(values),
        dict.fromkeys(values, False),
        dict.fromkeys(values, ""),
        "p99",
        candidates={"a", "c"},
        baseline="a",
    )
    assert [(r.cc, r.rank, r.candidate) for r in rows] == [("c", 1, True), ("a", 2, True), ("b", 1, False)]
    assert against(rows, "b") == pytest.approx(math.sqrt(1.0 / 3.0 * 1.1 / 3.1))
    assert rows[1].against_baseline == {}


def against(rows: list[RankingRow], cc: str) -> float | None:
    return next(r for r in rows if r.cc == cc).against_baseline["p99"].change.value


@given(st.lists(st.floats(0.01, 1e4), min_size=2, max_size=12))
def test_the_interval_of_a_time_never_reaches_below_zero(values: list[float]) -> None:
    found = estimate_positive(values)
    assert found.low is not None
    assert found.value is not None
    assert found.high is not None
    assert 0 < found.low <= found.value * (1 + 1e-9) <= found.high * (1 + 1e-6)


@given(st.lists(st.tuples(st.floats(0.01, 1e3), st.floats(0.01, 1e3)), min_size=2, max_size=12))
def test_which_of_two_comes_first_changes_no_p_and_turns_the_ratio_round(pairs: list[tuple[float, float]]) -> None:
    one, two = (
        paired_ratios(*map(list, zip(*pairs, strict=True))),
        paired_ratios(*map(list, zip(*[p[::-1] for p in pairs], strict=True))),
    )
    assert one.p == pytest.approx(two.p)
    assert one.change.value is not None
    assert two.change.value is not None
    assert one.change.value * two.change.value == pytest.approx(1.0)


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 5, 9, 10, 29])
def test_the_two_sided_p_of_the_tables_quantile_is_five_percent(degrees: int) -> None:
    assert student_t_two_sided(student_t_975(degrees), degrees) == pytest.approx(0.05, abs=1e-6)
    assert student_t_two_sided(-student_t_975(degrees), degrees) == pytest.approx(0.05, abs=1e-6)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_never_makes_a_p_smaller_and_keeps_their_order(ps: list[float]) -> None:
    corrected = holm(ps)
    assert all(c is not None and c >= p for c, p in zip(corrected, ps, strict=True))
    assert [p for _, p in sorted(zip(ps, corrected, strict=True))] == sorted(c for c in corrected if c is not None)


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
