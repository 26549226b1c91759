"""What must hold between two runs, whatever their numbers are.

That every key and every knob changes something, or is refused, is tested from the registries in ``crates/scenario/tests/every_key.rs`` and
``every_knob.rs``.
"""

from __future__ import annotations

import fanin
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .conftest import ROOT

# Everything that is a time or a rate, so that a tenth of it is another scale and not another scenario.
SCALED = """
[topology]
senders = {senders}
rate = "{rate}Mbps"
delay = "{delay}ns"
buffer = "{buffer}p"
[stack]
profile = "ns2"
min_rto = "{rto}us"
initial_rto = "{rto}us"
max_rto = "{ten_rto}us"
clock_granularity = "{tick}ns"
delack_timeout = "{ack}us"
[cc]
name = "newreno"
[[workload]]
kind = "incast"
bytes = "{kilobytes}KB"
[run]
duration = "{end}ms"
"""


def scaled(senders: int, buffer: int, kilobytes: int, tenth: bool) -> pl.DataFrame:
    small = 1 if tenth else 10
    text = SCALED.format(
        senders=senders, buffer=buffer, kilobytes=kilobytes, rate=1000 // small * 10, delay=2500 * small,
        rto=1000 * small, ten_rto=60_000 * small, tick=100 * small, ack=500 * small, end=1000 * small,
    )  # fmt: skip
    return fanin.run("scaled.toml", text=text, seed=1).messages


@settings(max_examples=15, deadline=None, derandomize=True)
@given(senders=st.integers(1, 24), buffer=st.integers(4, 60), kilobytes=st.integers(2, 120))
def test_ten_times_the_rate_and_a_tenth_of_every_time_is_the_same_run_ten_times_as_fast(
    senders: int, buffer: int, kilobytes: int
) -> None:
    slow, fast = (scaled(senders, buffer, kilobytes, tenth) for tenth in (False, True))
    assert slow["timeouts"].to_list() == fast["timeouts"].to_list()
    assert slow["completion_ms"].to_list() == pytest.approx([ms * 10 for ms in fast["completion_ms"]], rel=1e-6)


@pytest.mark.parametrize("cc", ["cubic", "dctcp", "bbr", "trim"])
def test_a_longer_run_begins_as_the_shorter_one(cc: str) -> None:
    file = ROOT / "examples/mixed.toml"
    short, long = (
        fanin.run(
            file,
            cc=cc,
            seed=3,
            settings={"run.duration": end, "run.stop_when_done": False, "measure.throughput": "1ms"},
        )
        for end in ("100ms", "200ms")
    )
    both = [r.throughput.filter(pl.col("time_ms") < 99.5).sort("time_ms", "flow") for r in (short, long)]
    assert both[0].height > 100
    assert both[0].equals(both[1])


def test_what_is_recorded_changes_no_result() -> None:
    file = ROOT / "examples/incast.toml"
    plain = fanin.run(file, cc="cubic", seed=1)
    traced = fanin.run(
        file, cc="cubic", seed=1, settings={"measure.queues": "*", "measure.windows": "*", "measure.packets": "*"}
    )
    assert plain.messages.equals(traced.messages)
    assert plain.flows.equals(traced.flows)
    assert traced.packets.height > 0


TWO_KINDS = """
[topology]
senders = 4
rate = "1Gbps"
delay = "10us"
buffer = "400p"
[stack]
profile = "linux"
[[workload]]
kind = "incast"
class = "small"
from = ["{a}", "{b}"]
bytes = "20KB"
start = "137us"
[[workload]]
kind = "incast"
class = "large"
from = ["{c}", "{d}"]
bytes = "330KB"
[run]
duration = "2s"
"""


@settings(max_examples=8, deadline=None, derandomize=True)
@given(order=st.permutations(["s1", "s2", "s3", "s4"]), cc=st.sampled_from(["cubic", "dctcp", "bbr"]))
def test_equal_hosts_may_change_places(order: list[str], cc: str) -> None:
    """Over seeds, since links of equal hosts draw who goes first at an instant; each seed draws anew for each link."""

    def by_class(a: str, b: str, c: str, d: str) -> dict[str, float]:
        runs = fanin.run("two.toml", text=TWO_KINDS.format(a=a, b=b, c=c, d=d), cc=cc, seeds=12).messages
        assert runs["done_ms"].null_count() == 0
        return {str(name): float(rows["completion_ms"].median()) for (name,), rows in runs.group_by("class")}  # type: ignore[arg-type]

    straight, swapped = by_class("s1", "s2", "s3", "s4"), by_class(*order)
    assert straight.keys() == swapped.keys() == {"small", "large"}
    for name, value in straight.items():
        assert swapped[name] == pytest.approx(value, rel=0.15), (name, order)


def test_a_run_may_be_split_in_two_that_do_not_meet() -> None:
    """Two bursts with an idle second between them are each the burst alone."""
    text = """
[topology]
senders = 8
rate = "1Gbps"
delay = "10us"
buffer = "60p"
[stack]
profile = "ns2"
"""
    burst = '[[workload]]\nkind = "incast"\nclass = "{name}"\nfrom = {hosts}\nbytes = "40KB"\nstart = "{at}ms"\n'
    first = burst.format(name="first", hosts='["s1", "s2", "s3"]', at=0)
    second = burst.format(name="second", hosts='["s4", "s5", "s6"]', at=3000)
    end = '[run]\nduration = "8s"\n'

    def took(*bursts: str) -> dict[str, list[float]]:
        runs = fanin.run("split.toml", text=text + "".join(bursts) + end, cc="sack", seed=5).messages
        return {str(name): sorted(rows["completion_ms"]) for (name,), rows in runs.group_by("class")}

    both, alone, later = took(first, second), took(first), took(second)
    assert both["first"] == pytest.approx(alone["first"], rel=1e-9)
    assert sum(both["second"]) == pytest.approx(sum(later["second"]), rel=0.02)
