"""Scenarios from Python and from the command."""

from __future__ import annotations

from pathlib import Path

import fanin
import polars as pl
import pytest
from fanin.simulation import FRAMES

from .conftest import INCAST, Fanin


@pytest.fixture(scope="module")
def result() -> fanin.RunResult:
    measured = INCAST + '[measure]\nqueues = ["switch->client"]\nwindows = "*"\n'
    return fanin.run("incast.toml", text=measured, cc=["newreno", "dctcp"], seeds=2)


def test_every_frame_names_its_run(result: fanin.RunResult) -> None:
    for name in FRAMES:
        frame = getattr(result, name)
        assert frame.columns[:2] == ["cc", "seed"]
        assert frame.schema["seed"] == pl.UInt64
    assert result.runs.select("cc", "seed").rows() == [("newreno", 1), ("newreno", 2), ("dctcp", 1), ("dctcp", 2)]


def test_a_run_says_what_hz_its_hosts_had(result: fanin.RunResult) -> None:
    assert result.to_dict()["scenario"]["hz"] == result.hz == 250
    other = fanin.run("incast.toml", text=INCAST, cc="cubic", settings={"stack.hz": 1000})
    assert other.to_dict()["scenario"]["hz"] == other.hz == 1000


def test_bytes_are_conserved(result: fanin.RunResult) -> None:
    sent = result.messages.group_by("cc", "seed", maintain_order=True).agg(pl.col("bytes").sum())
    delivered = result.flows.group_by("cc", "seed", maintain_order=True).agg(pl.col("bytes_delivered").sum())
    assert sent["bytes"].to_list() == delivered["bytes_delivered"].to_list() == [4 * 64000] * 4


def test_times_of_a_message_are_in_order(result: fanin.RunResult) -> None:
    m = result.messages
    assert (m["release_ms"] <= m["first_send_ms"]).all()
    assert (m["first_send_ms"] < m["done_ms"]).all()
    assert (m["slowdown"] >= 1).all()


def test_the_trace_reaches_the_greatest_queue(result: fanin.RunResult) -> None:
    for cc, seed in result.runs.select("cc", "seed").rows():
        port = result.ports.filter(cc=cc, seed=seed, port="switch->client")
        traced = result.queue.filter(cc=cc, seed=seed)
        assert set(traced["port"].unique()) == {"switch->client"}
        assert traced["packets"].max() == port["max_queue_packets"][0]


def test_seeds_differ_and_repeat(result: fanin.RunResult) -> None:
    first, second = (result.messages.filter(cc="newreno", seed=s).drop("seed") for s in (1, 2))
    assert not first.equals(second)
    again = fanin.run("incast.toml", text=INCAST, cc="newreno", seed=2)
    assert again.messages.drop("seed").equals(second)


def test_a_setting_reaches_the_scenario() -> None:
    small = fanin.run("incast.toml", text=INCAST, seeds=1, settings={"topology.buffer": "25p"})
    large = fanin.run("incast.toml", text=INCAST, seeds=1, settings={"topology.buffer": "1000p"})
    assert small.ports["drops"].sum() > 0 == large.ports["drops"].sum()
    assert small.scenario_hash != large.scenario_hash


def test_seeds_that_make_no_difference_are_pointed_out() -> None:
    # Alone: where several begin at once, which comes first is drawn.
    fixed = INCAST.replace('jitter = "100us"\n', "").replace('mark = "20p"\n', "").replace("senders = 4", "senders = 1")
    result = fanin.run("incast.toml", text=fixed, cc=["newreno", "dctcp"], seeds=2)
    assert any("every seed gave the same results" in note for note in result.notes)
    assert result.warnings == ["`dctcp` needs switches that mark, and none does: set `topology.mark`"]
    assert not any("acts on marks" in note for note in result.notes), "it is said once"


def test_the_command_says_what_python_says(result: fanin.RunResult, fanin: Fanin, tmp_path: Path) -> None:
    (tmp_path / "incast.toml").write_text(INCAST)
    said = fanin("run", "incast.toml", "--cc", "newreno,dctcp", "--seeds", "2", "--json", "--out", "results").json()
    assert [r["packet_hops"] for r in said["runs"]] == result.runs["packet_hops"].to_list()
    stored = pl.read_parquet(tmp_path / "results/messages.parquet")
    assert stored.equals(result.messages)


def test_what_is_no_name_or_no_seed_is_said_so() -> None:
    with pytest.raises(
        fanin.AlgorithmError, match=r"`cc` has <class .*CongestionControl'>; it takes names of algorithms as text"
    ):
        fanin.run("incast.toml", text=INCAST, cc=fanin.CongestionControl)  # type: ignore[arg-type]
    with pytest.raises(fanin.AlgorithmError, match="no congestion control named `cubic,dctcp`"):
        fanin.run("incast.toml", text=INCAST, cc="cubic,dctcp")
    for seeds in ("3", 1.5, True):
        with pytest.raises(fanin.ScenarioError, match="they must be a number of seeds, or a list of whole numbers"):
            fanin.run("incast.toml", text=INCAST, seeds=seeds)  # type: ignore[arg-type]
    with pytest.raises(fanin.ScenarioError, match="must be different whole numbers"):
        fanin.run("incast.toml", text=INCAST, seeds=[1.5])  # type: ignore[list-item]


def test_results_are_written_to_a_folder_by_its_name(tmp_path: Path) -> None:
    fanin.run("incast.toml", text=INCAST, seed=1).write_files(str(tmp_path / "new" / "results"))
    assert pl.read_parquet(tmp_path / "new/results/runs.parquet").height == 1


def test_errors_are_of_their_class() -> None:
    with pytest.raises(fanin.ScenarioError):
        fanin.run("incast.toml", text=INCAST + "colour = 3\n")
    with pytest.raises(fanin.AlgorithmError):
        fanin.run("incast.toml", text=INCAST, cc="nosuch")
    with pytest.raises(fanin.CaptureError):
        fanin.trains("nosuch.pcap")
    assert issubclass(fanin.ScenarioError, ValueError)
    assert issubclass(fanin.CaptureError, fanin.FaninError)


def test_a_value_that_is_in_force_already_is_said_and_another_is_not() -> None:
    def told(**settings: object) -> list[str]:
        named = {key.replace("__", "."): value for key, value in settings.items()}
        found = fanin.run("incast.toml", text=INCAST, cc="trim", seeds=1, settings=named)
        return [warning for warning in found.warnings if warning.kind == "in-force"]

    assert told(topology__mark="20p") == [
        "command line `--set topology.mark=20p`: it changes nothing, that is the value without it"
    ]
    assert told(topology__mark="10p", cc__trim_k="upper") == []
    assert told(cc__trim_rtt_weight=0.25) == [
        "command line `--set cc.trim_rtt_weight=0.25`: it changes nothing, that is the value without it"
    ]
    # What is run more often is not the same.
    assert told(run__seeds=1) == []
