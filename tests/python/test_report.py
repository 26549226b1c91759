"""What the report says of a real comparison."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import fanin
import fanin.report
import pytest
from fanin.ranking import RankingRow
from fanin.report import words
from fanin.stats import Estimate

from .conftest import RACK, SMALL


@pytest.fixture(scope="module")
def wide() -> fanin.CompareResult:
    """A rack on which nothing is lost: its buffer is changed on the command line."""
    return fanin.compare(SMALL, RACK, cc=["cubic", "dctcp"], seeds=2, settings={"rack.buffer": "2000p"})


def test_the_buffer_of_the_report_is_the_one_that_was_run(wide: fanin.CompareResult) -> None:
    html = fanin.report.page(wide)
    assert "buffer 2000p" in html
    assert "<code>rack.buffer = 2000p</code>" in html
    found = re.search(r'id="data">(.*?)</script>', html, re.DOTALL)
    assert found is not None
    assert json.loads(found[1])["bufferPackets"] == 2000
    assert wide.to_dict()["rack"]["settings"] == {"rack.buffer": "2000p"}


def test_the_port_to_the_aggregator_may_have_its_own_limits() -> None:
    own = fanin.compare(
        SMALL, RACK, cc=["dctcp"], seeds=1, settings={"rack.receiver_buffer": "300p", "rack.receiver_mark": "30p"}
    )
    found = re.search(r'id="data">(.*?)</script>', fanin.report.page(own), re.DOTALL)
    assert found is not None
    data = json.loads(found[1])
    assert (data["bufferPackets"], data["markPackets"]) == (300, 30)


def test_where_nothing_is_lost_the_answer_is_to_look_elsewhere(wide: fanin.CompareResult) -> None:
    told = " ".join(words.answer(wide).support)
    most = max(row.queue_max_packets.value or 0 for row in wide.ranking)
    assert f"never held more than {most:,.0f} of 2,000 packets: this rack does not slow this traffic down" in told


def test_where_something_is_lost_nothing_is_said_of_elsewhere() -> None:
    tight = fanin.compare(
        SMALL, RACK, cc=["cubic", "dctcp"], seeds=1, settings={"rack.buffer": "25p", "rack.mark": "5p"}
    )
    assert any(row.drops.value for row in tight.ranking)
    assert "this rack does not slow" not in " ".join(words.answer(tight).support)


def test_when_nothing_beats_what_the_hosts_run_the_sentences_are_about_that(wide: fanin.CompareResult) -> None:
    tied = replace(wide, ranking=[replace(row, tier=1) for row in wide.ranking])
    told = words.answer(tied)
    assert told.headline == "At p99, no TCP measurably beats cubic for this traffic on this rack."
    assert "dctcp is not measurably different from cubic over 2 seeds." in told.support
    assert "Switches that mark packets (ECN) would not change that." in told.support
    assert not any("If yours cannot be touched" in sentence for sentence in told.support)


def test_warnings_stand_at_the_top_and_code_is_set_as_code(wide: fanin.CompareResult) -> None:
    warned = replace(wide, warnings=["`trim`: <b>small</b> buffer"], notes=["set `stack.prompt_acks = false`"])
    html = fanin.report.page(warned)
    assert "<li><code>trim</code>: &lt;b&gt;small&lt;/b&gt; buffer</li>" in html
    assert "<p>set <code>stack.prompt_acks = false</code></p>" in html


def test_a_report_is_written_under_any_name(wide: fanin.CompareResult, tmp_path: Path) -> None:
    path = fanin.report.write(replace(wide, rack_path="rack\ufffd.toml"), tmp_path / "caf\udce9.html")
    assert "rack\ufffd.toml" in path.read_text()


def test_a_winner_that_rarely_times_out_is_not_advised_without_saying_so(wide: fanin.CompareResult) -> None:
    def row(cc: str, p99: float, p99_9: float, tier: int) -> RankingRow:
        base = next(row for row in wide.ranking if row.cc == "cubic")
        times = {**base.completion_ms, "p99": Estimate(p99), "p99_9": Estimate(p99_9)}
        return replace(base, cc=cc, tier=tier, rank=tier, completion_ms=times)

    rows = [row("sack", 3.0, 220.0, 1), row("cubic", 4.5, 125.0, 2), row("bbr", 5.0, 7.5, 3)]
    answer = words.answer(replace(wide, ranking=rows))
    assert answer.headline == (
        "sack brings the p99 response from 4.50 ms with cubic to 3.00 ms: 33% shorter, but one in a thousand takes 220 ms."
    )
    assert any("takes 220 ms with sack and 7.50 ms with bbr (cubic: 125 ms)." in said for said in answer.support)


def test_of_equal_algorithms_the_one_that_the_registry_names_first_comes_first() -> None:
    equal = fanin.compare(SMALL, RACK, cc=["d2tcp", "dctcp"], seeds=1)
    assert equal.ranking[0].completion_ms == equal.ranking[1].completion_ms, "without deadlines they are the same"
    assert [row.cc for row in equal.ranking] == ["dctcp", "d2tcp"]
