"""Hosts that cost something (``hosts`` of scenarios): what each engine takes of them, and what they do to results."""

import fanin
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
