"""What a user of the Python module meets: names that are almost right, and results that show themselves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import fanin
import polars as pl
import pytest
from fanin.advice import advise
from fanin.service import TruthResult
from fanin.sweep import sweep

from .conftest import RACK, ROOT, SMALL

INCAST = ROOT / "examples" / "incast.toml"


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda: fanin.compare(SMALL, RACK, seed=1), "has no keyword `seed`; did you mean `seeds`?"),  # type: ignore[call-arg]
        (lambda: fanin.run(INCAST, setings={}), "did you mean `settings`?"),  # type: ignore[call-arg]
        (lambda: fanin.compare(SMALL, RACK, rank_by="p9_99"), "did you mean `p99_9`?"),  # type: ignore[arg-type]
        (lambda: fanin.compare(SMALL, RACK, rank_of="request"), "did you mean `requests`?"),  # type: ignore[arg-type]
        (lambda: fanin.compare(SMALL, RACK, cc="cubc"), "did you mean `cubic`?"),
        (lambda: fanin.run(INCAST, settings={"topology.sender": 3}), "did you mean `senders`?"),
        (lambda: fanin.entries("queues"), "did you mean `queue`?"),
        (lambda: fanin.comparee, "did you mean `fanin.compare`?"),
    ],
)
def test_a_name_that_is_almost_right_is_answered_with_the_right_one(wrong: Callable[[], object], told: str) -> None:
    with pytest.raises((TypeError, ValueError, AttributeError), match=r"did you mean") as caught:
        wrong()
    assert told in str(caught.value)


@pytest.mark.usefixtures("seldom_busy")
def test_every_result_has_one_line_and_a_table_for_notebooks(tmp_path: Path) -> None:
    small = tmp_path / "small.toml"
    small.write_text(f'scenario = "{INCAST}"\nseeds = 2\n[axis.n]\nkey = "topology.senders"\nvalues = [2, 4]\n')
    times = ("p50", "predicted_p50", "p99", "predicted_p99", "gain", "predicted_gain", "timeouts")
    none = pl.DataFrame()
    truth = TruthResult(
        table=pl.DataFrame({"cc": ["cubic"], **dict.fromkeys(times, 1.5)}), of="rounds", rounds=none, responses=none,
        predicted_rounds=none, predicted_responses=none, what="a.pcap", captured="cubic", engine_label="Linux", seeds=(1,), command="", version="",
    )  # fmt: skip
    results: list[object] = [
        fanin.run(INCAST, cc="cubic", seed=1, settings={"topology.senders": 4}),
        fanin.trains(SMALL),
        fanin.propose_rack(SMALL),
        fanin.diff(SMALL, SMALL),
        fanin.compare(SMALL, RACK, cc=["cubic"], seeds=1),
        fanin.models.trim_k(rate="1Gbps", rtt="200us", buffer="100p"),
        advise(SMALL, RACK, cc=["cubic", "dctcp"], budget=20),
        sweep(small, store=tmp_path / "store"),
        truth,
    ]
    for result in results:
        assert repr(result).startswith(f"<{type(result).__name__}")
        assert "\n" not in repr(result)
        assert len(repr(result)) < 300
        page = result._repr_html_()  # type: ignore[attr-defined]
        assert "<table>" in page
        assert "<script" not in page


def test_a_verdict_and_a_row_are_one_line() -> None:
    found = fanin.compare(SMALL, RACK, cc=["cubic", "reno"], seeds=2)
    assert repr(found.verdict).startswith(f"<Verdict {found.verdict.kind}: ")
    assert repr(found.ranking[0]).startswith(f"<RankingRow 1: {found.ranking[0].cc}, p99 ")


def test_the_papers_are_reproduced_from_python() -> None:
    assert callable(fanin.reproduce)
    with pytest.raises(fanin.FaninError, match="is no paper, figure or claim"):
        fanin.reproduce("trimm")


@pytest.mark.parametrize(
    "setting",
    [
        {"title": "x"},
        {"topology.leaves": 3},  # of another topology
        {"topology.red_min": "5p"},  # of another discipline
        {"workload.think": "1ms"},  # of another workload
        {"cc.trim_k": "50us"},  # of another algorithm
        {"stack.nothing": 1},
    ],
)
def test_a_setting_that_would_have_no_effect_is_refused(setting: dict[str, object]) -> None:
    with pytest.raises(fanin.ScenarioError) as caught:
        fanin.run(INCAST, cc="cubic", seed=1, settings=setting)
    assert "--set" in str(caught.value)


def test_gaps_between_trains_are_drawn_in_milliseconds_and_microseconds() -> None:
    import json

    from fanin.pictures.plots import train_plots

    found = fanin.trains(SMALL)
    chart = train_plots(found.trains, title="x")
    assert chart is not None
    drawn = json.dumps(chart.to_dict(), ensure_ascii=False)
    assert "µs" in drawn
    assert "format(datum.value, '~s') + ' ms'" not in drawn
    assert '"orient": "bottom"' in drawn
