"""Congestion control written in Python."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import fanin
import pytest
from fanin.algorithms import find, version

from .conftest import INCAST, RACK, SMALL, Fanin

SLOW = '[topology]\nsenders = 2\n[stack]\nhandshake = false\n[[workload]]\nkind = "long"\nbytes = "300KB"\n[run]\nduration = "2s"\n'


class Fixed(fanin.CongestionControl):
    """A window that never changes."""

    parameters: ClassVar = {"window": 4.0, "loud": False}

    def on_ack(self, conn: object, ack: object) -> None:
        """Sets it."""
        self.cwnd = self.setup.parameters["window"]

    def on_congestion(self, conn: object, cause: str) -> None:
        """Nothing."""


def fixed(name: str, **methods: object) -> str:
    """Registers a version of it with other methods."""
    return fanin.register(type(name, (Fixed,), methods), name)


def run(cc: str, **settings: object) -> fanin.RunResult:
    return fanin.run("two.toml", text=SLOW, cc=cc, settings={k.replace("__", "."): v for k, v in settings.items()})


def test_a_parameter_is_declared_by_the_class_and_set_by_the_scenario() -> None:
    name = fixed("settable")
    assert run(name).flows["max_cwnd"].to_list() == [4.0, 4.0]
    assert run(name, cc__window=7).flows["max_cwnd"].to_list() == [7.0, 7.0]
    with pytest.raises(fanin.ScenarioError, match="`settable` has no such parameter; it has loud, window"):
        run(name, cc__widow=7)


def test_pacing_spreads_packets() -> None:
    def control(self: Fixed) -> tuple[float, float, float]:
        return 50.0, 1.0, 10e6

    paced = run(fixed("paced", control=control))
    # 300 KB with headers at 10 Mbps take a quarter of a second.
    assert 240 < paced.messages["completion_ms"].min() < 260  # type: ignore[operator]


def test_segment_sizes_and_the_gate_are_the_classes_where_it_says_so() -> None:
    small = run(fixed("small", segment_size=lambda self, conn: 500))
    assert small.flows["segments"].to_list() == [600, 600]
    late = run(fixed("late", before_send=lambda self, conn, since: None if conn.now >= 0.5 else 0.5))
    assert late.flows["first_send_ms"].to_list() == pytest.approx([500.0, 500.0])


@pytest.mark.parametrize("when", [0.0, 1e-15, 0.25])
def test_a_time_that_has_passed_holds_nothing(when: float) -> None:
    held = run(fixed("held", before_send=lambda self, conn, since: when))
    assert held.flows["first_send_ms"].to_list() == pytest.approx([when * 1000] * 2)
    assert held.runs["complete"].to_list() == [True]


def test_needs_are_answered() -> None:
    seen: list[tuple[float, object]] = []

    def on_ack(self: Fixed, conn: fanin._native.Conn, ack: fanin._native.Ack) -> None:
        seen.append((conn.uniform, ack.rate))

    run(fixed("needy", needs={"randomness", "rate_samples"}, on_ack=on_ack))
    assert len({u for u, _ in seen}) > 100
    assert any(rate is not None for _, rate in seen)
    with pytest.raises(fanin.AlgorithmError, match="`needs` has `everything`; there are"):
        run(fixed("greedy", needs={"everything"}))


def raises(self: Fixed, conn: object, ack: object) -> None:
    raise RuntimeError("no idea\nwhat to do")


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        (
            {"on_ack": raises},
            r"`wrong`: RuntimeError: no idea; what to do \(in raises, .*test_algorithms.py, line \d+\)",
        ),
        ({"control": lambda self: (0.5, 1.0, None)}, "cwnd of wrong is 0.5; it must be at least 1 packet and finite"),
        ({"control": lambda self: (float("nan"), 1.0, None)}, "cwnd of wrong is NaN"),
        ({"control": lambda self: (2.0, -1.0, None)}, "ssthresh of wrong is -1; it must not be negative"),
        ({"control": lambda self: (2.0, 2.0, 0.0)}, "pacing of wrong is 0; it must be at least 1 bit/s, or None"),
        ({"control": lambda self: 2.0}, r"control\(\) gave 2.0; it must be \(cwnd, ssthresh, pacing\)"),
        ({"before_send": lambda self, conn, since: "later"}, r"before_send\(\) must give None to go on"),
        ({"before_send": lambda self, conn, since: -1.0}, r"before_send\(\) must give None to go on"),
        ({"segment_size": lambda self, conn: -1}, r"segment_size\(\) gave -1; it must be a whole number of bytes"),
        ({"segment_size": lambda self, conn: 0}, r"segment_size\(\) gave 0; it must be a whole number of bytes"),
        ({"segment_size": lambda self, conn: None}, r"segment_size\(\) gave None; it must be a whole number of bytes"),
        ({"__init__": lambda self: None}, "TypeError"),
        ({"recovery": "prayer"}, "`recovery` is `prayer`; there are reno, newreno, sack, fack, rack"),
        ({"parameters": {"window": "wide"}}, "`parameters` has window = 'wide'; a default is a number, True or False"),
        ({"parameters": ["window"]}, "`parameters` must be a dict of names and defaults"),
    ],
)
def test_a_fault_in_python_is_one_clear_error(methods: dict[str, object], message: str) -> None:
    with pytest.raises((fanin.AlgorithmError, fanin.ScenarioError), match=message) as caught:
        run(fixed("wrong", **methods))
    assert "\n" not in str(caught.value)
    # It costs one run, not the process.
    assert run("newreno").runs["complete"].to_list() == [True]


def test_the_cause_of_a_fault_is_kept() -> None:
    with pytest.raises(fanin.AlgorithmError) as caught:
        run(fixed("wrong", on_ack=raises))
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_names_that_cannot_be_are_refused() -> None:
    for name in ("newreno", "a+b", "a,b", "a b"):
        with pytest.raises(fanin.AlgorithmError):
            fanin.register(Fixed, name)
    with pytest.raises(fanin.AlgorithmError, match="is no subclass of"):
        fanin.register(int)  # type: ignore[arg-type]


def test_a_changed_class_is_another_scenario() -> None:
    name = fixed("versioned")
    before = run(name).scenario_hash
    assert run(name).scenario_hash == before
    fixed("versioned", on_undo=lambda self, conn: None)
    assert run(name).scenario_hash != before
    assert version(Fixed) == version(Fixed)


def test_a_version_is_the_same_in_every_process(tmp_path: Path) -> None:
    (tmp_path / "sets.py").write_text(
        "import fanin\nclass Sets(fanin.CongestionControl):\n"
        "    def on_ack(self, conn, ack):\n        return 'a' in {'a', 'b', 'c', 'd'}\n"
        "    def on_congestion(self, conn, cause): pass\n"
    )
    words = [sys.executable, "-c", "import sets; from fanin.algorithms import version; print(version(sets.Sets))"]
    told = [
        subprocess.run(
            words, cwd=tmp_path, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in "123"
    ]
    assert len(set(told)) == 1


def test_the_same_seed_gives_the_same_results_on_any_thread() -> None:
    name = fixed(
        "random", needs={"randomness"}, on_ack=lambda self, conn, ack: setattr(self, "cwnd", 1 + 9 * conn.uniform)
    )
    a, b = (fanin.run("incast.toml", text=INCAST, cc=name, seeds=4) for _ in range(2))
    assert a.messages.equals(b.messages)
    assert a.messages.filter(seed=1).drop("seed").equals(a.messages.filter(seed=2).drop("seed")) is False


def test_the_command_finds_a_class_by_its_module(fanin: Fanin, tmp_path: Path) -> None:
    (tmp_path / "two.toml").write_text(SLOW)
    (tmp_path / "mine.py").write_text(
        "import fanin\n"
        "class Ten(fanin.CongestionControl):\n"
        "    def on_ack(self, conn, ack):\n        self.cwnd = 10\n"
        "    def on_congestion(self, conn, cause):\n        raise ValueError(cause)\n"
    )
    done = fanin("run", "two.toml", "--cc", "py:mine.Ten", "--json")
    assert done.code == 0, done.err
    assert [flow["max_cwnd"] for flow in done.json()["runs"][0]["flows"]] == [10.0, 10.0]
    failed = fanin("run", "two.toml", "--cc", "py:mine.Ten", "--set", "topology.buffer=3p")
    assert failed.code == 2
    assert failed.err.startswith("fanin: error: `py:mine.Ten`: ValueError: ")
    assert failed.err.count("\n") == 1
    for name, said in (
        ("py:mine.Eleven", "module mine has no class Eleven"),
        ("py:other.Ten", "there is no module other: it is looked for in the current folder and where Python finds"),
    ):
        done = fanin("run", "two.toml", "--cc", name)
        assert (done.code, said in done.err) == (2, True), done.err


def test_one_class_that_fails_costs_its_own_results_and_no_others(fanin: Fanin, tmp_path: Path) -> None:
    (tmp_path / "two.toml").write_text(SLOW)
    (tmp_path / "mine.py").write_text(
        "import fanin\n"
        "class Bad(fanin.CongestionControl):\n"
        "    def on_ack(self, conn, ack):\n        raise ValueError('no')\n"
        "class Worse(Bad):\n    pass\n"
    )
    words = (
        "run",
        "two.toml",
        "--cc",
        "newreno,py:mine.Bad,cubic",
        "--seeds",
        "2",
        "--out",
        "results",
        "--pcap",
        "seen",
    )
    done = fanin(*words, "--json")
    assert done.code == 1
    assert [(r["cc"], r["seed"]) for r in done.json()["runs"]] == [
        ("newreno", 1),
        ("newreno", 2),
        ("cubic", 1),
        ("cubic", 2),
    ]
    assert [f["cc"] for f in done.json()["failures"]] == ["py:mine.Bad"]
    assert done.json()["missing"] == []
    told = [line for line in done.err.splitlines() if "mine.Bad" in line]
    assert len(told) == 1
    assert told[0].startswith("error: `py:mine.Bad` is left out: ValueError: no (in on_ack, ")
    assert (tmp_path / "results/flows.parquet").exists()
    assert sorted(p.name for p in (tmp_path / "seen").iterdir()) == ["cubic-1", "cubic-2", "newreno-1", "newreno-2"]

    done = fanin("run", "two.toml", "--cc", "py:mine.Bad,py:mine.Worse", "--out", "none")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith("fanin: error: no algorithm could be run: `py:mine.")
    assert not (tmp_path / "none").exists()

    done = fanin("compare", SMALL, "--rack", RACK, "--cc", "newreno,py:mine.Bad", "--seeds", "1", "--out", "both")
    assert done.code == 1
    assert "error: `py:mine.Bad` is not ranked: ValueError: no (in on_ack, " in done.err
    assert (tmp_path / "both/report.html").exists()


def test_the_list_says_how_to_use_a_class_of_ones_own(fanin: Fanin) -> None:
    said = fanin("list", "cc")
    assert "--cc py:FILE.CLASS" in said.err
    assert "py:" not in fanin("list", "queue").err


def test_an_unregistered_name_is_no_class() -> None:
    assert find("nobody") is None
