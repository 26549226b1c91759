"""Plans and trials on this machine's own kernel: what they change is taken back, however they end. Needs root."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fanin.linux import program
from fanin.settings.candidates import Candidate
from fanin.settings.lines import how_to

from .linux_host import CLIENT, CYCLES, MARKS, SERVER, available, line, refused, start, wait_until, within

pytest_plugins = ["tests.python.linux_host"]
pytestmark = MARKS


def test_a_trial_takes_everything_back_at_its_end_and_when_it_is_killed(namespaces: tuple[str, str]) -> None:
    sender, _ = namespaces
    trial = within(
        sender, sys.executable, "-m", "fanin", "linux", "trial", "10.99.0.1", "trim", "--for", "1s", "--json"
    )
    done = subprocess.run(trial, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["stopped"] is None

    assert "congctl" not in shown_routes(sender)
    assert "fanin_trim" not in available()
    trial[-2:] = ["60s"]
    child = subprocess.Popen(trial, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: "fanin_trim" in shown_routes(sender))
    child.kill()
    child.wait()
    wait_until(lambda: "fanin_trim" not in available())
    wait_until(lambda: "congctl" not in shown_routes(sender))


def shown_routes(namespace: str) -> str:
    shown = ["ip", "-n", namespace, "route"]
    return subprocess.run(shown, capture_output=True, text=True, check=True).stdout


def kernel_as(namespace: str) -> str:
    """What a plan with a twin may change: routes, TCP's sysctls, pins, modules, congestion controls, and what is kept."""
    shown = [
        f"ip -4 -n {namespace} route show table all",
        f"ip netns exec {namespace} sysctl -a 2>/dev/null | grep '^net.ipv4.tcp' | grep -v -E 'tcp_fastopen_key|_mem'",
        f"find {os.environ['FANIN_BPFFS']} -path '*/fanin*' | sort; find {os.environ['FANIN_STATE']} -name '*.json*' | sort",
        "cut -d' ' -f1 /proc/modules | sort",
    ]
    return subprocess.run(["sh", "-c", "; ".join(shown)], capture_output=True, text=True, check=True).stdout


def same_again(namespace: str, before: str) -> None:
    """The kernel frees what it had loaded in its own time."""
    for _ in range(500):
        if kernel_as(namespace) == before:
            return
        time.sleep(0.02)
    assert kernel_as(namespace).splitlines() == before.splitlines()


@pytest.fixture
def plan(namespaces: tuple[str, str], tmp_path: Path) -> list[str]:
    """The sender's command with a plan of TRIM, as `fanin compare --plan` writes it; its last word is the plan."""
    told = how_to(Candidate("trim"), aggregator="10.99.0.1", now="cubic", servers=["10.99.0.2"], rack={"rate": "1Gbps"})
    assert told is not None
    assert told.plan is not None
    file = tmp_path / "plan.toml"
    file.write_text(told.plan.toml("trim"))
    return within(namespaces[0], program.find(), "apply", str(file))


