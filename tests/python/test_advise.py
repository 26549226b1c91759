"""Advice is the best there is, or "keep what you have", and says how to try it."""

from __future__ import annotations

import itertools
import math
import os
import statistics
from pathlib import Path

import pytest
from fanin import _native
from fanin.advice import advise
from fanin.advice.knobs import Candidate, how_to, space
from fanin.advice.search import Evaluator
from fanin.errors import ScenarioError
from fanin.progress import silent
from fanin.runs.executor import Threads
from fanin.runs.job import Document
from fanin.runs.replay import ReplayJob, Traffic
from fanin.traffic import trains

from .conftest import HTTP, RACK, SMALL, Fanin

EVERY = bool(os.environ.get("FANIN_ADVISE_ALL"))

# A shallow or deep buffer, a slow or fast link, with and without K: the best differs among them.
RACKS = [
    f'[rack]\nrate = "{rate}"\ndelay = "{delay}"\nbuffer = "{buffer}"\n{mark}'
    for (rate, delay), buffer, mark in itertools.product(
        [("1Gbps", "25us"), ("10Gbps", "10us")], ["16p", "60p", "250p"], ["", 'mark = "10p"\n']
    )
][:10]
NAMES = ["cubic", "dctcp", "reno"]


@pytest.mark.parametrize("number", range(10) if EVERY else [0, 7])
def test_the_choice_is_within_5_percent_of_the_best_of_an_exhaustive_search(tmp_path: Path, number: int) -> None:
    import tomllib

    rack = tmp_path / "rack.toml"
    rack.write_text(RACKS[number])
    found = advise(SMALL, rack, cc=NAMES, budget_s=1000)
    base = _native.Rack.from_file(rack, [])

    base = ReplayJob(Document.of_rack(rack), Traffic(trains(SMALL).workload(None)), "", 0)
    every = Evaluator(base, Threads(), silent)
    candidates = space(NAMES, tomllib.loads(RACKS[number]), switch=True)
    few, many = range(2001, 2009), range(2001, 2049)
    every.scores(candidates, few, "all")
    costs = {c: every.cost(c, few, "p99") for c in candidates}
    assert math.isfinite(min(costs.values()))
    # A p99 that is one loss away from 0.4 or 5 ms needs more seeds: the near ones and the choice get them.
    near = [c for c in candidates if costs[c] <= 2 * min(costs.values()) or c == found.best]
    every.scores(near, many, "the near ones")
    best = min(near, key=lambda c: every.cost(c, many, "p99"))
    least = every.cost(best, many, "p99")
    pairs = zip(every.of(found.best, many), every.of(best, many), strict=True)
    longer = [chosen.cost("p99") - other.cost("p99") for chosen, other in pairs]
    # Longer by 5 % and by more than the seeds' own spread (95 %, one-sided) is a wrong choice.
    spread = 1.68 * statistics.stdev(longer) / math.sqrt(len(longer))
    assert statistics.fmean(longer) - spread <= 0.05 * least, (found.headline, longer, best.label, least)


def test_what_is_advised_is_better_and_the_advice_says_how_to_try_it_and_where_it_hurts(
    tmp_path: Path, fanin: Fanin
) -> None:
    rack = tmp_path / "rack.toml"
    rack.write_text('[rack]\nrate = "1Gbps"\ndelay = "25us"\nbuffer = "16p"\n')
    done = fanin("advise", SMALL, "--rack", rack, "--cc", "cubic,dctcp", "--budget", "300s", "--json")
    assert done.code == 0, done.err
    said = done.json()
    assert said["kind"] in ("change", "tail")
    assert said["gain"]["high"] < 1
    assert said["values"][said["goal"]]["best"] < said["values"][said["goal"]]["today"]
    assert any("onnection" in sentence for sentence in said["hurts"])
    assert len(said["coexistence"]) == 2
    assert len(said["confidence"]) == 2
    told = said["recommendation"]
    assert told["trial"][-1].startswith("ip route add ")
    assert told["undo"][0].startswith("ip route del ")
    text = fanin("advise", SMALL, "--rack", rack, "--cc", "cubic,dctcp", "--budget", "300s")
    assert said["headline"] in text.out


def test_keep_what_you_have_when_nothing_is_better(tmp_path: Path) -> None:
    # Nothing is ever dropped or marked: no algorithm and no floor matters.
    rack = tmp_path / "rack.toml"
    rack.write_text('[rack]\nrate = "100Gbps"\ndelay = "1us"\nbuffer = "10000p"\n[stack]\ninitial_window = 100\n')
    found = advise(SMALL, rack, cc=["cubic", "reno"], switch=False, budget_s=20)
    assert found.kind == "keep"
    assert found.headline.startswith("Keep cubic")
    assert found.recommendation is None


def test_without_switch_changes_no_candidate_sets_k() -> None:
    rack = {"rack": {"rate": "1Gbps", "delay": "25us", "buffer": "100p"}}
    assert any(dict(c.settings).get("rack.mark") for c in space(["dctcp"], rack, switch=True))
    assert space(["dctcp"], rack, switch=False) == []
    marked = {"rack": {**rack["rack"], "mark": "20p"}}
    assert all("rack.mark" not in dict(c.settings) for c in space(["dctcp"], marked, switch=False))


def test_a_threshold_leaves_room_in_a_buffer_a_fifth_smaller() -> None:
    # The advice is tried on such a rack too, where a threshold as large as the buffer is refused.
    rack = {"rack": {"rate": "1Gbps", "delay": "25us", "buffer": "100p"}}
    tried = {dict(c.settings).get("rack.mark") for c in space(["dctcp"], rack, switch=True)}
    assert "40p" in tried
    assert "80p" not in tried


def test_lines_name_the_settings_that_were_simulated() -> None:
    told = how_to(
        Candidate("dctcp", (("rack.mark", "10p"), ("stack.min_rto", "5ms"), ("stack.initial_window", "4"))),
        aggregator="10.0.0.1", now="cubic", mark="20p",
    )  # fmt: skip
    assert told is not None
    assert told.trial[-1].endswith("congctl dctcp rto_min 5ms initcwnd 4")
    assert any("10p" in need for need in told.needs)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--goal", "speed"), "the goal is 'speed'"),
        (("--budget", "soon"), "--budget soon"),
        (("--cc", "nosuch"), "nosuch"),
    ],
)
def test_wrong_options_are_said_in_a_sentence(fanin: Fanin, arguments: tuple[str, str], said: str) -> None:
    done = fanin("advise", SMALL, "--rack", RACK, *arguments)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert said in done.err


def test_a_goal_that_is_none_is_refused() -> None:
    with pytest.raises(ScenarioError):
        advise(HTTP, RACK, goal="p42")
