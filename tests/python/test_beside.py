"""The tables of the testbed, and what is taken out of a job for it; no root, no run."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from fanin.errors import EngineError, ScenarioError
from fanin.runs.job import Document, Job, algorithms_of
from fanin.testbed import shims

from lab import beside

SCENARIO = """
[topology]
senders = 2
[stack]
profile = "linux"
[cc]
name = "{cc}"
{more}
[[workload]]
kind = "long"
[run]
duration = "1s"
"""


def job(cc: str, more: str = "", **changes: str) -> Job:
    settings = tuple((f"cc.{key}", value) for key, value in changes.items())
    return Job(Document(SCENARIO.format(cc=cc, more=more), "x.toml"), 3, None, settings)


def row(engine: str, **values: object) -> dict[str, object]:
    empty = dict.fromkeys(("goodput_mbps", "queue", "drops", "marks", "p50_ms", "p99_ms", "timeouts", "late", "why"))
    return {"case": "one", "cc": "reno", "engine": engine, **empty, **values}


def test_a_row_has_both_engines_or_says_why_not() -> None:
    figures = {"goodput_mbps": 96.51, "queue": 19.0, "drops": 0.0, "marks": 8072.0, "timeouts": 0.0}
    rows = [row("testbed", **figures, late=0.021), row("kernel", **{**figures, "queue": 18.84})]
    line = beside.beside_table(pl.DataFrame(rows, infer_schema_length=None))[-1]
    assert line == "| one | `reno` | 96.5 / 96.5 | 19 / 18.8 | 0 / 0 | 8072 / 8072 | - / - | - / - | 0 / 0 | 2.1% |"
    rows[0] = row("testbed", why="the run is not valid: it was late. Leave the machine to it")
    line = beside.beside_table(pl.DataFrame(rows, infer_schema_length=None))[-1]
    assert line.startswith("| one | `reno` | no result: the run is not valid: it was late |")


def test_the_kernel_runs_the_sender_and_the_library_the_rest(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shims, "library", lambda: tmp_path / "library.so")
    inner, manner = shims.beside(job("tcprand+cubic", 'rand_rmin = "700B"'))
    assert inner.cc == "cubic"
    assert manner.environment == {
        "LD_PRELOAD": str(tmp_path / "library.so"),
        "FANIN_TCPRAND_SEED": "4",
        "FANIN_TCPRAND_MIN": "700",
    }
    # What the command line says is above what the file says; 0 is the adaptive rule.
    _, manner = shims.beside(job("tcprand+cubic", 'rand_rmin = "700B"', rand_rmin="0B"))
    assert "FANIN_TCPRAND_MIN" not in manner.environment
    inner, manner = shims.beside(job("tcprand+cubic", rand_rmin="1KB"))
    assert (inner.settings, manner.environment["FANIN_TCPRAND_MIN"]) == ((), "1000")
    _, manner = shims.beside(job("tcprand+cubic", rand_v_tau="inf", rand_theta="50B", rand_no_rise="full"))
    named = {key.removeprefix("FANIN_TCPRAND_"): value for key, value in manner.environment.items()}
    assert (named["V_TAU"], named["THETA"], named["NO_RISE"], "MIN" in named) == ("inf", "50", "full", False)
    with pytest.raises(ScenarioError, match=r"cc.rand_cwnd_unit: Linux counts its window in packets"):
        shims.beside(job("tcprand+cubic", rand_cwnd_unit="bytes"))


def test_a_twin_is_asked_for_by_its_suffix_and_others_stay_as_they_are() -> None:
    inner, manner = shims.beside(job("dctcp@linux"))
    assert (inner.cc, manner.twin_only) == ("dctcp", True)
    plain = job("cubic")
    assert shims.beside(plain) == (plain, shims.PLAIN)


def test_a_library_that_is_not_built_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shims, "LIBRARY", "libfanin_none.so")
    with pytest.raises(EngineError, match=r"libfanin_none.so is not built; run `make linux`"):
        shims.beside(job("tcprand+cubic"))


def test_an_algorithm_that_a_setting_names_runs_like_one_of_the_command_line() -> None:
    for given in (job("iatcp"), job("reno", name="iatcp")):
        inner, manner = shims.beside(given)
        assert (algorithms_of(inner.plan()), manner.receiver) == ("reno", "iatcp")
    # Its parameter in any unit.
    assert "rate_mbps=500" in shims.beside(job("iatcp", iatcp_capacity="500Mbps"))[1].receiver_params
    inner, manner = shims.beside(job("reno", name="dctcp@linux"))
    assert (algorithms_of(inner.plan()), manner.twin_only) == ("dctcp", True)