def test_a_plan_loads_its_twin_gives_it_to_connections_and_undo_takes_both_back(
    namespaces: tuple[str, str], plan: list[str]
) -> None:
    sender, receiver = namespaces
    undo = [*plan[:-2], "undo"]
    before = kernel_as(sender)
    for _ in range(2):
        done = subprocess.run(plan, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    changes = json.loads(done.stdout)["changes"]
    assert changes[0] == {"loaded": "trim", "device": None, "params": {"rate_pps": 81274}}
    assert [change["route"] for change in changes[1:]] == ["10.99.0.1"]
    server = start(within(receiver, sys.executable, "-c", SERVER))
    assert line(server) == "ready"
    client = start(within(sender, sys.executable, "-c", CLIENT, "0.5"))
    assert line(client) == "fanin_trim"
    assert int(line(client)) > 1_000_000
    for child in (client, server):
        child.communicate(timeout=10)
    file = Path(plan[-1])
    file.write_text(file.read_text().replace("81274", "81275"))
    assert "trim is loaded with other parameters" in refused(
        subprocess.run(plan, capture_output=True, text=True, check=False)
    )
    done = subprocess.run(undo, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, '{"undone":2}\n')
    same_again(sender, before)


def test_a_plan_that_fails_leaves_neither_twin_nor_route(namespaces: tuple[str, str], plan: list[str]) -> None:
    before = kernel_as(namespaces[0])
    file = Path(plan[-1])
    good = file.read_text()
    for wrong, said in (
        (good.replace('["10.99.0.1"]', '["10.99.0.1", "172.31.0.9"]'), "unreachable"),
        (good.replace("rate_pps", "rate"), "has no parameter `rate`"),
        (good.replace('twin = "trim"', 'twin = "trimm"'), "nothing to load for `trimm`"),
    ):
        file.write_text(wrong)
        assert said in refused(subprocess.run(plan, capture_output=True, text=True, check=False))
        same_again(namespaces[0], before)


def test_a_plan_with_a_twin_killed_at_any_moment_is_taken_back_byte_for_byte(
    namespaces: tuple[str, str], plan: list[str]
) -> None:
    """After each cycle all is as before: ``FANIN_CYCLES=1000`` for many."""
    sender, _ = namespaces
    before = kernel_as(sender)
    undo = [*plan[:-2], "undo"]
    killed = 0
    for cycle in range(CYCLES):
        for command in (plan, undo):
            child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            # From before it began to after it ended: a load takes some 60 ms.
            time.sleep(0.004 * (cycle % 20))
            child.kill()
            killed += child.wait() != 0
        done = subprocess.run(undo, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        same_again(sender, before)
    assert killed > CYCLES // 4


def test_ctrl_c_takes_a_trial_back_and_says_so(namespaces: tuple[str, str]) -> None:
    sender, _ = namespaces
    words = ["-m", "fanin", "linux", "trial", "10.99.0.1", "trim", "--for", "60s"]
    command = within(sender, sys.executable, *words)

    for end in (signal.SIGINT, signal.SIGTERM):
        child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
        wait_until(lambda: "fanin_trim" in shown_routes(sender), 30)
        # As a terminal does: to everything that runs there.
        os.killpg(child.pid, end)
        said = " ".join(child.communicate(timeout=30)[1].split())
        assert child.returncode == 130
        assert re.search(r"interrupted: taken back after [\d.]+ s, the twin and the route$", said), said
        assert "congctl" not in shown_routes(sender)
        assert "fanin_trim" not in available()


def test_a_trial_is_taken_back_at_once_when_round_trips_get_longer(namespaces: tuple[str, str]) -> None:
    sender, receiver = namespaces
    server = start(within(receiver, sys.executable, "-c", SERVER))
    assert line(server) == "ready"
    client = start(within(sender, sys.executable, "-c", CLIENT, "60"))
    line(client)
    words = ["-m", "fanin", "linux", "trial", "10.99.0.1", "dctcp", "--for", "120s", "--json"]
    trial = subprocess.Popen(
        within(sender, sys.executable, *words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )

    try:
        wait_until(lambda: "fanin_dctcp" in shown_routes(sender), 60)
        # A queue of 300 ms where there was none.
        slow = ["tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "2mbit", "burst", "16kb", "limit", "80kb"]
        if subprocess.run(within(sender, *slow), check=False, capture_output=True).returncode:
            pytest.skip("this kernel has no tbf to make a queue with")
        said, error = trial.communicate(timeout=60)
        assert trial.returncode == 0, error
        answer = json.loads(said)
        assert "the p99 RTT rose" in answer["stopped"]
        assert answer["seconds"] < 100
        assert "congctl" not in shown_routes(sender)
        assert "fanin_dctcp" not in available()
    finally:
        for child in (trial, client, server):
            child.kill()
            child.communicate()
