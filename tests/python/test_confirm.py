"""A comparison that another engine confirms or refutes. What needs a built kernel is skipped where there is none (`fanin kernel build`)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import fanin
import polars as pl
import pytest
from fanin import report
from fanin.advice import advise
from fanin.comparison import course
from fanin.comparison.confirm import Confirmed, chosen_again, confirmation, inversions
from fanin.errors import MissingAlgorithmError, ScenarioError
from fanin.kernel import pace
from fanin.runs import engines
from fanin.runs.job import RunWarning
from fanin.terminal.display import _confirmation_table
from fanin.words.verdict import STATISTIC_NAMES

from lab.racks.measured import summary

from .conftest import RACK, SMALL, Fanin
from .judged import with_times

SIX_TO_ONE = Path("tests/data/pcap/virtual_kernel/incast6_dctcp_1g.client.pcap.gz")


class StandIn(engines.Simulator):
    """The simulator under another name, without one algorithm."""

    name = "kernel"
    label = "a stand-in"

    def identity(self) -> str:
        return "stand-in"

    def check(self, plan: object, scenario: object = None) -> None:
        if "bbr" in plan.algorithms:  # type: ignore[attr-defined]
            raise MissingAlgorithmError("the stand-in has no `bbr`")


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(engines.MADE_BY, "kernel", StandIn)
    return


@pytest.mark.usefixtures("stand_in")
def test_what_gives_the_same_numbers_confirms() -> None:
    told: list[str] = []
    # Where nothing is lost BBR gives the numbers of CUBIC, and the two share a row.
    lossy = {"rack.buffer": "30p"}
    result = fanin.compare(
        SMALL, RACK, cc=["cubic", "dctcp", "bbr"], seeds=3, confirm=3, tell=told.append, settings=lossy
    )
    found = result.confirmation
    assert found is not None
    assert found.holds
    assert found.order
    assert len(told) == 1
    assert "confirming" in told[0]
    assert "about" in told[0]
    assert [row["cc"] for row in found.rows] == ["cubic", "dctcp"] or [row["cc"] for row in found.rows] == [
        "dctcp",
        "cubic",
    ]
    for row in found.rows:
        assert row["simulated"]["p99"] == row["there"]["p99"]
    assert "bbr has no form there" in found.sentence
    assert result.verdict.support[0] == found.sentence
    assert result.to_dict()["confirmation"]["holds"] is True


def test_where_neither_has_advice_nothing_is_confirmed() -> None:
    doubt = RunWarning("requests are missing", "requests-unbound")
    real = replace(fanin.compare(SMALL, RACK, cc=["cubic", "dctcp"], seeds=2), warnings=(doubt,))
    found = confirmation(real, replace(real, engine="kernel", engine_label="the other engine"))
    assert found.holds
    assert found.sentence.startswith("Neither confirmed nor refuted (the other engine over 2 seeds): No advice yet: ")


def test_where_another_engine_says_otherwise_it_is_believed() -> None:
    real = fanin.compare(SMALL, RACK, cc=["cubic", "dctcp"], seeds=2)
    real = replace(real, calibration=None)
    here, there = with_times(real, dctcp=(2.5, 10.0)), with_times(real, dctcp=(6.0, 90.0))
    there = replace(there, engine="kernel", engine_label="the other engine")
    alone = here.verdict
    assert alone.best != there.verdict.best
    found = confirmation(here, there)
    assert not found.holds
    here = replace(here, confirmation=found)
    believed = here.verdict
    assert believed.best == there.verdict.best
    assert believed.headline == f"Real Linux TCP says otherwise than the simulation: {there.verdict.headline}"
    assert alone.headline in believed.support[0]
    assert believed.recommendation == there.verdict.recommendation


def test_both_engines_numbers_stand_beside_each_other_for_what_was_to_gain() -> None:
    real = replace(fanin.compare(SMALL, RACK, cc=["cubic", "dctcp"], seeds=2), calibration=None)
    here, there = with_times(real, dctcp=(2.5, 10.0)), with_times(real, dctcp=(6.0, 90.0))
    found = confirmation(here, replace(there, engine="kernel", engine_label="the other engine"))
    assert here.decision is not None
    assert "mean" in here.decision.by
    columns = [str(column.header) for column in _confirmation_table(here, found).columns]
    assert columns[1:3] == ["mean sim", "mean there"]
    assert all(f"{STATISTIC_NAMES[name]} there" in columns for name in (*here.decision.by, here.rank_by))


def test_what_gains_as_stated_is_confirmed_though_another_gains_a_little_more_there() -> None:
    real = replace(fanin.compare(SMALL, RACK, cc=["cubic", "dctcp", "reno"], seeds=2), calibration=None)

    def there(**times: tuple[float, float]) -> fanin.CompareResult:
        return replace(with_times(real, **times), engine="kernel", engine_label="the other engine")

    here = with_times(real, reno=(2.5, 10.0), dctcp=(2.6, 10.5))
    assert here.verdict.best == "reno"
    more, less = there(reno=(2.6, 11.0), dctcp=(2.5, 9.0)), there(reno=(4.0, 30.0), dctcp=(2.5, 9.0))
    assert (more.verdict.best, less.verdict.best) == ("dctcp", "dctcp")
    found = replace(here, confirmation=confirmation(here, more))
    assert found.verdict.best == "reno"
    assert found.verdict.support[0].startswith("Confirmed")
    assert "reno" in found.verdict.support[0]
    # It gains there too, but not as stated.
    assert replace(here, confirmation=confirmation(here, less)).verdict.best == "dctcp"


@pytest.mark.usefixtures("stand_in")
def test_what_is_confirmed_is_what_all_racks_together_advise(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def confirm(result: fanin.CompareResult, *_: object) -> Confirmed:
        asked.append(len(result.variations))
        return Confirmed()

    monkeypatch.setattr(course, "confirm", confirm)
    fanin.compare(SMALL, RACK, cc=["cubic", "dctcp"], seeds=2, vary={"buffer": ["50p", "400p"]}, confirm=1)
    assert asked == [2]


def test_only_differences_by_more_than_chance_turn_an_order() -> None:
    here = fanin.compare(SMALL, RACK, cc=["cubic", "dctcp"], seeds=5, keep=False)
    assert inversions(here, here, ["cubic", "dctcp"]) == []
    turned = replace(
        here,
        runs=here.runs.with_columns(
            cc=here.runs["cc"].cast(pl.String).replace({"cubic": "dctcp", "dctcp": "cubic"}).cast(here.runs["cc"].dtype)
        ),
    )
    first, second = (row.cc for row in here.ranking)
    sure = here.ranking[-1].tier > 1
    assert inversions(here, turned, ["cubic", "dctcp"]) == ([(second, first)] if sure else [])


def test_a_confirmation_needs_a_kernel_and_something_to_confirm(
    fanin: Fanin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FANIN_KERNEL_CACHE", str(tmp_path))
    done = fanin("compare", SMALL, "--rack", RACK, "--confirm", "2")
    assert done.code == 2
    assert "run `fanin kernel build`" in done.err
    done = fanin("compare", SMALL, "--rack", RACK, "--confirm", "-1")
    assert done.code == 2
    # Not that it must be built: the number is wrong.
    assert "--confirm" in done.err
    assert "kernel build" not in done.err


def test_estimates_follow_what_was_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FANIN_KERNEL_CACHE", str(tmp_path))
    assert pace.hop_seconds() == pace.USUAL_HOP_S
    pace.remember([1e6] * 4, 1000.0)
    assert pace.hop_seconds() > pace.USUAL_HOP_S
    (tmp_path / pace.PACE).write_text("nonsense")
    assert pace.hop_seconds() == pace.USUAL_HOP_S


@pytest.mark.usefixtures("kernel")
def test_the_kernel_confirms_a_comparison_and_the_report_shows_both() -> None:
    result = fanin.compare(SIX_TO_ONE, RACK, cc=["cubic", "dctcp"], seeds=2, confirm=2)
    found = result.confirmation
    assert found is not None
    assert found.engine == "kernel"
    assert "Linux 6.12" in found.label
    assert sorted(row["cc"] for row in found.rows) == ["cubic", "dctcp"]
    for row in found.rows:
        here, there = row["simulated"]["p50"]["value"], row["there"]["p50"]["value"]
        assert 0.8 < there / here < 1.25
    page = report.page(result)
    assert 'id="confirmed"' in page
    assert "of the simulator" in page
    # Found, not run again.
    again = fanin.compare(SIX_TO_ONE, RACK, cc=["cubic", "dctcp"], seeds=2, confirm=2)
    assert again.confirmation is not None
    assert again.confirmation.result.found == 4
    assert again.confirmation.rows == found.rows


@pytest.mark.usefixtures("kernel", "seldom_busy")
def test_the_kernel_confirms_advice() -> None:
    told = advise(SIX_TO_ONE, RACK, cc=["cubic", "dctcp"], budget=20, confirm=1)
    found = told.confirmation
    assert found is not None
    assert "Linux 6.12" in found.label
    assert "Linux 6.12" in found.sentence
    for row in found.rows:
        assert 0.8 < row["there"]["mean"]["value"] / row["simulated"]["mean"]["value"] < 1.25


@pytest.mark.usefixtures("kernel")
def test_a_whole_comparison_on_the_kernel_says_so() -> None:
    told: list[str] = []
    result = fanin.compare(SIX_TO_ONE, RACK, cc=["cubic", "dctcp"], seeds=1, engine="kernel", tell=told.append)
    assert result.engine == "kernel"
    assert "2 runs, about" in told[0]
    assert result.to_dict()["engine"]["label"].startswith("Linux 6.12")
    assert result.ranking[0].unfinished == 0
    with pytest.raises(ScenarioError, match=r"has no `ndp`"):
        fanin.compare(SIX_TO_ONE, RACK, cc="ndp", seeds=1, engine="kernel")


@pytest.mark.usefixtures("kernel")
def test_a_service_beside_its_prediction() -> None:
    service = """
