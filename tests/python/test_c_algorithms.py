"""Congestion control in C: the twins by name, and a user's own file, as the kernel takes it."""

from __future__ import annotations

import shutil
from pathlib import Path

import fanin
import pytest

from .conftest import TWINS

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")

SCENARIO = """
[topology]
kind = "dumbbell"
pairs = 2
rate = "1Gbps"
delay = "20us"
bottleneck_rate = "100Mbps"
[stack]
profile = "linux"
[[workload]]
kind = "long"
[run]
duration = "300ms"
"""

HALF_RENO = """
#include <linux/module.h>
#include <net/tcp.h>

static int factor __read_mostly = 2;
module_param(factor, int, 0644);

static u32 half_ssthresh(struct sock *sk)
{
	return max(tcp_snd_cwnd(tcp_sk(sk)) / factor, 2U);
}

static struct tcp_congestion_ops half = {
	.ssthresh = half_ssthresh, .cong_avoid = tcp_reno_cong_avoid, .undo_cwnd = tcp_reno_undo_cwnd,
	.owner = THIS_MODULE, .name = "half",
};
static int __init half_register(void) { return tcp_register_congestion_control(&half); }
module_init(half_register);
MODULE_LICENSE("GPL");
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "scenario.toml"
    path.write_text(SCENARIO)
    return path


def outcome(scenario: Path, cc: str, **settings: float) -> list[tuple[int, ...]]:
    """What every flow delivered and retransmitted: differs when the windows do."""
    run = fanin.run(scenario, cc=cc, settings={f"cc.{key}": value for key, value in settings.items()})
    return run.flows.select("bytes_delivered", "retransmissions").rows()


def test_a_file_of_ones_own_runs_and_its_parameters_reach_it(scenario: Path, tmp_path: Path) -> None:
    path = tmp_path / "half.c"
    path.write_text(HALF_RENO)
    own = outcome(scenario, str(path))
    assert own == outcome(scenario, "reno")
    assert own != outcome(scenario, str(path), factor=4)


def test_every_twin_runs(scenario: Path) -> None:
    for name in TWINS:
        run = fanin.run(scenario, cc=f"{name}@linux")
        assert run.flows["bytes_delivered"].sum() > 0, name


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "max(tcp_snd_cwnd(tcp_sk(sk)) / factor, 2U)",
            "tcp_mystery(sk)",
            "line 10: `tcp_mystery` is not among the kernel's helpers",
        ),
        ("<net/tcp.h>", "<net/mystery.h>", "line 3: the header net/mystery.h is not among those that fanin offers"),
        ("factor, 2U", "factor 2U", "line 10: the C compiler says:"),
        (
            "module_init(",
            '__asm__(".incbin \\"/nowhere\\"");\nmodule_init(',
            "the C compiler says: file not found: /nowhere",
        ),
        ("module_init(half_register);", "", "it has no module_init(), which registers its tcp_congestion_ops"),
        (".undo_cwnd = tcp_reno_undo_cwnd,", "", "lacks what the kernel demands: ssthresh, undo_cwnd"),
    ],
)
def test_a_file_that_cannot_be_used_is_answered_in_a_sentence(
    scenario: Path, tmp_path: Path, old: str, new: str, message: str
) -> None:
    path = tmp_path / "wrong.c"
    assert old in HALF_RENO
    path.write_text(HALF_RENO.replace(old, new))
    with pytest.raises(fanin.FaninError, match=r"wrong\.c") as error:
        fanin.run(scenario, cc=str(path))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_without_a_compiler_it_says_what_to_install(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "half.c"
    path.write_text(HALF_RENO)
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(fanin.FaninError, match=r"`no-such-compiler` does not start .* install a C compiler"):
        fanin.run(scenario, cc=str(path))


def test_an_unknown_twin_lists_the_twins(scenario: Path) -> None:
    with pytest.raises(fanin.FaninError, match="the twins are dctcp@linux"):
        fanin.run(scenario, cc="cubik@linux")
