"""How many of its seeds a verdict needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl
import pytest
from fanin.papers import verdicts
from fanin.papers.catalogue import DEFAULT, Answer, Reading
from fanin.papers.experiments import batches
from fanin.papers.reproduce import Request, Results, _Course, _follow, select
from fanin.papers.settling import first_part, glance, settled
from fanin.papers.verdicts import DIFFERS, REPRODUCED, UNDER, Checks, Data, Judged, LacksError, Outcome, judge
from fanin.process.progress import silent
from hypothesis import given
from hypothesis import strategies as st

CLAIM = "trim.fig8.queue-traces"
"""Its experiment has ten seeds; what is judged here is whether the mean of one number per seed is above 1."""


NOTHING = -1
"""Where every seed has this, there is nothing to judge."""


def frame(values: Sequence[float]) -> pl.DataFrame:
    return pl.DataFrame({"seed": range(1, len(values) + 1), "x": [float(x) for x in values]})


def mean_above_one(data: Data) -> Outcome:
    checks = Checks()
    if any(frames["runs"]["x"].max() == NOTHING for frames in data.frames.values()):
        raise LacksError("nothing arrived")
    means = [float(frames["runs"]["x"].mean() or 0) for frames in data.frames.values()]  # type: ignore[arg-type]
    checks.that(min(means) > 1, "the mean is above 1")
    return checks.outcome(f"{means}")


@pytest.fixture(autouse=True, scope="module")
def _judgement() -> None:
    select([CLAIM], None)


def followed(values: dict[str, Sequence[float]]) -> tuple[Judged, list[tuple[str, bool]]]:
    """The verdict on experiments of which each seed gives one number, and what was run for it: experiment and whether only the first part."""
    course, ran = under({"": values})
    return course.verdict(), [(name, upto > 0) for _, name, upto in ran]


def under(readings: dict[str, dict[str, Sequence[float]]]) -> tuple[_Course, list[tuple[str, str, int]]]:
    """The same under readings: how the claim came to its verdict, and what was run: reading, experiment and how many of its seeds, 0 for all."""
    ran: list[tuple[str, str, int]] = []
    known = {name: Reading((Answer("q", name, "", {}, {}),) if name else ()) for name in readings}
    all_of = next(iter(readings.values()))

    def run(found: Results, requests: Sequence[Request]) -> None:
        for one in requests:
            if one not in found.frames and one.experiment in all_of:
                reading = one.reading.name.removeprefix("q: ")
                every = readings[reading][one.experiment]
                assert len(every) == one.all_seeds
                ran.append((reading, one.experiment, one.upto))
                found.frames[one] = {"runs": frame(every[: one.upto] if one.upto else every)}

    ((paper, claim),) = select([CLAIM], None)[1]
    course = _Course(paper, claim, tuple(known.values()), False, None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(verdicts.EVALUATIONS, CLAIM, verdicts.Evaluation(mean_above_one, tuple(all_of)))
        patch.setattr(Results, "run", run)
        _follow([course], Results(silent, False))
    return course, ran


def whole(values: dict[str, Sequence[float]]) -> str:
    """The verdict over all seeds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(verdicts.EVALUATIONS, CLAIM, verdicts.Evaluation(mean_above_one, tuple(values)))
        return judge(CLAIM, "", Data({name: {"runs": frame(every)} for name, every in values.items()})).verdict


def test_a_check_that_fails_over_the_first_half_decides_and_the_other_seeds_are_not_run() -> None:
    judged, ran = followed({"fig8": [0, 0, 0, 3, 0, *[9] * 5]})
    assert (judged.verdict, judged.seeds, judged.most) == (DIFFERS, 5, 10)
    assert judged.failed == ("the mean is above 1",)
    assert ran == [("fig8", True)]


def test_what_holds_over_the_first_half_and_over_either_half_of_it_is_settled() -> None:
    judged, ran = followed({"fig8": [*[2] * 5, *[0] * 5]})
    assert (judged.verdict, judged.seeds, judged.most) == (REPRODUCED, 5, 10)
    assert ran == [("fig8", True)]


def test_what_holds_narrowly_is_judged_over_all_seeds() -> None:
    # Either half of the first half has 1.5 on average, and two seeds of five are 0: over some sample the mean is 1 or less.
    judged, ran = followed({"fig8": [0, 3, 3, 1.5, 0, *[9] * 5]})
    assert (judged.verdict, judged.seeds, judged.most) == (REPRODUCED, 10, 0)
    assert ran == [("fig8", True), ("fig8", False)]


def test_what_flips_within_the_first_half_has_the_verdict_of_all_seeds() -> None:
    # A mean of 5.4 over the first five; of their halves, two and three, the first fails.
    judged, ran = followed({"fig8": [0, 0, 9, 9, 9, *[9] * 5]})
    assert (judged.verdict, judged.seeds, judged.most) == (REPRODUCED, 10, 0)
    assert ran == [("fig8", True), ("fig8", False)]


def test_the_first_half_has_two_seeds_or_more_and_four_for_a_claim_that_holds() -> None:
    assert [first_part(n) for n in (1, 2, 3, 4, 7, 8, 9, 40)] == [1, 2, 2, 2, 3, 4, 4, 20]
    # fig9 has four seeds: two settle that it fails, and not that it holds.
    assert followed({"fig9": [0, 0, 9, 9]})[1] == [("fig9", True)]
    judged, ran = followed({"fig9": [9, 9, 9, 9]})
    assert (judged.verdict, ran) == (REPRODUCED, [("fig9", True), ("fig9", False)])
    ((paper, _),) = select([CLAIM], None)[1]
    # With --quick and --seeds, which say themselves how many, all are run.
    assert not Request(paper, "fig8", DEFAULT, True).begun().upto
    assert not Request(paper, "fig8", DEFAULT, False, 40).begun().upto