[topology]
senders = 4
mark = "20p"
buffer = "100p"
[stack]
profile = "linux"
[[workload]]
kind = "incast"
bytes = "32KB"
rounds = 15
gap = "2ms"
request = "300B"
"""
    found = fanin.truth("service.toml", text=service, cc=["cubic", "dctcp"], seeds=1, predict=3)
    assert found.of == "rounds"
    # What is simulated is cheap, so it may have more seeds.
    assert (found.rounds.height, found.predicted_rounds.height) == (2 * 15, 2 * 15 * 3)
    rows = {row["cc"]: row for row in found.table.iter_rows(named=True)}
    assert rows["cubic"]["count"] == 15
    # 128 KB at 1 Gbps take 1.1 ms.
    for row in rows.values():
        assert 1.1 < row["p50"] < 3
        assert 0.8 < row["predicted_p50"] / row["p50"] < 1.25
    assert rows["cubic"]["gain"] == 1.0
    assert found.to_dict()["pairs"]["pairs"] == 1


def test_gains_that_the_kernel_repeats_are_counted_apart() -> None:
    columns = ("mean", "predicted_mean", "simulated_mean", "half_1_mean", "half_2_mean")
    means = {
        "cubic": (100.0, 50.0, 100.0, 50.0, 150.0),
        "reno": (100.0, 100.0, 100.0, 100.0, 100.0),
        "dctcp": (10.0, 10.0, 30.0, 10.0, 10.0),
    }
    rows = [{"case": "a", "group": "g", "cc": cc, **dict(zip(columns, row, strict=True))} for cc, row in means.items()]
    # Only Reno over DCTCP is the same in both halves: the replay has it right, the service itself has not.
    assert summary(pl.DataFrame(rows))[-1] == "| all | 2 of 2 | 1 of 3 | 1 of 3 | 1 of 3 | 1 and 0 of 1 |"


def test_a_baseline_that_is_advised_takes_no_place_among_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    lossy = {"rack.buffer": "30p"}
    result = fanin.compare(SMALL, RACK, cc=["cubic", "dctcp", "reno"], seeds=1, keep=False, settings=lossy)
    best, second, last = (row.cc for row in result.ranking)
    keep = replace(result, baseline=last)
    monkeypatch.setattr("fanin.comparison.confirm.verdict_of", lambda _: SimpleNamespace(best=last))
    monkeypatch.setattr("fanin.comparison.confirm.has", lambda *_: True)
    assert chosen_again(keep, 2, None).names == [best, second, last]  # type: ignore[arg-type]
    # Nor where it is the best: one other is run beside it.
    first = replace(result, baseline=best)
    monkeypatch.setattr("fanin.comparison.confirm.verdict_of", lambda _: SimpleNamespace(best=best))
    assert chosen_again(first, 1, None).names == [second, best]  # type: ignore[arg-type]
    monkeypatch.setattr("fanin.comparison.confirm.verdict_of", lambda _: SimpleNamespace(best=last))
    # Where it is one of the best it is run once.
    assert chosen_again(keep, 3, None).names == [best, second, last]  # type: ignore[arg-type]
