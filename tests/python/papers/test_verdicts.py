"""From results to verdicts."""

from __future__ import annotations

import json

import polars as pl
import pytest
from fanin.papers import load, verdicts
from fanin.papers.judgement import judgement_of
from fanin.papers.verdicts import Checks, Data, Outcome, judge


def seeds(values: dict[int, float]) -> Data:
    return Data({"fig1": {"runs": pl.DataFrame({"seed": list(values), "x": list(values.values())})}})


@pytest.fixture(autouse=True)
def _mean_above_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def evaluate(data: Data) -> Outcome:
        x = data["fig1"]["runs"]["x"].mean()
        checks = Checks()
        checks.that(float(x or 0) > 1, "the mean is above 1")  # type: ignore[arg-type]
        return checks.outcome(f"{x}")

    monkeypatch.setitem(verdicts.EVALUATIONS, "odd.fig1", verdicts.Evaluation(evaluate, ("fig1",)))


def test_a_claim_that_holds_over_both_halves_is_reproduced() -> None:
    judged = judge("odd.fig1", "above 1", seeds({1: 2, 2: 2, 3: 2, 4: 2}))
    assert (judged.verdict, judged.seeds, judged.reason) == ("reproduced", 4, "")


def test_a_claim_that_flips_over_half_of_the_seeds_differs_and_says_so() -> None:
    judged = judge("odd.fig1", "above 1", seeds({1: 9, 2: 9, 3: 0, 4: 0}))
    assert judged.verdict == "differs"
    assert judged.reason == "it holds over all 4 seeds but flips over half of them (not so: the mean is above 1)"


def test_a_claim_that_differs_says_which_condition_failed_and_why() -> None:
    judged = judge("odd.fig1", "above 1", seeds({1: 0, 2: 0}), cause="the paper counts otherwise")
    assert judged.verdict == "differs"
    assert judged.reason == "not so: the mean is above 1. Why: the paper counts otherwise"


def test_a_cause_is_not_told_of_a_claim_that_holds() -> None:
    assert judge("odd.fig1", "above 1", seeds({1: 2}), cause="the paper counts otherwise").reason == ""


def throughput(algorithms: tuple[str, ...], flows: list[int]) -> pl.DataFrame:
    """A table in which five flows join a minute apart and leave in the reverse order, or some of them."""
    rows = [
        (cc, 1, flow, 1000.0 * second, 1_000_000)
        for cc in algorithms
        for flow in flows
        for second in range(60 * flow + 1, 600 - 60 * flow)
    ]
    names = {"cc": pl.String, "seed": pl.Int64, "flow": pl.UInt32, "time_ms": pl.Float64, "bytes": pl.UInt64}
    return pl.DataFrame(rows, names, orient="row")


@pytest.mark.parametrize(
    ("name", "algorithms"),
    [
        ("dctcp.fig4-5.convergence", ("dctcp", "newreno")),
        ("tcprand.fig16-17.convergence", ("cubic", "cubic, adaptive")),
    ],
)
def test_a_flow_or_an_algorithm_that_left_no_trace_is_named_and_nothing_is_judged(
    name: str, algorithms: tuple[str, str]
) -> None:
    for paper in load():
        judgement_of(paper)
    for flows, lost in (([1, 2, 3, 4], "0"), ([4], "0, 1, 2, 3")):
        judged = judge(name, "", Data({"convergence": {"throughput": throughput(algorithms, flows)}}))
        said = f"the results are not whole: of {algorithms[0]}, seed 1, nothing arrived of flow {lost}"
        assert (judged.verdict, judged.reason, judged.ours) == ("not run", said, "")
    judged = judge(name, "", Data({"convergence": {"throughput": throughput(algorithms[:1], [0, 1, 2, 3, 4])}}))
    assert judged.reason == f"the results are not whole: of {algorithms[1]} there are no results"


def test_an_evaluation_that_does_not_find_a_key_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    def evaluate(data: Data) -> Outcome:
        return Outcome(str({"a": 1}[data["fig1"]["runs"].columns[1]]), True)

    monkeypatch.setitem(verdicts.EVALUATIONS, "odd.fig1", verdicts.Evaluation(evaluate, ("fig1",)))
    judged = judge("odd.fig1", "above 1", seeds({1: 2}))
    assert (judged.verdict, judged.reason) == ("not run", "the results are not whole: they lack 'x'")


