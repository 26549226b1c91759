"""Before and after a change: two captures, two comparisons."""

from __future__ import annotations

from pathlib import Path

import fanin
import pytest

from .conftest import CAPTURES, HTTP, RACK, SMALL


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
    assert "the rack differs" in found.remarks
    back = fanin.diff(tmp_path / "deep", tmp_path / "shallow").changes
    assert next(c for c in back if c.statistic == "p99").ratio.value == pytest.approx(1 / p99.ratio.value)


def test_a_capture_and_a_folder_are_not_compared(tmp_path: Path) -> None:
    with pytest.raises(fanin.ScenarioError, match="give two captures or two folders"):
        fanin.diff(SMALL, tmp_path)
    with pytest.raises(fanin.ScenarioError, match="holds no comparison"):
        fanin.diff(tmp_path, tmp_path)
