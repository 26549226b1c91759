"""The comparison: what it counts, how it ranks, and that it is the same every time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import fanin
import polars as pl
import pytest
from fanin.comparison import FLOWS, QUEUE, RESPONSES, RUNS, WINDOW, columns
from fanin.process import progress
from fanin.report import write
from fanin.statistics.seeds import estimate_positive

from .conftest import CAPTURES, RACK, SMALL, Fanin, entries


@pytest.fixture(scope="module")
def result() -> fanin.CompareResult:
    return fanin.compare(SMALL, RACK, cc=["newreno", "dctcp"], seeds=3, trace_seed=2)


def test_frames_have_the_documented_columns(result: fanin.CompareResult) -> None:
    for frame, schema in (
        (result.responses, RESPONSES),
        (result.flows, FLOWS),
        (result.runs, RUNS),
        (result.queue, QUEUE),
        (result.window, WINDOW),
    ):
        assert dict(frame.schema) == schema
        assert frame.height > 0


def test_every_response_of_the_capture_is_replayed_once_per_algorithm_and_seed(result: fanin.CompareResult) -> None:
    counts = result.responses.group_by("cc", "seed").len()["len"].to_list()
    assert counts == [result.capture.responses] * 6
    key = ["cc", "seed", "connection", "response"]
    assert result.responses.select(key).is_unique().all()
    sizes = result.responses.group_by("cc", "seed").agg(pl.col("bytes").sum())["bytes"].unique()
    assert sizes.len() == 1


def test_the_ranking_is_what_the_rounds_and_responses_say(result: fanin.CompareResult) -> None:
    # The capture is a multi-get over eight servers.
    assert result.rank_of == "requests"
    for row in result.ranking:
        for frame, estimates in ((result.responses, row.response_ms), (result.rounds, row.request_ms)):
            per_seed = []
            for seed in result.seeds:
                times = sorted(frame.filter(cc=row.cc, seed=seed)["completion_ms"].to_list())
                per_seed.append(times[-(-99 * len(times) // 100) - 1])
            assert estimates["p99"] == estimate_positive(per_seed)
        assert row.completion_ms == row.request_ms
        flows = result.flows.filter(cc=row.cc)
        assert row.timeouts.value == pytest.approx(flows["timeouts"].sum() / 3)
        assert row.retransmissions.value == pytest.approx(flows["retransmissions"].sum() / 3)
        assert row.unfinished == 0
        assert row.seeds == (1, 2, 3)
    values = [row.completion_ms["p99"].value for row in result.ranking]
    assert values == sorted(values, key=lambda v: v or 0)
    assert [row.rank for row in result.ranking] == [1, 2]


def test_what_many_runs_have_alike_is_held_once() -> None:
    typed, rows = columns.Typed(), columns.MANY_ROWS
    first, same, other = (pl.Series("bytes", [value] * rows, dtype=pl.UInt64) for value in (7, 7, 8))
    kept = typed.held("responses", first)
    # What came with it is not held with it.
    assert kept is not first
    assert kept.equals(first)
    assert typed.held("responses", same) is kept
    assert typed.held("responses", other).equals(other)
    assert typed.held("flows", same) is not kept
    # Runs come seed by seed: the same candidate's is so many runs ago.
    others = [typed.held("responses", pl.Series("bytes", [9 + n] * rows, dtype=pl.UInt64)) for n in range(12)]
    assert typed.held("responses", same) is kept
    assert len({other[0] for other in others}) == 12


def test_a_response_is_never_faster_than_its_bytes_on_the_wire(result: fanin.CompareResult) -> None:
    slowest_rate = result.responses["bytes"] * 8 / 1e9 * 1e3
    assert (result.responses["completion_ms"] > slowest_rate).all()


def test_only_what_needs_the_switch_is_marked(result: fanin.CompareResult) -> None:
    by_name = {row.cc: row for row in result.ranking}
    assert by_name["dctcp"].needs_ecn
    assert not by_name["newreno"].needs_ecn
    assert by_name["newreno"].marks.value == 0
    assert (by_name["dctcp"].marks.value or 0) > 0


def test_traces_are_of_the_chosen_seed_alone(result: fanin.CompareResult) -> None:
    assert result.trace_seed == 2
    run = result.runs.filter(cc="newreno", seed=2).row(0, named=True)
    assert result.queue.filter(cc="newreno")["packets"].max() == run["queue_max_packets"]
    assert set(result.window["state"].unique()) <= {"open", "disorder", "cwr", "recovery", "loss"}


def numbers(result: fanin.CompareResult) -> Any:
    return result.to_dict()["ranking"], result.responses.sort("cc", "seed", "connection", "response").rows()


def test_one_core_or_many_gives_the_same_numbers(result: fanin.CompareResult, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "cores", lambda: 1)
    alone = fanin.compare(SMALL, RACK, cc=["newreno", "dctcp"], seeds=3, trace_seed=2)
    assert numbers(alone) == numbers(result)
    assert alone.scenario_hash == result.scenario_hash


def test_the_order_of_algorithms_changes_nothing(result: fanin.CompareResult) -> None:
    other = fanin.compare(SMALL, RACK, cc=["dctcp", "newreno"], seeds=3, trace_seed=2)
    assert numbers(other) == numbers(result)
    assert other.scenario_hash == result.scenario_hash


def test_the_command_says_what_python_says(result: fanin.CompareResult, fanin: Fanin) -> None:
    said = fanin("compare", SMALL, "--rack", RACK, "--cc", "newreno,dctcp", "--seeds", "3", "--json").json()
    assert said["ranking"] == result.to_dict()["ranking"]


def test_another_rack_is_another_scenario(result: fanin.CompareResult) -> None:
    other = fanin.compare(SMALL, RACK, cc=["newreno", "dctcp"], seeds=1, settings={"rack.buffer": "1000p"})
    assert other.scenario_hash != result.scenario_hash
    assert all(row.drops.value == 0 for row in other.ranking)


def test_the_jiffies_of_the_simulated_hosts_are_stated(result: fanin.CompareResult, tmp_path: Path) -> None:
    assert result.to_dict()["rack"]["hz"] == 250
    other = fanin.compare(SMALL, RACK, cc=["newreno"], seeds=1, settings={"stack.hz": 1000})
    assert other.to_dict()["rack"]["hz"] == 1000
    assert "HZ=1000" in write(other, tmp_path / "report.html").read_text()


def test_without_marking_what_needs_it_is_left_out_and_named() -> None:
    rack_without = {"rack.buffer": "100p"}
    text = RACK.read_text().replace('mark = "20p"\n', "")
    assert "mark" not in text.partition("[rack]")[2].partition("[")[0]
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        rack = Path(place) / "rack.toml"
        rack.write_text(text)
        asked = fanin.compare(SMALL, rack, cc=["dctcp"], seeds=1, settings=rack_without)
        assert any("dctcp cannot act on marks" in note for note in asked.notes)


def test_a_seed_gives_the_same_numbers_whatever_the_others_are(result: fanin.CompareResult) -> None:
    alone = fanin.compare(SMALL, RACK, cc=["newreno"], seeds=[2])
    same = result.runs.filter(cc="newreno", seed=2)
    assert alone.runs.equals(same)
    assert any("one seed" in note for note in alone.notes)


def test_the_report_and_the_tables_are_written_together(fanin: Fanin, tmp_path: Path) -> None:
    outcome = fanin("compare", SMALL, "--rack", RACK, "--cc", "newreno", "--seeds", "1", "--out", "results")
    assert outcome.code == 0, outcome.err
    assert "results/report.html" in outcome.err
    assert sorted(p.name for p in (tmp_path / "results").iterdir()) == [
        "compare.json",
        "report.html",
        "responses.parquet",
        "rounds.parquet",
        "runs.parquet",
        "stages.parquet",
        "trees.parquet",
    ]


def test_an_interrupted_comparison_keeps_what_was_done_and_says_what_is_missing(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "fanin",
        "compare",
        SMALL,
        "--rack",
        RACK,
        "--cc",
        "newreno,dctcp",
        "--seeds",
        "5000",
    ]
    process = subprocess.Popen(
        [*map(str, command), "--out", "results"],
        cwd=tmp_path,
        env={**os.environ, "FANIN_STORE": str(tmp_path / "store")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    # Some of its ten thousand runs are done when the store has more than the calibration leaves there.
    while entries(tmp_path / "store") < 150:
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130
    assert "interrupted: not run: " in err
    assert "newreno" in out
    assert (tmp_path / "results/report.html").exists()
    assert not [p.name for p in (tmp_path / "results").iterdir() if p.name.startswith(".")]


def test_captures_of_the_traced_seed_have_a_folder_per_algorithm(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    made = fanin.compare(SMALL, RACK, cc=["newreno", "gss+dctcp"], seeds=2, trace_seed=2, pcap=seen, pcap_at=["client"])
    files = sorted(file.relative_to(seen).as_posix() for file in seen.rglob("*.pcap"))
    assert files == ["gss+dctcp/client.pcap", "newreno/client.pcap"]
    found = fanin.trains(seen / "newreno/client.pcap")
    flows = made.flows.filter(cc="newreno", seed=2)
    responses = sum(c["to_client"]["unique_bytes"] for c in found.connections)
    assert responses == flows["bytes_delivered"].sum()


def test_a_single_server_and_a_starving_rack_are_warned_of(tmp_path: Path) -> None:
    alone = fanin.compare(CAPTURES / "zeek_http_no_crlf.pcap.gz", RACK, cc=["newreno"], seeds=1)
    told = [w for w in alone.warnings if not w.startswith(("the simulation of", "the capture was taken behind"))]
    assert [w[:17] for w in told] == ["5 responses are f", "one server alone "]
    assert "for p99, which is then the slowest of them: it takes 100 at least" in told[0]
    enough = fanin.compare(SMALL, RACK, cc=["newreno"], seeds=1, rank_by="p99_9", rank_of="responses")
    assert not any("few for p99.9" in w for w in enough.warnings)
    rack = tmp_path / "rack.toml"
    rack.write_text('[rack]\nrate = "10Gbps"\ndelay = "75us"\nbuffer = "100p"\n')
    starved = fanin.compare(SMALL, rack, cc=["trim", "cubic"], seeds=1)
    assert len([w for w in starved.warnings if w.startswith("`trim`: its delay threshold K of ")]) == 1
    assert starved.to_dict()["warnings"] == starved.warnings
    cured = fanin.compare(SMALL, rack, cc=["trim"], seeds=1, settings={"rack.buffer": "1000p"})
    assert not any(w.startswith("`trim`") for w in cured.warnings)
    assert (cured.ranking[0].completion_ms["p99"].value or 1e9) < (starved.ranking[1].completion_ms["p99"].value or 0)


def test_a_parameter_that_nothing_compared_has_is_refused_and_one_at_its_default_is_warned_of() -> None:
    def told(**settings: object) -> list[str]:
        named = {f"cc.{key}": value for key, value in settings.items()}
        found = fanin.compare(SMALL, RACK, cc=["cubic", "gss+cubic"], seeds=1, settings=named)
        return [str(w) for w in found.warnings if "changes nothing" in w]

    with pytest.raises(fanin.ScenarioError) as refused:
        told(trim_rtt_weight=0.5)
    assert str(refused.value) == (
        "command line `--set cc.trim_rtt_weight=0.5`: it changes nothing, since none of the algorithms compared has that parameter (trim has it)"
    )
    assert told(cubic_beta=0.7) == [
        "command line `--set cc.cubic_beta=0.7`: it changes nothing, that is the value without it"
    ]
    assert told(cubic_beta=0.8, gss_spread=True) == []


def test_a_value_that_its_algorithm_refuses_is_not_said_to_change_nothing() -> None:
    found = fanin.compare(SMALL, RACK, cc=["cubic", "trim"], seeds=1, settings={"cc.trim_k": 3})
    assert [failure.cc for failure in found.failures] == ["trim"]
    assert not any("changes nothing" in warning for warning in found.warnings)


def test_a_single_algorithm_may_be_named_as_in_a_run() -> None:
    assert [row.cc for row in fanin.compare(SMALL, RACK, cc="newreno", seeds=1).ranking] == ["newreno"]


def test_no_algorithm_that_can_be_run_is_an_error_of_each(tmp_path: Path) -> None:
    with pytest.raises(
        fanin.FaninError, match=r"no algorithm could be run: `cubic`: .*cubic_beta.*; `bic`: .*bic_beta"
    ):
        fanin.compare(SMALL, RACK, cc=["cubic", "bic"], seeds=1, settings={"cc.cubic_beta": 2, "cc.bic_beta": 2})


def test_a_rack_that_is_not_the_captures_is_warned_of_with_the_likeliest_reason(tmp_path: Path) -> None:
    seen = fanin.compare(SMALL, RACK, cc=["cubic"], seeds=1).measured
    assert seen is not None
    assert seen.responses == 1 or seen.completion_ms["p50"] is not None
    rack = tmp_path / "rack.toml"
    rack.write_text('[rack]\nrate = "100Mbps"\ndelay = "5ms"\nbuffer = "1000p"\n')
    far = fanin.compare(SMALL, rack, cc=["cubic"], seeds=1)
    assert "Likely the rack's `delay` is too long" in far.warnings[0]
    assert far.verdict.cautions[1] == far.warnings[0] or far.verdict.cautions[0] == far.warnings[0]


def test_without_names_only_what_a_host_can_run_is_compared() -> None:
    plain = fanin.compare(SMALL, RACK, seeds=1)
    names = {cc for row in plain.ranking for cc in (row.cc, *row.alike)}
    assert {"cubic", "reno", "dctcp", "bbr"} <= names
    assert not {"sack", "newreno"} & names
    given = fanin.compare(SMALL, RACK, cc=["dctcp"], seeds=1, baseline="bbr")
    assert given.verdict.baseline == "bbr"
    assert {row.cc for row in given.ranking} == {"bbr", "dctcp"}


def test_all_adds_models_in_a_section_of_their_own() -> None:
    everything = fanin.compare(SMALL, RACK, cc="all", seeds=1)
    candidate = [row.candidate for row in everything.ranking]
    assert candidate == sorted(candidate, reverse=True)
    assert not next(row for row in everything.ranking if "sack" in (row.cc, *row.alike)).candidate
    assert everything.verdict.best in {row.cc for row in everything.ranking if row.candidate}
