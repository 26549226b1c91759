"""What the report says and holds, without a browser."""

from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import fanin.html
import fanin.report
import made_up
import polars as pl
import pytest
from fanin.report import data


def payload_of(html: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    assert found is not None
    loaded: dict[str, Any] = json.loads(found[1])
    return loaded


def packed(html: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(payload_of(html)["packed"])))
    return loaded


def test_the_headline_names_the_winner_the_gain_and_what_hosts_run_today() -> None:
    answer = made_up.result(seeds=6).verdict
    assert re.fullmatch(
        r"The mean response takes 10\.5 ms in the replay of cubic\. With (trim|dctcp) it would take [12]\.\d+ ms to [23]\.\d+ ms \(6 replays\)\.",
        answer.headline,
    )
    assert any("presumed to run cubic" in s for s in answer.support)
    assert any("(ECN)" in s for s in answer.support)
    assert answer.cautions == ()


def test_a_winner_that_needs_the_switch_comes_with_the_best_that_does_not() -> None:
    made = made_up.result(ccs=("dctcp", "gss+newreno", "cubic"), seeds=6)
    assert made.verdict.best == "dctcp"
    told = " ".join(made.verdict.support)
    assert "dctcp needs switches that mark packets (ECN). Without marks, gss+newreno is the best" in told


def test_when_nothing_beats_what_hosts_run_the_headline_says_so() -> None:
    made = made_up.result(ccs=("cubic", "newreno"))
    assert made.verdict.headline.startswith("Keep cubic: nothing that was tried makes the responses")


def test_one_seed_an_interruption_and_a_failure_are_said_at_the_top() -> None:
    made = made_up.result(
        seeds=1, interrupted=True, missing=[("reno", 2)], failures=[made_up.Failure("x", "it has no y.")]
    )
    told = made.verdict.cautions
    assert any("stopped early: 1 run is missing" in s for s in told)
    assert any("One seed only" in s for s in told)
    assert "x could not be run: it has no y." in told


def test_an_unfinished_tail_has_no_percentile_and_the_page_says_so() -> None:
    made = made_up.result(ccs=("cubic", "trim"), seeds=10)
    hung = pl.when(pl.col("cc") == "cubic").then(None).otherwise(pl.col("completion_ms")).alias("completion_ms")
    runs = made.runs.with_columns(
        pl.when(pl.col("cc") == "cubic").then(None).otherwise(pl.col("p99")).alias("p99"),
        pl.when(pl.col("cc") == "cubic").then(480).otherwise(0).cast(pl.UInt64).alias("unfinished"),
    )
    made = replace(
        made,
        responses=made.responses.with_columns(hung),
        runs=runs,
        outcomes=made_up.judged(runs, made.responses.with_columns(hung), ("cubic", "trim")),
        ranking=made_up.rank(runs, {"cubic": False, "trim": False}, made_up.HASHES, "p99", baseline="cubic"),
    )
    assert made.verdict.best == "trim"
    assert made.verdict.headline.startswith(
        "One response in 100 is not complete in the replay of cubic. With trim it would"
    )
    html = fanin.report.page(made)
    assert ">unfinished</span>" in html
    assert {c["cc"] for c in payload_of(html)["curves"]} == {"trim"}
    assert any(r["completion"].count(None) == 480 for r in packed(html)["responses"] if r["cc"] == "cubic")


def test_no_text_from_outside_can_end_a_script_or_open_a_tag() -> None:
    html = fanin.report.page(made_up.result(hostile=True)).replace(fanin.html.libraries(), "")
    assert "<img" not in html
    assert html.count("<script") == html.count("</script>") == 3
    assert "&lt;/script&gt;&lt;img" in html


def test_the_page_holds_no_address_to_fetch_from_outside_its_libraries() -> None:
    made = made_up.result()
    html = fanin.report.page(made)
    without_libraries = html.replace(fanin.html.libraries(), "")
    addresses = set(re.findall(r"https?://[^\s\"'<>)]+", without_libraries))
    assert addresses == {"http://www.w3.org/2000/svg"}, "the name of SVG's namespace is no address"


def test_a_peak_of_one_packet_is_in_the_page_even_when_the_trace_is_thinned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "TRACE_ROWS", 6_000)
    traces = packed(fanin.report.page(made_up.result()))["queue"]
    cubic = next(t for t in traces if t["cc"] == "cubic")
    assert len(cubic["packets"]) < 20_000 / 2
    assert max(cubic["packets"]) == 99


def test_every_run_seed_and_the_command_are_on_the_page() -> None:
    made = made_up.result()
    html = fanin.report.page(made)
    assert made.command in html
    assert made.scenario_hash in html
    runs = html[html.index('<table class="runs">') :]
    assert runs.count('<tr><th scope="row">') == made.runs.height
    assert "seeds 1, 2, 3" in html


def test_the_page_stays_small_with_sixteen_algorithms_and_long_traces(tmp_path: Path) -> None:
    few = made_up.result(ccs=("cubic", "trim"))
    copies = {
        f"cubic-{i}": few.queue.filter(pl.col("cc") == "cubic").with_columns(pl.lit(f"cubic-{i}").alias("cc"))
        for i in range(14)
    }
    many = replace(few, queue=pl.concat([few.queue, *copies.values()]))
    path = fanin.report.write(many, tmp_path / "report.html")
    assert path.stat().st_size < 6e6


def test_a_comparison_that_was_stopped_before_anything_was_traced_still_has_a_page() -> None:
    made = made_up.result(interrupted=True)
    made = replace(made, queue=made.queue.clear(), window=made.window.clear(), trains=made.trains.clear())
    html = fanin.report.page(made)
    assert packed(html)["queue"] == packed(html)["window"] == []
    assert payload_of(html)["connections"] == []
