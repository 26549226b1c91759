"""What the report says of a real comparison."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import fanin
import fanin.report
import pytest
from fanin.capture.measured import another_baseline
from fanin.comparison.variations import Variation
from fanin.report import charts
from fanin.report.data import completion_curves
from fanin.statistics.seeds import Estimate, nearest_rank
from fanin.terminal.ranking_table import ranking_table
from fanin.words.verdict import Refusal, Verdict
from rich.console import Console

from .conftest import RACK, SMALL
from .judged import with_times


@pytest.fixture(scope="module")
def wide() -> fanin.CompareResult:
    """A rack on which nothing is lost: its buffer is changed on the command line."""
    made = fanin.compare(SMALL, RACK, cc=["cubic", "dctcp"], seeds=2, settings={"rack.buffer": "2000p"})
    # That such a rack does not give the capture is another test's.
    return replace(made, calibration=None)


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


def test_warnings_stand_at_the_top_and_code_is_set_as_code(wide: fanin.CompareResult) -> None:
    warned = replace(wide, warnings=["`trim`: <b>small</b> buffer"], notes=["set `stack.route_quickack = false`"])
    html = fanin.report.page(warned)
    assert "<li><code>trim</code>: &lt;b&gt;small&lt;/b&gt; buffer</li>" in html
    assert "<p>set <code>stack.route_quickack = false</code></p>" in html


def test_a_report_is_written_under_any_name(wide: fanin.CompareResult, tmp_path: Path) -> None:
    path = fanin.report.write(replace(wide, rack_path="rack\ufffd.toml"), tmp_path / "caf\udce9.html")
    assert "rack\ufffd.toml" in path.read_text()


def judged(wide: fanin.CompareResult, **times: tuple[float, float]) -> Verdict:
    """The verdict over cubic, with a mean of 5 ms and a p99 of 50, and these."""
    return with_times(wide, **times).verdict


def test_a_change_is_said_by_what_a_user_waits_for_now_and_then(wide: fanin.CompareResult) -> None:
    told = judged(wide, bbr=(2.5, 10.0))
    assert (told.kind, told.best, told.by) == ("change", "bbr", "p99")
    first, second = told.headline.split(" The mean ")
    assert first.startswith(
        "One request in 100 takes 50.0 ms or more in the replay of cubic. With bbr it would take 7.9"
    )
    assert first.endswith("(10 replays).")
    assert second.startswith("request takes 5.00 ms in the replay of cubic; it would take 1.9")
    assert told.recommendation is not None
    assert not any("gains too" in sentence for sentence in told.support), "what is advised is no peer of itself"


def test_no_ratio_is_stated_to_a_replay_that_is_not_what_the_capture_measured(wide: fanin.CompareResult) -> None:
    measured = wide.measured
    assert measured is not None

    def support(p99: float) -> Sequence[str]:
        took = {**measured.completion_ms, "mean": 5.0, "p99": p99}
        then = with_times(wide, bbr=(1.5, 5.0))
        return replace(then, measured=replace(measured, responses=1000, completion_ms=took)).verdict.support

    beside = "Beside cubic on the same racks and seeds: "
    assert any(s.startswith(f"{beside}p99 10 times shorter") and ", mean 3.3 times shorter" in s for s in support(40.0))
    told = support(20.0)
    assert any(s.startswith(f"{beside}mean 3.3 times shorter") for s in told)
    assert "The replay of cubic has a p99 of 50.0 ms (measured: 20.0 ms), so no ratio to it is stated." in told


def test_an_answer_that_holds_on_no_other_rack_says_so_first(wide: fanin.CompareResult) -> None:
    kept = [Variation({"rack.buffer": buffer}, "keep", "cubic", 50.0, 50.0, 1.0) for buffer in ("50p", "80p")]
    told = judged(replace(wide, variations=kept), bbr=(2.5, 10.0))
    assert told.headline.startswith(
        "The answer holds on none of the other 2 racks tried: buffer = 50p (cubic); buffer = 80p (cubic). On this rack: One request in 100"
    )
    assert not any("holds" in sentence for sentence in told.support)


def test_where_nothing_gains_the_hosts_keep_what_they_run(wide: fanin.CompareResult) -> None:
    told = judged(wide, bbr=(5.0, 50.0))
    assert (told.kind, told.best, told.recommendation) == ("keep", "cubic", None)
    assert told.headline.startswith(
        "Keep cubic: nothing that was tried makes the requests of this service surely shorter by 5% or more"
    )


def test_what_gains_at_the_tail_and_makes_the_mean_longer_is_refused_with_both(wide: fanin.CompareResult) -> None:
    told = judged(wide, reno=(15.0, 20.0), bbr=(4.0, 40.0))
    assert (told.kind, told.best) == ("change", "bbr")
    assert told.refused == (Refusal("reno", "improves the p99 but makes the mean 3.0 times longer"),)
    assert any(
        s.startswith("reno improves the p99 but makes the mean") and s.endswith("so it is not advised.")
        for s in told.support
    )


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
    told = judged(wide, newreno=(2.5, 10.0))
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
