"""`python -m lab validate --random`: what is drawn both engines take, and how rows are judged."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from fanin import _native
from typer.testing import CliRunner

from lab.__main__ import app, cache, validation
from lab.validation.drawn import drawn
from lab.validation.runs import Done, Work
from lab.validation.trial import tried


def test_every_drawn_scenario_is_one_that_a_kernel_takes(tmp_path: Path) -> None:
    for number in range(1, 151):
        case = drawn(number, 7)
        plan = Work(case, case.cc[0], 1, 250, None).job().plan()
        assert _native.kernel_limit(plan, "rust", 250) is None, case.name
        folder = tmp_path / str(number)
        folder.mkdir()
        # What one host would need twice shows only here.
        _native.kernel_prepare(plan, folder, "rust", 250)


def done(model: list[float], kernel: list[float], timeouts: float = 0.0) -> Done:
    rows, classes = [], []
    for engine, values in (("sim", model), ("kernel", kernel)):
        for seed, value in enumerate(values):
            about = {"group": "random", "case": "c", "cc": "reno", "engine": engine, "seed": seed}
            measures = dict.fromkeys(("queue_p99", "drops", "marks", "retransmissions"), 0.0)
            rows.append({**about, **measures, "goodput_mbps": value, "queue": 10.0, "timeouts": timeouts})
            times = {"messages": None, "p50_ms": None, "p99_ms": None}
            classes.append({**about, **times, "class": "long", "goodput_mbps": value, "jain": 1.0})
    return Done(rows, {}, classes=classes)


@pytest.mark.parametrize(
    ("model", "kernel", "outside"),
    [
        ([90.0, 91.0, 92.0], [96.0, 97.0, 98.0], "goodput"),
        # One seed of a side among the other's makes no agreement.
        ([90.0, 91.0, 97.0], [96.0, 97.0, 98.0], "goodput"),
        ([96.0, 96.1, 96.2], [97.0, 97.1, 97.2], ""),
    ],
)
def test_a_row_is_outside_where_a_mean_breaks_a_bound(model: list[float], kernel: list[float], outside: str) -> None:
    rows = tried(done(model, kernel))
    assert rows["outside"].to_list() == [outside]
    assert (rows["standard_errors"][0] is None) is (outside == "")


def test_with_offload_drops_are_held_to_a_bound_too() -> None:
    runs = done([97.0, 97.0], [97.0, 97.0])
    for row in runs.rows:
        row["drops"] = {"sim": (90.0, 92.0), "kernel": (120.0, 122.0)}[row["engine"]][row["seed"]]
    assert tried(runs)["outside"].to_list() == [""]
    rows = tried(runs, bounds=validation.OFFLOADED)
    assert (rows["outside"][0], round(rows["standard_errors"][0], 1)) == ("drops", 21.2)


def test_goodput_says_nothing_where_timeouts_decide() -> None:
    assert tried(done([90.0, 91.0, 92.0], [96.0, 97.0, 98.0], timeouts=5.0))["outside"].to_list() == [""]


@pytest.mark.parametrize(
    ("words", "said"),
    [(["--from", "x"], "must be a whole number"), (["--quick"], "leave it out"), (["--cc", "reno"], "leave it out")],
)
def test_what_random_scenarios_do_not_take_is_said(words: list[str], said: str) -> None:
    result = CliRunner().invoke(app, ["validate", "--random", "2", *words])
    assert said in str(result.exception)


@pytest.mark.parametrize("whole", [False, True])
def test_a_recorded_table_is_replaced_when_all_runs_have_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    runs = done([96.0], [97.0])
    runs.complete = whole
    monkeypatch.setattr(cache, "find", lambda _: SimpleNamespace(version="6.12", hertz=250))
    monkeypatch.setattr(validation, "measured", lambda *_, **__: runs)
    words = ["validate", "--random", "1", "--out", str(tmp_path / "out"), "--results", str(tmp_path)]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0
    assert (tmp_path / "out" / "random.csv").exists()
    assert (tmp_path / "random.csv").exists() is whole
