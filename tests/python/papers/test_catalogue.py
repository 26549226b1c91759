"""What `papers/` says is whole: every claim has a judgement, every experiment a scenario that can be planned."""

from __future__ import annotations

import doctest
import re
import sys
import tomllib
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
from fanin import _native
from fanin.papers import CatalogueError, Experiment, Paper, load, papers_folder
from fanin.papers.catalogue import Answer, Reading
from fanin.papers.experiments import batches
from fanin.papers.judgement import judgement_of
from fanin.papers.verdicts import EVALUATIONS, PICTURES

PAPERS = load()
FORTY_NINE = 49


def with_module(papers: list[Paper]) -> Iterator[Paper]:
    for paper in papers:
        if judgement_of(paper):
            yield paper


EXPERIMENTS = [(p, e) for p in with_module(PAPERS) for e in p.experiments.values()]


def test_there_are_forty_nine_claims_each_with_an_id_of_its_own() -> None:
    ids = [claim.id for paper in PAPERS for claim in paper.claims]
    assert len(ids) == len(set(ids)) == FORTY_NINE


def test_the_tables_beside_the_papers_say_by_which_command_when_and_at_which_commit_they_were_made() -> None:
    data = tomllib.loads((papers_folder() / "index.toml").read_text(encoding="utf-8"))["data"]
    assert {file.stem for file in papers_folder().glob("*.csv")} <= set(data)
    for about in data.values():
        assert isinstance(about["recorded"], date)
        assert re.fullmatch("[0-9a-f]{7}", about["commit"])
        assert about["about"]
        assert about["command"]


def test_every_claim_is_judged_unless_it_is_about_a_real_kernel_alone() -> None:
    for paper in with_module(PAPERS):
        for claim in paper.claims:
            purely_real = claim.setup.startswith("real kernel") and "simulated" not in claim.setup
            assert (claim.id in EVALUATIONS) != purely_real, claim.id


def test_the_examples_in_judgements_are_true() -> None:
    names = [f"fanin_judgement_{paper.name}" for paper in with_module(PAPERS)]
    modules = [module for name, module in sys.modules.items() if name.startswith(tuple(names))]
    results = [doctest.testmod(module) for module in modules]
    assert sum(one.attempted for one in results) > 0
    assert sum(one.failed for one in results) == 0


def test_judgements_and_pictures_name_experiments_that_exist() -> None:
    papers = {paper.name: paper for paper in with_module(PAPERS)}
    for name, needs in [*((n, e.needs) for n, e in EVALUATIONS.items()), *((n, p.needs) for n, p in PICTURES.items())]:
        paper = papers[name.split(".")[0]]
        assert not set(needs) - set(paper.experiments), name


@pytest.mark.parametrize(("paper", "experiment"), EXPERIMENTS, ids=[f"{p.name}.{e.name}" for p, e in EXPERIMENTS])
def test_the_corners_of_every_experiment_can_be_planned(paper: Paper, experiment: Experiment) -> None:
    every = batches(paper, experiment, quick=False)
    scenario = _native.Scenario.from_file(experiment.scenario)
    for batch in (every[0], every[-1]):
        scenario.changed(batch.cc, None, list(batch.settings().items())).plan(1)


ANSWERS = [(p, a) for p in with_module(PAPERS) for a in p.answers]


@pytest.mark.parametrize(("paper", "answer"), ANSWERS, ids=[f"{p.name}: {a.label}" for p, a in ANSWERS])
def test_every_answer_to_an_open_question_changes_some_scenario_and_can_be_planned(
    paper: Paper, answer: Answer
) -> None:
    assert answer.says
    changed = 0
    for experiment in paper.experiments.values():
        plain = batches(paper, experiment, quick=True)
        for before, after in zip(
            plain, batches(paper, experiment, quick=True, reading=Reading((answer,))), strict=True
        ):
            if before.settings() != after.settings() and changed < 3:
                changed += 1
                scenario = _native.Scenario.from_file(experiment.scenario)
                scenario.changed(after.cc, None, list(after.settings().items())).plan(1)
    assert changed


def test_a_point_has_the_last_word_over_a_reading() -> None:
    gss = next(paper for paper in PAPERS if paper.name == "gss")
    ten = next(a for a in gss.answers if a.label == "initial window: 40")
    windows = {
        (batch.points[0].label, batch.settings().get("stack.initial_window"))
        for batch in batches(gss, gss.experiments["fig4"], quick=True, reading=Reading((ten,)))
    }
    assert windows == {("as stated", "40"), ("without jitter", "40"), ("initial window 10", "10")}


def test_a_part_of_a_name_limits_what_an_answer_sets() -> None:
    upper = Reading((Answer("K", "upper", "eq. 26", {"a": 1}, {"trim": {"b": 2}}, ("one",)),))
    assert upper.settings("one", "tcprand+trim") == {"a": 1, "b": 2}
    assert upper.settings("one", "reno") == {"a": 1}
    assert upper.settings("two", "trim") == {}
    assert upper.switches == ("a = 1", "trim: b = 2")


def test_the_quick_points_are_some_of_all_points() -> None:
    for paper, experiment in EXPERIMENTS:
        every, quick = (
            {(tuple(p.label for p in b.points), s) for b in batches(paper, experiment, quick=q) for s in b.seeds}
            for q in (False, True)
        )
        assert quick <= every
        assert quick


def test_a_judgement_that_python_cannot_load_is_named_with_its_file(tmp_path: Path) -> None:
    paper = Paper("odd", "t", "s", "p", tmp_path, ())
    assert judgement_of(paper) is None
    (tmp_path / "judgement.py").write_text("import nothing_of_that_name\n")
    with pytest.raises(CatalogueError, match=r"judgement\.py: it cannot be loaded \(ModuleNotFoundError: No module"):
        judgement_of(paper)
    (tmp_path / "judgement.py").write_text("NUMBER = 3\n")
    loaded = judgement_of(paper)
    assert loaded is not None
    assert loaded.NUMBER == 3
    assert judgement_of(paper) is loaded


def test_papers_of_another_folder_are_not_executed_unasked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers/index.toml").write_text("[papers]\n")
    monkeypatch.chdir(tmp_path)
    assert papers_folder() == Path(__file__).parents[3] / "papers"
    assert load(Path("papers")) == []


def test_a_broken_paper_is_named_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "index.toml").write_text('[papers]\nodd = "odd"\n')
    (tmp_path / "odd").mkdir()
    file = tmp_path / "odd/paper.toml"
    file.write_text('title = "t"\nsource = "s"\nproposes = "p"\n[[claim]]\nid = "other.fig1"\nkind = "value"\n')
    with pytest.raises(CatalogueError, match=r"odd/paper\.toml: claim `other\.fig1`: its id must begin with `odd\.`"):
        load(tmp_path)
    file.write_text(
        'title = "t"\nsource = "s"\nproposes = "p"\n[[claim]]\nid = "odd.fig1"\nkind = "shape"\nsetup = "s"\nholds_when = "h"\n'
        'under = ["window: 3"]\n'
    )
    with pytest.raises(CatalogueError, match=r"claim `odd\.fig1`: no question has the answer `window: 3`"):
        load(tmp_path)
    file.write_text('title = "t"\n')
    with pytest.raises(CatalogueError, match=r"odd/paper\.toml: the key 'source' is missing"):
        load(tmp_path)
    file.write_text("title = \n")
    with pytest.raises(CatalogueError, match=r"odd/paper\.toml: it is not TOML"):
        load(tmp_path)
