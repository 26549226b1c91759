"""The plan for `fanin-host` says what the printed lines say."""

from __future__ import annotations

import tomllib

import pytest
from fanin.settings.candidates import Candidate
from fanin.settings.lines import Recommendation, how_to


def told(cc: str, settings: tuple[tuple[str, str], ...] = ()) -> Recommendation:
    found = how_to(
        Candidate(cc, settings),
        aggregator="10.0.0.1",
        now="cubic",
        servers=["10.0.0.2", "10.0.0.3"],
        rack={"mark": "20p"},
    )
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("cc", "settings"),
    [("bbr", ()), ("cubic", (("stack.min_rto", "5ms"),)), ("dctcp", ()), ("cubic", (("stack.initial_window", "4"),))],
)
def test_the_plan_has_the_options_of_the_printed_lines_at_the_same_ends(
    cc: str, settings: tuple[tuple[str, str], ...]
) -> None:
    lines = told(cc, settings)
    assert lines.plan is not None
    plan = tomllib.loads(lines.plan.toml(cc))
    ends = {"servers": lines.trial, "aggregator": lines.at_aggregator}
    for end, typed in ends.items():
        assert (end in plan) == bool(typed)
        if typed:
            words = " ".join(f"{name} {value}" for name, value in plan[end]["route"].items())
            assert f" {words} " in typed[-1]
            assert all(peer in typed[-1] for peer in plan[end]["peers"])
    assert plan["servers"]["hosts"] == ["10.0.0.2", "10.0.0.3"]


@pytest.mark.parametrize(
    ("cc", "settings", "param"),
    [
        ("trim", (("cc.trim_k", "fixed"), ("cc.trim_k_fixed", "0.2ms")), "k_us=200"),
        ("gss+cubic", (), ""),
        ("d2tcp", (), ""),
    ],
)
def test_a_plan_loads_the_twin_of_the_printed_lines_at_each_end_whose_routes_name_it(
    cc: str, settings: tuple[tuple[str, str], ...], param: str
) -> None:
    lines = told(cc, settings)
    assert lines.plan is not None
    plan = tomllib.loads(lines.plan.toml(cc))
    ends = {"servers": lines.trial, "aggregator": lines.at_aggregator}
    for end, typed in ends.items():
        words = [f"fanin-host load {cc}", *([f"--param {param}"] if param else [])]
        loads = " ".join(words) in typed
        assert loads == (end == "servers" or cc == "d2tcp")
        assert (plan.get(end, {}).get("twin") == cc) == loads
        if loads:
            assert plan[end]["params"] == {"k_us": 200} if param else "params" not in plan[end]
            assert plan[end]["route"]["congctl"] in typed[-1].split()


def test_a_library_in_front_of_the_application_has_no_plan() -> None:
    assert told("tcprand+cubic").plan is None


def test_a_title_cannot_end_its_text() -> None:
    plan = told("bbr").plan
    assert plan is not None
    title = 'a"\n[servers]\nhosts = ["x"]\x7f'
    assert tomllib.loads(plan.toml(title))["title"] == title
