"""Claims must know the algorithm: mutants change what runs, and each is noticed by a claim of its paper."""

from __future__ import annotations

import shutil
from pathlib import Path

from fanin.papers import load, papers_folder
from fanin.papers.catalogue import Answer, Paper, Reading
from fanin.papers.experiments import batches
from fanin.papers.mutants import FAILED, FILE, KILLED, SURVIVES, Hunted, concerns, hunt, read, survivors, write
from fanin.papers.reproduce import select
from fanin.papers.verdicts import REPRODUCED, UNDER

from ..conftest import script

PAPERS = {paper.name: paper for paper in load()}


def runs(paper: Paper, experiment: str, change: Answer) -> list[tuple[str | None, dict[str, str]]]:
    """Algorithm and settings of the first seed's simulations."""
    every = batches(paper, paper.experiments[experiment], quick=True, reading=Reading((change,)), seeds=1)
    return [(one.jobs()[0].cc, one.settings()) for one in every]


def test_gss_without_its_growth_is_the_plain_sender_from_a_window_of_two() -> None:
    mutant = PAPERS["gss"].mutants[0]
    made = runs(PAPERS["gss"], "fig4", mutant.change)
    plain = [settings for cc, settings in made if cc == "newreno"]
    # As stated, without jitter and from 10, each by itself and in the place of gss+newreno, which has 2 whatever the variant sets.
    windows = [settings.get("stack.initial_window") for settings in plain]
    assert sorted(map(str, windows)) == ["10", "2", "2", "2", "None", "None"]
    assert not [cc for cc, _ in made if cc and "gss" in cc]


def test_tcprand_without_random_sizes_has_none_of_their_settings() -> None:
    mutant = PAPERS["tcprand"].mutants[0]
    made = runs(PAPERS["tcprand"], "outcast", mutant.change)
    assert {cc for cc, _ in made} == {"newreno", "cubic", "dctcp"}
    assert not [key for _, settings in made for key in settings if key.startswith("cc.rand_")]


def test_dctcp_with_alpha_fixed_at_1_is_a_sender_that_halves_on_exact_echoes() -> None:
    mutant = next(one for one in PAPERS["dctcp"].mutants if one.name == "alpha fixed at 1")
    made = runs(PAPERS["dctcp"], "queue", mutant.change)
    assert {(cc, settings.get("stack.ecn")) for cc, settings in made} == {("reno", "dctcp"), ("reno", None)}


def test_a_mutant_has_the_last_word_over_an_experiments_points() -> None:
    change = Answer("trim", "fixed", "", {}, {"trim": {"cc.trim_k_fixed": "1s"}}, final=True)
    assert {settings["cc.trim_k_fixed"] for _, settings in runs(PAPERS["trim"], "fig6_1g", change)} == {"1s"}
    early = Answer("trim", "fixed", "", {}, {"trim": {"cc.trim_k_fixed": "1s"}})
    assert "1s" not in {settings["cc.trim_k_fixed"] for _, settings in runs(PAPERS["trim"], "fig6_1g", early)}


def test_a_mutant_concerns_claims_in_whose_experiments_its_algorithm_runs() -> None:
    # Which experiments a claim needs is known once the paper's judgement is loaded.
    wanted = select(["trim"], None)[1]
    mutant = wanted[0][0].mutants[0]
    about = [claim.id for paper, claim in wanted if concerns(mutant, paper, claim)]
    assert "trim.fig7.queue" in about
    assert "trim.fig2.train-size" not in about


def test_a_reading_leaves_out_what_the_algorithm_it_is_about_no_longer_knows() -> None:
    tcprand = PAPERS["tcprand"]
    red = next(answer for answer in tcprand.answers if answer.question == "DCTCP's marking")
    marks = {
        cc: {("topology.mark" in settings, "topology.queue" in settings) for name, settings in made if name == cc}
        for made in [runs(tcprand, "outcast", red)]
        for cc in ("cubic", "dctcp")
    }
    assert marks == {"cubic": {(True, False)}, "dctcp": {(False, True)}}


def test_a_closed_form_is_judged_with_another_form_and_is_noticed() -> None:
    tested, whole = hunt(["gss.fig2-3"])
    assert whole
    assert [(one.mutant, one.claim, one.result) for one in tested] == [
        ("model of gss: windows always double", "gss.fig2-3.model", KILLED)
    ]


def test_a_mutant_whose_simulation_fails_is_said_to_and_not_noticed(tmp_path: Path) -> None:
    folder = tmp_path / "papers"
    shutil.copytree(papers_folder(), folder)
    file = folder / "trim" / "paper.toml"
    made = '[[mutant]]\nalgorithm = "trim"\nname = "made up"\nrule = ""\nclaims = ["trim.fig7.queue"]\n'
    file.write_text(file.read_text().partition("[[mutant]]")[0] + made + 'set = { "stack.no_such_key" = 1 }\n')
    tested, whole = hunt(["trim.fig7"], folder=folder)
    assert whole
    assert [(one.mutant, one.result) for one in tested] == [("trim: made up", FAILED)]
    assert "no_such_key" in tested[0].why
    trim = next(paper for paper in load(folder) if paper.name == "trim")
    assert survivors(tested, [trim]) == ["trim: made up"]


def test_every_mutant_was_noticed_by_a_claim_of_its_paper() -> None:
    assert not survivors(read(papers_folder() / FILE), load())


def test_a_claim_that_holds_fails_for_a_mutant_or_says_why_none_can_fail_it() -> None:
    killed = {one.claim for one in read(papers_folder() / FILE) if one.result == KILLED}
    holds = {name for name, row in script("tools/verdicts.py").read().items() if row.verdict in (REPRODUCED, UNDER)}
    for paper in PAPERS.values():
        for claim in paper.claims:
            assert claim.id not in holds or (claim.id in killed) != bool(claim.no_mutant), claim.id


def test_the_table_keeps_what_was_not_tested_now_and_forgets_mutants_that_are_gone(tmp_path: Path) -> None:
    gss, dctcp = PAPERS["gss"], PAPERS["dctcp"]
    one = Hunted("gss", gss.mutants[0].label, "gss.fig4.one-round", KILLED, "a, b")
    other = Hunted("dctcp", dctcp.mutants[0].label, "dctcp.throughput", SURVIVES, "")
    write([other, Hunted("gss", "gss: no such", "gss.fig4.one-round", KILLED, "")], tmp_path / FILE, load())
    write([one], tmp_path / FILE, load())
    assert read(tmp_path / FILE) == [one, other]
    now = Hunted("dctcp", dctcp.mutants[0].label, "dctcp.throughput", KILLED, "now")
    write([now], tmp_path / FILE, load())
    assert read(tmp_path / FILE) == [one, now]
    assert read(tmp_path / "none.csv") == []
