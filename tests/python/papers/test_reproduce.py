"""The machinery: what is kept, what is run again, what is printed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import polars as pl
import pytest
from fanin.errors import FaninError
from fanin.papers import CatalogueError, Claim, Paper, experiments, gallery, load, reproduce
from fanin.papers.catalogue import DEFAULT, Answer, Axis, Reading
from fanin.papers.command import _on_linux
from fanin.papers.experiments import Batch, batches, kept_results, run_all
from fanin.papers.gallery import Section
from fanin.papers.linux import PUBLISHED, OnLinux
from fanin.papers.linux import reading as on_linux
from fanin.papers.readings import search
from fanin.papers.reproduce import ReproduceResult, Request, Results, _Course, _follow, select
from fanin.papers.verdicts import DIFFERS, EVALUATIONS, REPRODUCED, UNDER, Data, Judged
from fanin.process.progress import silent
from fanin.runs.job import Job
from fanin.runs.tables import Frames
from fanin.testbed import honesty
from fanin.testbed.honesty import DisturbedError

CHEAP = "trim.eq26"
SMALL = "trim.fig7"


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def some_work() -> list[Batch]:
    paper = next(p for p in load() if p.name == "trim")
    return batches(paper, paper.experiments["fig4"], quick=True)[:2]


def test_what_was_simulated_stands_beside_linux_only_at_the_rate_it_was_simulated_at() -> None:
    def judged(ours: str) -> Judged:
        return Judged("dctcp.fig1.queue-n2", "mean queue 19.38", ours, "reproduced", "", 1)

    on_linux = [OnLinux("kernel", "as published", judged("19.26")), OnLinux("kernel", "10Gbps", judged("58.63"))]
    found = ReproduceResult([judged("19.17")], [], {}, {}, "", "", quick=True, on_linux=on_linux)
    claim = next(one for paper in load() for one in paper.claims if one.id == "dctcp.fig1.queue-n2")
    found.papers = [paper for paper in load() if paper.name == "dctcp"]
    section = Section("dctcp.fig1", None, None, [], [(claim, found.claims[0])], [], [])
    page = gallery.page(found, {"dctcp": [section]})
    assert "<dt>kernel</dt><dd>19.26 (reproduced)</dd>" in page
    assert "<dt>kernel</dt><dd>at 10Gbps: 58.63 (reproduced)</dd>" in page
    columns = {column.header: list(column.cells) for column in _on_linux(found).columns}
    assert columns["kernel"] == ["19.26", "58.63"]
    assert columns["simulated"] == ["19.17", ""]


def test_what_was_run_is_found_again_with_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    first, whole = run_all(some_work(), silent)
    assert whole
    monkeypatch.setattr(experiments, "run", lambda *_: pytest.fail("it was run again"))
    again, _ = run_all(some_work(), silent)
    for before, after in zip(first, again, strict=True):
        assert not isinstance(before, FaninError | None)
        assert not isinstance(after, FaninError | None)
        for name, rows in before.items():
            assert rows.equals(after[name]), name


def test_no_simulation_is_run_twice_by_one_command(monkeypatch: pytest.MonkeyPatch) -> None:
    paper = next(p for p in load() if p.name == "gss")
    batch = batches(paper, paper.experiments["fig6"], quick=True)[0]
    few, more, other = (replace(batch, seeds=seeds) for seeds in ((2,), (1, 2, 3), (3, 4)))
    renamed = replace(other, experiment=replace(batch.experiment, axes=_renamed(batch)))
    alone = [run_all([work], silent, fresh=True)[0][0] for work in (few, more, renamed)]
    real, seeds = Job.run, list[int]()

    def counted(job: Job, *rest: Any, **others: Any) -> Frames:
        seeds.append(job.seed)
        return real(job, *rest, **others)

    monkeypatch.setattr(Job, "run", counted)
    made = experiments.Made()
    for work, one in zip((few, more, renamed), alone, strict=True):
        [done], _ = run_all([work], silent, fresh=True, made=made)
        assert not isinstance(done, FaninError | None)
        assert not isinstance(one, FaninError | None)
        assert all(rows.equals(one[name]) and rows.columns == one[name].columns for name, rows in done.items())
        assert list(done) == list(one)
    assert sorted(seeds) == [1, 2, 3, 4]
    without_frames = replace(batch, seeds=(2,), reduce=None)
    run_all([without_frames], silent, fresh=True, made=made)
    assert len(seeds) == 5, "what is kept of it is part of what it is"


def _renamed(batch: Batch) -> tuple[Axis, ...]:
    """The axes of its experiment under other names, as another experiment has them."""
    return tuple(replace(axis, name=f"{axis.name}_too") for axis in batch.experiment.axes)


def test_a_damaged_file_is_run_again() -> None:
    batch = some_work()[0]
    run_all([batch], silent)
    store = kept_results()
    kept = next(store.folder.rglob("flows.arrow"))
    kept.write_bytes(b"")
    assert store.get(batch.key()) is None
    done, _ = run_all([batch], silent)
    assert not isinstance(done[0], FaninError | None)


def test_a_cache_that_cannot_be_used_is_said_and_everything_is_simulated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    told: list[str] = []
    done, whole = run_all(some_work(), silent, note=told.append)
    assert whole
    assert not any(isinstance(one, FaninError | None) for one in done)
    (sentence,) = told
    assert sentence.startswith("results are not kept, and the next time is not faster: ")
    assert str(tmp_path / "file") in sentence
    assert reproduce(CHEAP, quick=True).notes == told


def test_another_seed_setting_algorithm_or_scenario_is_another_result(tmp_path: Path) -> None:
    paper = next(p for p in load() if p.name == "trim")
    every = batches(paper, paper.experiments["fig4"], quick=False)
    assert len({b.key() for b in every}) == len(every)
    batch = every[0]
    text = batch.experiment.scenario.read_text()
    moved = tmp_path / "fig4.toml"
    other = Batch(_at(batch, moved), batch.points, batch.seeds, batch.reduce)
    moved.write_text("# a comment\n" + text)
    assert other.key() == batch.key()
    moved.write_text(text.replace("100p", "101p"))
    assert other.key() != batch.key()


def _at(batch: Batch, scenario: Path) -> experiments.Experiment:
    from dataclasses import replace

    return replace(batch.experiment, scenario=scenario)


def test_an_interrupted_command_goes_on_where_it_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    work = some_work()
    real = experiments.run

    def second_is_interrupted(batch: Batch, watch: object) -> object:
        if batch.points == work[1].points:
            raise FaninError("stopped")
        return real(batch, watch)  # type: ignore[arg-type]

    monkeypatch.setattr(experiments, "run", second_is_interrupted)
    done, _ = run_all(work, silent)
    assert isinstance(done[1], FaninError)
    monkeypatch.setattr(
        experiments,
        "run",
        lambda batch, watch: real(batch, watch) if batch.points == work[1].points else pytest.fail("again"),
    )
    done, _ = run_all(work, silent)
    assert not any(isinstance(one, FaninError | None) for one in done)


def test_a_run_that_the_machine_disturbed_is_tried_again_and_in_the_end_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = Job.run
    disturbed = [DisturbedError("late")] * (honesty.ATTEMPTS - 1)

    def at_times(job: Job, *rest: Any, **others: Any) -> Frames:
        if disturbed:
            raise disturbed.pop()
        return real(job, *rest, **others)

    monkeypatch.setattr(Job, "run", at_times)
    [first], _ = run_all(some_work()[:1], silent)
    assert not isinstance(first, FaninError | None)
    disturbed.extend([DisturbedError("late")] * honesty.ATTEMPTS)
    [second], _ = run_all(some_work()[1:], silent)
    assert isinstance(second, DisturbedError)


def test_results_are_objects_of_the_promised_form() -> None:
    told = reproduce([CHEAP, SMALL], quick=True).to_dict()
    schema = Path(__file__).parents[3] / "docs/json/reproduce.schema.json"
    jsonschema.validate(told, json.loads(schema.read_text()))
    assert [c["id"] for c in told["claims"]] == ["trim.eq26.k-guideline", "trim.fig7.queue"]
    assert told["claims"][1]["seeds"] > 1
    json.dumps(told, allow_nan=False)
    told["claims"].append(Judged("trim.fig8.queue-traces", "", "", REPRODUCED, "", 5, most=10).to_dict())
    assert told["claims"][2]["most_seeds"] == 10
    jsonschema.validate(told, json.loads(schema.read_text()))


def test_what_does_not_exist_is_refused_with_what_does() -> None:
    with pytest.raises(CatalogueError, match=r"`trim\.fig99` is no paper, figure or claim: .* the figures trim\.eq26"):
        reproduce("trim.fig99")
    with pytest.raises(CatalogueError, match="the papers are trim"):
        reproduce("dream")


def test_the_gallery_stands_alone_and_shows_published_beside_ours(tmp_path: Path) -> None:
    result = reproduce([CHEAP, SMALL], quick=True)
    result.write_files(tmp_path, ["svg"])
    page = (tmp_path / "gallery.html").read_text()
    assert "<svg" in page
    assert "http://" not in page.replace("http://www.w3.org/", "")
    assert "<script" not in page
    for one in result.claims:
        assert one.id in page
        assert f">{one.verdict}<" in page
    assert "fanin run" in page
    assert (tmp_path / "trim.fig7.svg").read_text().startswith("<svg")
    assert json.loads((tmp_path / "claims.json").read_text()) == result.to_dict()


def test_a_claim_that_holds_under_a_reading_of_the_paper_says_so_with_its_switches() -> None:
    result = reproduce("gss.fig7", quick=True)
    (judged,) = result.claims
    assert judged.verdict == "reproduced under a reading"
    assert judged.reading == "initial window: 40"
    assert judged.switches == ("stack.initial_window = 40",)
    assert judged.reason.startswith("under the default reading it is not so that dctcp's timeouts begin")
    assert result.to_dict()["claims"][0]["reading"]["says"].startswith("section 3.3")
    assert result.complete


def test_the_figures_are_those_of_the_default_reading() -> None:
    result = reproduce("gss.fig4", quick=True)
    flows = result.data["gss"]["fig4"]["outcome"].filter(pl.col("variant") == "as stated", pl.col("cc") == "dctcp")
    assert flows["max_cwnd"].max() < 10


def test_a_reading_that_breaks_another_claim_names_it() -> None:
    one, other = reproduce(["gss.fig2-3", "gss.fig7"], quick=True).claims
    # A closed form needs no reading, and none breaks it.
    assert (one.verdict, other.reading, other.breaks) == (REPRODUCED, "initial window: 40", ())
    one, other = reproduce(["gss.fig4", "gss.fig7"], quick=True).claims
    assert (one.reading, one.breaks) == ("initial window: 10 + host timing: no jitter", ("gss.fig7.web-search",))
    assert (other.reading, other.breaks) == ("initial window: 40", ("gss.fig4.one-round",))


def test_the_search_tries_every_answer_and_tells_what_each_changes() -> None:
    found = search(["gss.fig4"])
    names = [one.reading.name for one in found.tried]
    gss = next(p for p in load() if p.name == "gss")
    named = [reading.name for claim in gss.claims for reading in claim.readings]
    assert names == list(dict.fromkeys(["", *(a.label for a in gss.answers), *named]))
    all_of = "initial window: 10 + rounds of Fig. 5: new connections + host timing: no jitter"
    together = next(one for one in found.tried if one.reading.name == all_of)
    assert (together.gained, together.lost) == (("gss.fig4.one-round",), ())
    table = found.markdown("gss")
    assert "By default every check holds of: none. Not of: fig4.one-round." in table
    assert "These change no verdict: initial window: 8; initial window: 10;" in table
    assert f"| {all_of} | fig4.one-round |  |" in table


def test_readings_are_tried_until_one_holds_with_as_many_seeds_as_each_asks_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[tuple[str, int]] = []

    def judged(paper: Paper, claim: Claim, found: Results, requests: Sequence[Request]) -> Judged:
        ((reading, quick),) = {(one.reading, one.quick) for one in requests}
        assert quick
        tried.append((reading.name, reading.times))
        verdict = REPRODUCED if reading.name == "q: second" else DIFFERS
        return Judged(claim.id, "", "", verdict, "", 1)

    first, second, third = (
        Reading((Answer("q", name, "", {}, {}),), times=n) for n, name in enumerate(("first", "second", "third"), 1)
    )
    paper, claim = select(["gss.fig4"], None)[1][0]
    monkeypatch.setitem(_follow.__globals__, "judge_from", judged)
    monkeypatch.setattr(Results, "run", lambda *_: None)
    course = _Course(paper, claim, (DEFAULT, first, second, third), True, None)
    _follow([course], Results(silent, False))
    assert tried == [("", 1), ("q: first", 1), ("q: second", 2)]
    verdicts = [("", DIFFERS), ("q: first", DIFFERS), ("q: second", REPRODUCED)]
    assert [(reading.name, one.verdict) for reading, one, _ in course.tried.values()] == verdicts
    got = course.verdict()
    assert (got.verdict, got.reading) == (UNDER, "q: second")


def test_a_reading_of_a_paper_may_need_more_seeds_than_the_default_one() -> None:
    trim = next(paper for paper in load() if paper.name == "trim")
    (reading,) = next(claim for claim in trim.claims if claim.id == "trim.fig14a.arct").readings
    experiment = trim.experiments["fig14a"]
    runs = [
        sum(len(one.seeds) for one in batches(trim, experiment, quick=False, reading=r)) for r in (DEFAULT, reading)
    ]
    assert runs[1] == 8 * runs[0]


def test_an_experiment_may_have_no_more_seeds_whatever_a_reading_asks_for() -> None:
    tcprand = next(paper for paper in load() if paper.name == "tcprand")
    twice = Reading(times=2)
    # Means over 270 s: the interval of a claim needs 40 seeds of the windows, and none more of these.
    assert [tcprand.experiments[name].seeds_under(twice) for name in ("convergence", "windows")] == [2, 40]


def test_an_interruption_loses_one_run_of_a_kernel() -> None:
    paper = next(one for one in load() if one.name == "dctcp")
    there = batches(paper, paper.experiments["queue"], quick=False, reading=on_linux("dctcp", PUBLISHED, "kernel"))
    assert {len(batch.seeds) for batch in there} == {1}
    assert {len(batch.seeds) for batch in batches(paper, paper.experiments["queue"], quick=False)} == {3}


def test_points_of_tcprand_that_no_kernel_runs_bear_on_no_check() -> None:
    ((paper, fig12),) = select(["tcprand.fig12"], None)[1]
    there = batches(paper, paper.experiments["testbed"], quick=False, reading=on_linux("tcprand", PUBLISHED, "kernel"))
    run = {tuple(point.label for point in one.points) for one in there}
    every = {tuple(p.label for p in one.points) for one in batches(paper, paper.experiments["testbed"], quick=False)}
    assert run < every
    columns = ["flows", "cc"]
    rows = pl.DataFrame(sorted(every), schema=columns, orient="row")
    rows = rows.with_columns(seed=pl.lit(1), jain=pl.lit(0.9), mbps=pl.lit(900.0))
    kept = pl.DataFrame(sorted(run), schema=columns, orient="row")
    # What is not run on a kernel would fail every check, were it asked.
    left = rows.join(kept, on=columns, how="anti").with_columns(jain=pl.lit(0.1), mbps=pl.lit(1.0))
    judge = EVALUATIONS[fig12.id].judge
    some = rows.join(kept, on=columns)
    assert judge(Data({"testbed": {"runs": some}})).failed
    assert (
        judge(Data({"testbed": {"runs": some}})).failed
        == judge(Data({"testbed": {"runs": pl.concat([some, left])}})).failed
    )
