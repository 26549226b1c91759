"""What the report says of a real comparison."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path

import fanin
import fanin.report
import pytest
from fanin.measured import another_baseline, slower_than_measured
from fanin.ranking_table import ranking_table
from fanin.report import charts
from fanin.report.data import completion_curves
from fanin.stats import Estimate, Paired, nearest_rank
from fanin.verdict import Refusal, Verdict
from rich.console import Console

from .conftest import RACK, SMALL


@pytest.fixture(scope="module")
def wide() -> fanin.CompareResult:
    """A rack on which nothing is lost: its buffer is changed on the command line."""
    made = fanin.compare(SMALL, RACK, cc=["cubic", "dctcp"], seeds=2, settings={"rack.buffer": "2000p"})
    # That such a rack does not give the capture is another test's.
    made.calibration = None
    return made


def test_the_buffer_of_the_report_is_the_one_that_was_run(wide: fanin.CompareResult) -> None:
    html = fanin.report.page(wide)
    assert "buffer 2000p" in html
    assert "<code>rack.buffer = 2000p</code>" in html
    found = re.search(r'id="data">(.*?)</script>', html, re.DOTALL)
    assert found is not None
    assert json.loads(found[1])["bufferPackets"] == 2000
    assert wide.to_dict()["rack"]["settings"] == {"rack.buffer": "2000p"}


def test_the_port_to_the_aggregator_may_have_its_own_limits() -> None:
    own = fanin.compare(
        SMALL, RACK, cc=["dctcp"], seeds=1, settings={"rack.receiver_buffer": "300p", "rack.receiver_mark": "30p"}
    )
    found = re.search(r'id="data">(.*?)</script>', fanin.report.page(own), re.DOTALL)
    assert found is not None
    data = json.loads(found[1])
    assert (data["bufferPackets"], data["markPackets"]) == (300, 30)


def test_where_nothing_is_lost_the_answer_is_to_look_elsewhere(wide: fanin.CompareResult) -> None:
    told = " ".join(wide.verdict.support)
    most = max(row.queue_max_packets.value or 0 for row in wide.ranking)
    lost = wide.measured.retransmissions if wide.measured is not None else 0
    # The capture had losses, this rack has none: then it is the rack that is wrong, not the hosts.
    assert (
        f"never held more than {most:,.0f} of 2,000 packets, while {lost} packets were sent again in the capture"
        in told
    )
    assert "does not slow" not in told
    calm = replace(wide, measured=replace(wide.measured, retransmissions=3)) if wide.measured is not None else wide
    told = " ".join(calm.verdict.support)
    assert f"never held more than {most:,.0f} of 2,000 packets: this rack does not slow this traffic down" in told


def test_where_something_is_lost_nothing_is_said_of_elsewhere() -> None:
    tight = fanin.compare(
        SMALL, RACK, cc=["cubic", "dctcp"], seeds=1, settings={"rack.buffer": "25p", "rack.mark": "5p"}
    )
    assert any(row.drops.value for row in tight.ranking)
    assert "this rack does not slow" not in " ".join(tight.verdict.support)


def test_when_nothing_beats_what_the_hosts_run_the_sentences_are_about_that(wide: fanin.CompareResult) -> None:
    same = Paired(Estimate(1.0, 0.9, 1.1), 0.9)
    rows = [
        replace(row, tier=1, p=0.9, against_baseline={**row.against_baseline, "p99": same, "p99_9": same})
        if row.cc == "dctcp"
        else row
        for row in wide.ranking
    ]
    told = replace(wide, ranking=rows).verdict
    assert told.kind == "keep"
    assert told.headline.startswith("Keep cubic: no TCP that hosts can run measurably shortens the p99 round (")
    assert "dctcp is not measurably different from cubic at p99 over 2 seeds." in told.support
    assert "Switches that mark packets (ECN) would not change that." in told.support
    assert told.recommendation is None


def test_warnings_stand_at_the_top_and_code_is_set_as_code(wide: fanin.CompareResult) -> None:
    warned = replace(wide, warnings=["`trim`: <b>small</b> buffer"], notes=["set `stack.quickack = false`"])
    html = fanin.report.page(warned)
    assert "<li><code>trim</code>: &lt;b&gt;small&lt;/b&gt; buffer</li>" in html
    assert "<p>set <code>stack.quickack = false</code></p>" in html


def test_a_report_is_written_under_any_name(wide: fanin.CompareResult, tmp_path: Path) -> None:
    path = fanin.report.write(replace(wide, rack_path="rack\ufffd.toml"), tmp_path / "caf\udce9.html")
    assert "rack\ufffd.toml" in path.read_text()


def judged(
    wide: fanin.CompareResult,
    rows: dict[str, tuple[float, float, float, float]],
    alone: dict[str, float] | None = None,
) -> Verdict:
    """The verdict over cubic and these: p99, its p value (and, in `alone`, what it is uncorrected), p99.9, its p value."""
    cubic = next(row for row in wide.ranking if row.cc == "cubic")
    base = replace(cubic, completion_ms={**cubic.completion_ms, "p99": Estimate(4.5), "p99_9": Estimate(125.0)})
    made = []
    for cc, (p99, p, p99_9, p_tail) in rows.items():
        paired = {
            "p99": Paired(Estimate(p99 / 4.5, p99 / 5.0, p99 / 4.0), (alone or {}).get(cc, p)),
            "p99_9": Paired(Estimate(p99_9 / 125.0), p_tail),
            "timeouts": Paired(Estimate(0.0), 1.0),
        }
        times = {**base.completion_ms, "p99": Estimate(p99), "p99_9": Estimate(p99_9)}
        made.append(replace(base, cc=cc, completion_ms=times, against_baseline=paired, p=p))
    ranked = sorted([base, *made], key=lambda row: row.completion_ms["p99"].value or 0)
    return replace(wide, ranking=[replace(r, rank=i, tier=i) for i, r in enumerate(ranked, 1)]).verdict


def test_what_the_runs_cannot_tell_apart_is_no_win(wide: fanin.CompareResult) -> None:
    assert judged(wide, {"bbr": (3.0, 0.06, 120.0, 0.9)}).kind == "keep"
    won = judged(wide, {"bbr": (3.0, 0.04, 120.0, 0.9)})
    assert won.headline == "bbr brings the p99 round from 4.50 ms with cubic to 3.00 ms: 33% shorter (25% to 40%)."
    assert won.recommendation is not None
    assert won.recommendation.undo_everywhere == "sysctl -w net.ipv4.tcp_congestion_control=cubic"


def test_a_winner_whose_tail_is_worse_is_refused_and_the_next_is_advised(wide: fanin.CompareResult) -> None:
    told = judged(wide, {"reno": (3.0, 0.001, 220.0, 0.01), "bbr": (4.0, 0.01, 7.5, 0.01)})
    assert (told.kind, told.best) == ("change", "bbr")
    assert told.refused == (Refusal("reno", "is worse than the baseline at p99.9 (220 ms, 1.8 times as long)"),)
    assert any(s.startswith("reno has a p99 of 3.00 ms, but is worse") for s in told.support)


def test_a_shorter_tail_at_no_cost_is_advised_though_the_p99_is_the_same(wide: fanin.CompareResult) -> None:
    told = judged(wide, {"bbr": (4.6, 0.7, 7.5, 0.01)})
    assert (told.kind, told.best) == ("tail", "bbr")
    assert told.headline == (
        "Nothing measurably beats cubic at p99, but bbr brings the p99.9 round from 125 ms with cubic to 7.50 ms: 17 times shorter."
    )
    costly = judged(wide, {"bbr": (5.2, 0.001, 7.5, 0.01)})
    assert (costly.kind, costly.best) == ("keep", "cubic")
    assert any("but at p99 it is 16% longer" in s for s in costly.support)


def test_a_gain_of_two_percent_is_told_and_no_reason_to_change(wide: fanin.CompareResult) -> None:
    told = judged(wide, {"bbr": (4.41, 0.001, 124.0, 0.9)})
    assert (told.kind, told.best, told.recommendation) == ("keep", "cubic", None)
    assert told.headline.endswith("of this traffic on this rack by 3% or more.")
    assert any(s.startswith("bbr is 2% shorter") and "too little to change a TCP for" in s for s in told.support)
    tail = judged(wide, {"bbr": (4.6, 0.7, 123.0, 0.001)})
    assert (tail.kind, tail.best) == ("keep", "cubic")
    # Where another statistic gains, the same two percent are a win, and the sentences say where it is.
    both = judged(wide, {"bbr": (4.41, 0.001, 12.5, 0.001)})
    assert (both.kind, both.best) == ("change", "bbr")
    assert "The gain is elsewhere: its p99.9 is 10 times shorter." in both.support


def test_a_shorter_tail_is_corrected_for_the_number_of_algorithms(wide: fanin.CompareResult) -> None:
    alone = judged(wide, {"bbr": (4.6, 0.7, 60.0, 0.03)})
    assert (alone.kind, alone.best) == ("tail", "bbr")
    of_three = judged(
        wide, {"bbr": (4.6, 0.7, 60.0, 0.03), "reno": (4.7, 0.7, 120.0, 0.9), "bic": (4.8, 0.7, 120.0, 0.9)}
    )
    assert (of_three.kind, of_three.best) == ("keep", "cubic")


def test_the_sentences_and_the_table_correct_for_the_same_number_of_algorithms(wide: fanin.CompareResult) -> None:
    # 0.03 alone, 0.09 over the three: no star in the table, no claim in the words.
    told = judged(wide, {"bbr": (3.0, 0.09, 7.5, 0.001)}, alone={"bbr": 0.03})
    assert told.kind == "tail"
    assert any(s == "At p99, 3.00 ms with bbr, 4.50 ms with cubic, which may be chance." for s in told.support)


def test_an_algorithm_that_would_have_been_measured_so_is_named_as_what_hosts_may_run(
    wide: fanin.CompareResult,
) -> None:
    cubic = next(row for row in wide.ranking if row.cc == "cubic")
    times = {**cubic.completion_ms, "p50": Estimate(11.0), "p99": Estimate(177.0)}
    cubic = replace(cubic, completion_ms=times, retransmissions=Estimate(2506.0))
    bbr = replace(cubic, cc="bbr", completion_ms={**times, "p99": Estimate(287.0)}, retransmissions=Estimate(30546.0))
    assert wide.measured is not None
    captured = replace(
        wide.measured,
        responses=2400,
        completion_ms={**wide.measured.completion_ms, "p50": 14.4, "p99": 322.0},
        retransmissions=36628,
    )
    told = another_baseline(captured, cubic, [cubic, bbr])
    assert len(told) == 1
    assert "on this rack bbr would have been measured so" in told[0]
    assert "--baseline bbr" in told[0]
    # What the capture agrees with is the baseline; and what nothing agrees with is the rack.
    assert another_baseline(captured, bbr, [cubic, bbr]) == []
    assert another_baseline(replace(captured, retransmissions=400_000), cubic, [cubic, bbr]) == []
    few = replace(captured, responses=5)
    assert another_baseline(few, cubic, [cubic, bbr]) == [], "one statistic proves nothing"


def test_a_gain_over_times_that_were_never_measured_says_so_under_its_headline(wide: fanin.CompareResult) -> None:
    assert wide.measured is not None
    seen = replace(wide.measured, responses=400, completion_ms={**wide.measured.completion_ms, "p99": 14.9})
    told = slower_than_measured(seen, "p99", "p99", [209.0, 217.0, None])
    assert told[0].startswith(
        "But the capture itself measured a p99 of 14.9 ms, and no simulated run of today's TCP had less than 209 ms"
    )
    # One run that is near it is enough to doubt the caution, and a p99 of few responses is none.
    assert slower_than_measured(seen, "p99", "p99", [209.0, 20.0]) == []
    assert slower_than_measured(replace(seen, responses=50), "p99", "p99", [209.0]) == []
    slow = replace(wide, measured=replace(seen, completion_ms={**seen.completion_ms, "p99": 1.0}))
    said = judged(slow, {"bbr": (3.0, 0.01, 7.5, 0.001)})
    assert said.kind == "change"
    assert said.support[0].startswith("But the capture itself measured a p99 of 1.00")


def test_eighty_columns_cut_no_name_and_no_ranked_value_however_many_rows_are_one(wide: fanin.CompareResult) -> None:
    alike = ("tcprand+cubic", "reno", "bic", "vegas", "gss+cubic", "hystart+cubic")
    many = replace(wide, ranking=[replace(wide.ranking[0], alike=alike), *wide.ranking[1:]])
    drawn = io.StringIO()
    Console(file=drawn, width=80).print(ranking_table(many, 80))
    text = drawn.getvalue()
    assert "…" not in text
    assert all(name in text for name in (wide.ranking[0].cc, *alike))
    assert max(map(len, text.splitlines())) <= 80


def test_a_model_that_no_kernel_has_comes_without_lines_to_type(wide: fanin.CompareResult) -> None:
    told = judged(wide, {"newreno": (3.0, 0.001, 120.0, 0.9)})
    assert told.recommendation is None
    assert any(s.startswith("newreno is a model") for s in told.support)


def test_what_alone_was_run_before_an_interruption_is_not_advised(wide: fanin.CompareResult) -> None:
    first = next(row for row in wide.ranking if row.cc not in {"cubic", "newreno", "reno", "sack"} and row.candidate)
    stopped = replace(wide, ranking=[first], baseline=None, interrupted=True, missing=[("cubic", 1)])
    assert stopped.verdict.recommendation is None
    assert "stopped early" in " ".join(stopped.verdict.cautions)
    assert replace(stopped, interrupted=False, missing=[]).verdict.recommendation is not None


def test_terminal_json_and_page_say_the_same(wide: fanin.CompareResult) -> None:
    said = wide.to_dict()["answer"]
    assert said == wide.verdict.to_dict()
    assert f"<title>{said['headline']}" in fanin.report.page(wide)


def test_both_pictures_of_completion_times_mark_the_p99_of_all_seeds_by_nearest_rank(wide: fanin.CompareResult) -> None:
    marked = []
    for tail in (False, True):
        *_, crossing = charts.curves(["cubic", "dctcp"], tail=tail).to_dict()["layer"]
        marked.append(crossing["transform"][:2])
    assert marked[0] == marked[1]
    assert marked[0][0] == {"filter": "datum.share >= 0.99"}
    drawn = [row for row in completion_curves(wide, ["cubic"]) if row["of"] == "responses" and row["share"] >= 0.99]
    done = sorted(wide.responses.filter(cc="cubic")["completion_ms"].to_list())
    assert min(row["ms"] for row in drawn) == nearest_rank(done, len(done), 0.99)


def test_of_equal_algorithms_the_one_that_the_registry_names_first_comes_first() -> None:
    equal = fanin.compare(SMALL, RACK, cc=["d2tcp", "dctcp"], seeds=1)
    assert [(row.cc, row.alike) for row in equal.ranking] == [("dctcp", ("d2tcp",))], (
        "without deadlines they are the same"
    )
