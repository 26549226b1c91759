"""The search for readings: what bears on a claim, how many seeds decide, and that what holds is a claim's reading from then on."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from fanin.papers import load, papers_folder
from fanin.papers.catalogue import SEARCHED, Answer, Claim, Experiment, Paper, Reading
from fanin.papers.experiments import batches
from fanin.papers.reproduce import Request, Results, select
from fanin.papers.searching import NO, UNDECIDED, YES, Verdict, bearing, decide, readings_to_try, search_deep, write
from fanin.papers.verdicts import EVALUATIONS, Checks, Data, Evaluation, Outcome
from fanin.process.progress import silent

GSS = next(paper for paper in load() if paper.name == "gss")


def answer(question: str, name: str) -> Answer:
    return Answer(question, name, "", {}, {})


def test_answers_that_change_none_of_a_claims_simulations_do_not_bear_on_it() -> None:
    ((_, claim),) = select(["gss.fig7"], None)[1]
    questions = {one.question for one in bearing(GSS, claim)}
    assert "initial window" in questions
    # They are about Fig. 4, 5, 6 and 9, and about Fig. 5.
    assert questions.isdisjoint({"bytes per worker", "rounds of Fig. 5"})


def test_a_reading_answers_a_question_once_and_fewer_answers_come_first() -> None:
    some = [answer("a", "1"), answer("a", "2"), answer("b", "1")]
    names = [reading.name for reading in readings_to_try(some, 3)]
    assert names == ["", "a: 1", "a: 2", "b: 1", "a: 1 + b: 1", "a: 2 + b: 1"]


@pytest.mark.parametrize(
    ("holds", "verdict", "times"),
    [
        (lambda seeds: False, NO, 0.25),
        # Fewer seeds than the experiment's four do not let a claim hold.
        (lambda seeds: True, YES, 1),
        # Seed 1 is an exception, which less than half of eight outweigh.
        (lambda seeds: len(seeds) >= 4 or 1 not in seeds, YES, 2),
        (lambda seeds: 1 not in seeds, UNDECIDED, 4),
    ],
)
def test_seeds_are_added_until_the_halves_agree(
    monkeypatch: pytest.MonkeyPatch, holds: Callable[[list[int]], bool], verdict: str, times: float
) -> None:
    experiment = Experiment("e", Path("e.toml"), (), 4, 1, ("runs",), None, 0.0)
    claim = Claim("made.up", "shape", "", "", "", "", "")
    paper = Paper("made", "", "", "", Path(), (claim,), {"e": experiment})

    def judge(data: Data) -> Outcome:
        return Outcome("", holds(data.seeds()))

    def run(self: Results, requests: list[Request]) -> None:
        self.frames |= {one: {"runs": pl.DataFrame({"seed": range(1, (one.seeds or 0) + 1)})} for one in requests}

    monkeypatch.setitem(EVALUATIONS, claim.id, Evaluation(judge, ("e",)))
    monkeypatch.setattr(Results, "run", run)
    found = decide(paper, claim, Reading(), Results(silent, False))
    assert found is not None
    assert (found.verdict, found.times) == (verdict, times)


def test_the_cheapest_points_decide_where_those_of_quick_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = Experiment("e", Path("e.toml"), (), 4, 1, ("runs",), None, 0.0)
    claim = Claim("made.up", "shape", "", "", "", "", "")
    paper = Paper("made", "", "", "", Path(), (claim,), {"e": experiment})

    def judge(data: Data) -> Outcome:
        checks = Checks()
        checks.that("cheap" not in data["e"]["runs"]["point"], "every point is well", each=True)
        return checks.outcome("")

    def run(self: Results, requests: list[Request]) -> None:
        for one in requests:
            rows = {"seed": range(1, (one.seeds or 0) + 1), "point": "cheap" if one.cheapest else "well"}
            self.frames[one] = {"runs": pl.DataFrame(rows)}

    monkeypatch.setitem(EVALUATIONS, claim.id, Evaluation(judge, ("e",)))
    monkeypatch.setattr(Results, "run", run)
    found = decide(paper, claim, Reading(), Results(silent, False))
    assert found is not None
    assert (found.verdict, found.why) == (NO, "on the cheapest points: every point is well")


@pytest.mark.parametrize(("each", "verdict"), [(True, NO), (False, YES)])
def test_only_a_check_of_every_point_decides_on_the_points_of_quick(
    monkeypatch: pytest.MonkeyPatch, each: bool, verdict: str
) -> None:
    experiment = Experiment("e", Path("e.toml"), (), 4, 1, ("runs",), None, 0.0)
    claim = Claim("made.up", "shape", "", "", "", "", "")
    paper = Paper("made", "", "", "", Path(), (claim,), {"e": experiment})
    asked: list[Request] = []

    def judge(data: Data) -> Outcome:
        checks = Checks()
        # Two points are run in full, one with --quick.
        points = data["e"]["runs"]["point"].n_unique()
        checks.that(points == 2, f"all points are well ({points} of 2)", each=each)
        return checks.outcome("")

    def run(self: Results, requests: list[Request]) -> None:
        asked.extend(requests)
        for one in requests:
            points = [1] if one.quick or one.cheapest else [1, 2]
            rows = [(seed, point) for seed in range(1, (one.seeds or 0) + 1) for point in points]
            self.frames[one] = {"runs": pl.DataFrame(rows, schema=["seed", "point"], orient="row")}

    monkeypatch.setitem(EVALUATIONS, claim.id, Evaluation(judge, ("e",)))
    monkeypatch.setattr(Results, "run", run)
    found = decide(paper, claim, Reading(), Results(silent, False))
    assert found is not None
    assert found.verdict == verdict
    assert any(not one.quick and not one.cheapest for one in asked) != each
    # The judgement of a claim without such a check may ask for points that are not among the cheapest: they are not run.
    assert not any(one.cheapest for one in asked)
    assert (found.why == "on the points of --quick: all points are well") == each


def test_the_cheapest_points_of_trims_fig_11_are_those_of_1000_connections_with_every_algorithm() -> None:
    trim = next(paper for paper in load() if paper.name == "trim")
    some = batches(trim, trim.experiments["fig11_normal"], quick=False, cheapest=True)
    assert {one.points[0].label for one in some} == {1000}
    assert {one.points[1].label for one in some} == {"128KiB", "512KiB", "1MiB", "2MiB", "4MiB"}
    assert {one.cc for one in some} == {"reno", "dctcp", "l2dct", "trim"}


def test_what_holds_is_a_reading_of_the_claim_from_then_on(tmp_path: Path) -> None:
    folder = tmp_path / "papers"
    shutil.copytree(papers_folder(), folder, ignore=shutil.ignore_patterns(SEARCHED))

    def readings() -> list[tuple[str, int]]:
        gss = next(paper for paper in load(folder) if paper.name == "gss")
        claim = next(one for one in gss.claims if one.id == "gss.fig8.mapreduce")
        return [(reading.name, reading.times) for reading in claim.readings]

    before = readings()
    label = "growth of GSS: spread + initial window: 20"
    write(
        [Verdict("gss.fig8.mapreduce", label, YES, 2, ""), Verdict("gss.fig8.mapreduce", "", NO, 0.25, "why")], folder
    )
    assert readings() == [*before, (label, 2)]
    write([Verdict("gss.fig8.mapreduce", label, NO, 1, "why")], folder)
    assert readings() == before


def test_a_reading_that_was_judged_is_not_judged_again_unless_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "papers"
    shutil.copytree(papers_folder(), folder, ignore=shutil.ignore_patterns(SEARCHED))
    judged: list[str] = []

    def decided(paper: Paper, claim: Claim, reading: Reading, found: Results) -> Verdict:
        judged.append(reading.name)
        return Verdict(claim.id, reading.name, YES if len(judged) == 3 else NO, 1, "")

    monkeypatch.setattr("fanin.papers.searching.decide", decided)
    first, _ = search_deep(["gss.fig8"], folder=folder)
    assert len(judged) == len(first) == 3
    write(first[:2], folder)
    again, _ = search_deep(["gss.fig8"], folder=folder)
    assert not {one.reading for one in again} & {one.reading for one in first[:2]}
    judged.clear()
    assert search_deep(["gss.fig8"], folder=folder, fresh=True)[0] == first
    write(first, folder)
    assert search_deep(["gss.fig8"], folder=folder) == ([], True)