def test_of_three_seeds_two_are_run_first_and_the_one_that_is_their_lower_half_decides() -> None:
    ((paper, _),) = select([CLAIM], None)[1]
    experiment = replace(paper.experiments["fig8"], seeds=3)
    assert [b.seeds for b in batches(paper, experiment, quick=False, upto=first_part(3))][:1] == [(1, 2)]
    three = {"fig8": 3}
    fails, flips = (Data({"fig8": {"runs": frame(values)}}) for values in ([0, 1], [9, -9]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(verdicts.EVALUATIONS, CLAIM, verdicts.Evaluation(mean_above_one, ("fig8",)))
        assert settled(judge(CLAIM, "", fails), fails, three, three)
        assert not settled(judge(CLAIM, "", flips), flips, three, three)


def test_of_a_short_experiment_beside_a_long_one_the_half_that_the_whole_verdict_has_is_asked() -> None:
    # Of ten seeds the first five hold, of four the first two do not: nor would all of both over their lower half.
    judged, ran = followed({"fig8": [2] * 10, "fig9": [0, 0, 9, 9]})
    assert (judged.verdict, whole({"fig8": [2] * 10, "fig9": [0, 0, 9, 9]})) == (DIFFERS, DIFFERS)
    assert ran == [("fig8", True), ("fig9", True)]


def test_a_short_experiment_is_run_with_all_seeds_before_a_claim_is_reproduced_and_a_long_one_is_not() -> None:
    judged, ran = followed({"fig8": [*[2] * 5, *[0] * 5], "fig9": [9, 9, 9, 9]})
    assert (judged.verdict, judged.most) == (REPRODUCED, 10)
    assert ran == [("fig8", True), ("fig9", True), ("fig9", False)]


def test_a_reading_that_others_follow_is_left_when_one_check_fails_over_a_quarter_and_over_either_half_of_it() -> None:
    fails, holds = [0] * 10, [2] * 10
    course, ran = under({"": {"fig8": fails}, "other": {"fig8": holds}})
    assert ran == [("", "fig8", 2), ("other", "fig8", 5)]
    judged = course.verdict()
    assert (judged.verdict, judged.reading, judged.seeds, judged.most) == (UNDER, "q: other", 5, 10)
    # A half of the quarter holds, so the first half of the seeds is asked.
    course, ran = under({"": {"fig8": [1.5, *[0] * 9]}, "other": {"fig8": holds}})
    assert ran == [("", "fig8", 2), ("", "fig8", 5), ("other", "fig8", 5)]


def test_what_few_seeds_lack_is_judged_over_more() -> None:
    course, ran = under({"": {"fig8": [NOTHING, NOTHING, *[9] * 8]}, "other": {"fig8": [2] * 10}})
    assert ran == [("", "fig8", 2), ("", "fig8", 5), ("", "fig8", 0)]
    assert (course.verdict().verdict, course.verdict().reading) == (REPRODUCED, "")


def test_where_no_reading_holds_the_verdict_is_that_of_the_first_one_as_if_there_was_no_other() -> None:
    fails = [0] * 10
    course, ran = under({"": {"fig8": fails}, "other": {"fig8": fails}})
    assert ran == [("", "fig8", 2), ("other", "fig8", 5), ("", "fig8", 5)]
    assert (course.verdict().verdict, course.verdict().seeds) == (DIFFERS, 5)
    # What a quarter spoke against may hold over all: it is reproduced as read by default then.
    course, ran = under({"": {"fig8": [0, 0, 9, 9, 9, *[9] * 5]}, "other": {"fig8": fails}})
    assert (course.verdict().verdict, course.verdict().reading, course.verdict().seeds) == (REPRODUCED, "", 10)


NUMBERS = st.sampled_from([0.0, 0.5, 0.9, 1.1, 2.0, 9.0])


@given(st.lists(NUMBERS, min_size=10, max_size=10), st.lists(NUMBERS, min_size=4, max_size=4))
def test_what_differs_over_the_first_half_differs_over_all_seeds_and_no_claim_passes_that_fails_over_its_lower_half(
    long: list[float], short: list[float]
) -> None:
    values = {"fig8": long, "fig9": short}
    judged, _ = followed(values)
    if judged.verdict == DIFFERS:
        assert whole(values) == DIFFERS
    if sum(long[:5]) / 5 <= 1 or sum(short[:2]) / 2 <= 1:
        assert judged.verdict == DIFFERS
    if not judged.most:
        assert judged.verdict == whole(values)


def test_the_seeds_that_are_run_first_are_found_when_all_are_asked_for() -> None:
    ((paper, _),) = select([CLAIM], None)[1]
    for name, experiment in paper.experiments.items():
        every = batches(paper, experiment, quick=False)
        for upto in (glance(experiment.seeds), first_part(experiment.seeds)):
            some = batches(paper, experiment, quick=False, upto=upto)
            assert {batch.key() for batch in some} <= {batch.key() for batch in every}, name
            assert {seed for one in some for seed in one.seeds} == set(range(1, upto + 1))
