"""Before and after a change: two captures, two comparisons."""

from __future__ import annotations

import json
import random
from pathlib import Path

import fanin
import polars as pl
import pytest
from fanin import compare, diff
from fanin.disk.files import read_parquet

from .conftest import CAPTURES, HTTP, RACK, SMALL, Fanin


def test_the_same_responses_at_two_taps_are_no_change_and_other_traffic_is_one() -> None:
    assert fanin.diff(HTTP, CAPTURES / "http_onoff_8to1_client.pcap.gz").headline.endswith("no measurable change.")
    other = fanin.diff(HTTP, SMALL)
    assert any(change.real for change in other.changes)


def test_two_comparisons_are_held_against_each_other_seed_by_seed(tmp_path: Path) -> None:
    for name, buffer in (("shallow", "25p"), ("deep", "500p")):
        fanin.compare(SMALL, RACK, cc=["cubic"], seeds=4, settings={"rack.buffer": buffer}).write_files(tmp_path / name)
    found = fanin.diff(tmp_path / "shallow", tmp_path / "deep")
    p99 = next(c for c in found.changes if c.statistic == "p99")
    assert p99.ratio.value is not None
    assert p99.ratio.value < 1
    assert "the rack differs" in found.warnings
    back = fanin.diff(tmp_path / "deep", tmp_path / "shallow").changes
    assert next(c for c in back if c.statistic == "p99").ratio.value == pytest.approx(1 / p99.ratio.value)


def test_a_capture_and_a_folder_are_not_compared(tmp_path: Path) -> None:
    with pytest.raises(fanin.ScenarioError, match="give two captures or two folders"):
        fanin.diff(SMALL, tmp_path)
    with pytest.raises(fanin.ScenarioError, match="holds no comparison"):
        fanin.diff(tmp_path, tmp_path)


COMPARISON = {"capture": {"file": "a"}, "rack": {}, "version": "1", "answer": None}


@pytest.mark.parametrize(
    "told",
    [
        "5", "[" * 100_000, "{}", json.dumps(COMPARISON | {"capture": 3}), json.dumps(COMPARISON | {"answer": "x"}),
        json.dumps(COMPARISON | {"rank_of": {"a": 1}}), json.dumps(COMPARISON),
    ],
    ids=["number", "deep", "empty", "capture", "answer", "rank", "columns"],
)  # fmt: skip
def test_a_comparison_that_somebody_made_up_is_refused_in_a_sentence(told: str, tmp_path: Path, fanin: Fanin) -> None:
    (tmp_path / "compare.json").write_text(told)
    pl.DataFrame({"cc": ["cubic"], "seed": [1], "p50_ms": ["x"]}).write_parquet(tmp_path / "runs.parquet")
    done = fanin("diff", tmp_path, tmp_path)
    assert (done.code, done.err.count("\n"), "Traceback" in done.err) == (2, 1, False), done.err


def test_rows_over_which_polars_stumbles_are_no_rows(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "made.parquet"
    pl.DataFrame({"cc": ["a", "b"] * 50, "seed": list(range(100)), "p50_ms": [1.5] * 100}).write_parquet(file)
    whole, draw, refused = file.read_bytes(), random.Random(1), 0
    assert read_parquet(file, file)[1].height == 100
    for _ in range(10):
        made = bytearray(whole)
        for _ in range(10):
            made[draw.randrange(len(made))] = draw.randrange(256)
        file.write_bytes(made)
        try:
            read_parquet(file)
        except ValueError:
            refused += 1
    assert refused > 5
    assert capfd.readouterr().err == ""


def test_where_a_comparison_ranks_rounds_the_difference_is_of_rounds(tmp_path: Path, fanin: Fanin) -> None:
    ranked = [
        compare(SMALL, RACK, cc=["cubic"], seeds=4, settings={"rack.buffer": buffer}) for buffer in ("25p", "500p")
    ]
    for name, result in zip(("shallow", "deep"), ranked, strict=True):
        result.write_files(tmp_path / name)
    found = diff(tmp_path / "shallow", tmp_path / "deep")
    assert found.rank_of == ranked[0].rank_of == "requests"
    p99 = next(c for c in found.changes if c.statistic == "p99")
    assert p99.before_ms == pytest.approx(ranked[0].ranking[0].request_ms["p99"].value)
    assert p99.after_ms == pytest.approx(ranked[1].ranking[0].request_ms["p99"].value)
    single = next(
        c for c in diff(tmp_path / "shallow", tmp_path / "deep", rank_of="responses").changes if c.statistic == "p99"
    )
    assert single.before_ms == pytest.approx(ranked[0].ranking[0].response_ms["p99"].value)
    # Of fanin 0.2 columns call requests rounds.
    runs = tmp_path / "deep" / "runs.parquet"
    pl.read_parquet(runs).rename(lambda name: name.replace("request", "round")).write_parquet(runs)
    assert diff(tmp_path / "shallow", tmp_path / "deep").changes == found.changes
    done = fanin("diff", tmp_path / "shallow", tmp_path / "deep", "--rank-of", "trees")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "not both comparisons have request trees" in done.err


def test_where_captures_have_rounds_the_difference_is_of_rounds(fanin: Fanin) -> None:
    rounds = diff(SMALL, SMALL)
    assert rounds.rank_of == "requests"
    assert rounds.headline.startswith("The p99 request takes ")
    measured = compare(SMALL, RACK, cc=["cubic"], seeds=1).measured
    assert measured is not None
    assert next(c for c in rounds.changes if c.statistic == "p99").before_ms == measured.completion_ms["p99"]
    assert diff(SMALL, SMALL, rank_of="responses").headline.startswith("The p99 response takes ")
    # One has rounds, the other none: responses are what both have, and that is said.
    mixed = fanin("diff", HTTP, SMALL)
    assert "responses count before and requests after: judged by responses" in " ".join(mixed.err.split())