def test_each_experiment_is_halved_by_its_own_seeds() -> None:
    many = pl.DataFrame({"seed": [1, 2, 3, 4, 5, 6], "x": [1.0] * 6})
    data = Data({"many": {"runs": many}, "two": {"runs": many.head(2)}, "one": {"runs": many.head(1)}})
    lower, upper = data.halves()
    shown = [[list(half[name]["runs"]["seed"]) for name in ("many", "two", "one")] for half in (lower, upper)]
    assert shown == [[[1, 2, 3], [1], [1]], [[4, 5, 6], [2], [1]]]


@pytest.mark.parametrize(
    ("cubic", "tcprand", "failed"),
    [
        ((0.05, 0.1), (0.12, 0.42), ()),
        (
            (0.05, 0.1),
            (0.04, 0.42),
            ("TCPRand costs more with 1 flows", "TCPRand costs 1.35 to 8.2 times as much with 1 flows (0.8 times)"),
        ),
        ((0.05, 0.1), (0.5, 0.6), ("TCPRand costs 1.35 to 8.2 times as much with 1 flows (10.0 times)",)),
        (
            (0.08, 0.05),
            (0.12, 0.12),
            (
                "cubic costs more with each larger number of flows",
                "tcprand costs more with each larger number of flows",
            ),
        ),
    ],
)
def test_the_cost_of_a_sender_is_judged_by_its_order_and_its_ratio(
    cubic: tuple[float, ...], tcprand: tuple[float, ...], failed: tuple[str, ...]
) -> None:
    judgement_of(next(paper for paper in load() if paper.name == "tcprand"))
    rows = pl.DataFrame(
        {
            "scheme": ["cubic", "cubic", "tcprand", "tcprand"],
            "flows": [1, 1000, 1, 1000],
            "link_mbps": [200] * 4,
            "share": [*cubic, *tcprand],
            "mbps": [200.0, 200.0, 200.0, 90.0],
        }
    )
    outcome = verdicts.ON_HOST["tcprand.table1.cpu"].judge(Data({"sender_cpu": {"runs": rows}}))
    assert outcome.failed == failed
    assert outcome.ours.startswith("share of a core with 1, 1000 flows at 200 Mbps: cubic ")
    assert outcome.reason.endswith("tcprand filled a core with 90 to 90 Mbps: shares are by calculation")


def test_the_figure_of_a_senders_cost_draws_what_was_measured_last() -> None:
    paper = next(paper for paper in load() if paper.name == "tcprand")
    judgement = judgement_of(paper)
    rows = judgement.host.measured()
    assert set(rows["scheme"]) >= {"cubic", "tcprand"}
    for mbps, part in rows.group_by("mbps"):
        assert part.filter(scheme="cubic")["flows"].to_list() == [1, 10, 100, 1000], mbps
    # By calculation, a link of 1 Gbps takes more than a core.
    assert rows.filter(mbps=200)["percent"].is_between(0, 110, closed="none").all()
    assert rows["percent"].is_between(0, 600, closed="none").all()
    shown = json.dumps(verdicts.PICTURES["tcprand.table1"].draw(Data({})).chart().to_dict())
    assert f'"percent": {rows["percent"][0]}' in shown
    assert '"percent": 42.2' in shown


def test_gss_is_ahead_of_its_window_of_two_only_beyond_the_sampling_error() -> None:
    gss = judgement_of(next(paper for paper in load() if paper.name == "gss"))

    def runs(gains: list[float]) -> pl.DataFrame:
        cells = [("as stated", "gss+dctcp", 1.0), ("initial window 2", "dctcp", 0.0)]
        rows = [
            (variant, cc, 100, seed, 9e9 + of * gain)
            for variant, cc, of in cells
            for seed, gain in enumerate(gains, start=1)
        ]
        return pl.DataFrame(rows, schema=["variant", "cc", "workers", "seed", "goodput_bps"], orient="row")

    by_chance = [4e7, -3e7, 5e7, -2e7]
    assert not gss._ahead(Data({}), runs(by_chance), "dctcp")
    assert gss._ahead(Data({}), runs([3e7, 4e7, 5e7, 4e7]), "dctcp")
    # Half of the seeds say in which direction.
    assert gss._ahead(Data({}, half=True), runs(by_chance), "dctcp")
    assert not gss._ahead(Data({}, half=True), runs([-1e6, -2e6]), "dctcp")
