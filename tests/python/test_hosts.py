"""Hosts that cost something (``hosts`` of scenarios): what each engine takes of them, and what they do to results."""

import fanin
import polars as pl
import pytest
from fanin import _native

SCENARIO = """
hosts = HOSTS
[topology]
senders = 8
rate = "10Gbps"
delay = "5us"
buffer = "100p"
mark = "50p"
[stack]
profile = "linux"
[cc]
name = "CC"
[[workload]]
kind = "incast"
bytes = "256KB"
rounds = 4
request = "100B"
[run]
duration = "10s"
"""


def scenario(hosts: str, cc: str = "cubic") -> str:
    return SCENARIO.replace("HOSTS", hosts).replace("CC", cc)


def limit(hosts: str, whose: str = "rust", hertz: int | None = 250) -> tuple[str, str] | None:
    plan = _native.Scenario.from_text(scenario(hosts), "hosts.toml").plan(1)
    return _native.kernel_limit(plan, whose, hertz)


def test_the_virtual_kernel_refuses_the_time_of_processors_by_its_key() -> None:
    assert limit("{ tso = true }") is None
    assert limit('{ tso = true, gro = true, interrupt_delay = "8us", interrupt_frames = 128, napi_budget = 8 }') is None
    assert limit('{ gro = true, interrupt_gap = "50us", gro_flush_timeout = "20us" }') is None
    found = limit('"25g"')
    assert found is not None
    assert found[0] == "hosts.processors"
    found = limit('{ wakeup = "2us" }')
    assert found is not None
    assert found[0] == "hosts.wakeup"


def test_a_running_kernel_has_the_hosts_that_it_has() -> None:
    assert limit('"ideal"', "twin", None) is None
    found = limit("{ gro = true }", "twin", None)
    assert found is not None
    assert found[0] == "hosts"


@pytest.mark.parametrize("cc", ["cubic", "bbr"])
def test_real_hosts_make_an_incast_slower(cc: str) -> None:
    mean = {}
    for hosts in ('"ideal"', '"10g"'):
        mean[hosts] = fanin.run("hosts.toml", text=scenario(hosts, cc), seeds=3).messages["completion_ms"].mean()
    assert mean['"10g"'] > mean['"ideal"']


ONE = """
hosts = HOSTS
[topology]
senders = 1
rate = "10Gbps"
delay = "5us"
buffer = "400p"
[stack]
profile = "linux"
send_jitter = "0s"
[cc]
name = "reno"
[[workload]]
kind = "incast"
bytes = "28960B"
rounds = 1
request = "100B"
[run]
duration = "1s"
[measure]
packets = ["client->switch", "s1->switch"]
"""
CARD = 'interrupt_delay = "8us", interrupt_frames = 128'


def acknowledged(hosts: str, engine: str) -> list[int]:
    """What the client's packets without data acknowledge, in their order, each number once."""
    seen = fanin.run("one.toml", text=ONE.replace("HOSTS", hosts), engine=engine).packets
    of_client = (pl.col("port") == "client->switch") & (pl.col("payload") == 0) & (pl.col("event") == "accepted")
    numbers = seen.filter(of_client & (pl.col("time_ms") > 0.05)).sort("time_ms")["seq"]
    return numbers.unique(maintain_order=True).to_list()


@pytest.mark.usefixtures("kernel")
def test_a_segment_that_a_kernel_has_merged_is_acknowledged_once_as_the_simulator_does() -> None:
    merging, alone = f"{{ tso = true, gro = true, {CARD} }}", f"{{ tso = true, {CARD} }}"
    on_kernel, alone_there = acknowledged(merging, "kernel"), acknowledged(alone, "kernel")
    assert alone_there == acknowledged(alone, "sim") == [1448 * n for n in range(1, 21)]
    # The answer leaves a microsecond later there, so that the first interrupt may find a segment less.
    assert 3 <= len(on_kernel) <= len(acknowledged(merging, "sim")) + 1 <= 6


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize(
    "hosts",
    [
        f"{{ tso = true, gro = true, {CARD} }}",
        '{ gro = true, interrupt_gap = "50us", napi_budget = 2 }',
        '{ tso = true, gro = true, interrupt_delay = "5us", gro_flush_timeout = "30us" }',
    ],
)
def test_a_kernel_whose_cards_wait_and_merge_repeats_bit_by_bit(hosts: str) -> None:
    first, again = (fanin.run("hosts.toml", text=scenario(hosts), engine="kernel") for _ in range(2))
    assert first.messages.equals(again.messages)
    assert first.flows.equals(again.flows)
    assert first.ports.equals(again.ports)


@pytest.mark.usefixtures("kernel")
def test_each_way_through_a_card_takes_as_long_as_it_waits_on_both_engines() -> None:
    for engine in ("sim", "kernel"):
        took = {}
        for hosts in ('"ideal"', '{ interrupt_delay = "100us" }'):
            result = fanin.run("one.toml", text=ONE.replace("HOSTS", hosts), engine=engine)
            took[hosts] = result.messages.filter(pl.col("class") == "request")["completion_ms"][0]
        # The SYN, the SYN-ACK, and the ACK with the request.
        assert took['{ interrupt_delay = "100us" }'] - took['"ideal"'] == pytest.approx(0.3, abs=0.01), engine
