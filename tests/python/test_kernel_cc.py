"""Fanin's own congestion control inside the kernel's real TCP, and what else only a kernel can show. Needs a built kernel."""

from __future__ import annotations

import fanin
import polars as pl
import pytest
from fanin import _native
from fanin.errors import EngineError, ScenarioError
from fanin.kernel import cache
from fanin.kernel.engine import replay

from .test_kernel import INCAST, LONG

pytestmark = pytest.mark.usefixtures("kernel")

LOSSES = INCAST.replace("senders = 8", "senders = 16").replace('"100p"', '"50p"\nmark = "20p"')
"""Sixteen senders overflow fifty packets: recoveries and timeouts."""


@pytest.fixture(scope="module")
def kernel() -> cache.Kernel:
    try:
        return cache.find()
    except EngineError as why:
        pytest.skip(str(why))


@pytest.mark.parametrize("cc", ["reno", "gss+newreno", "trim", "dctcp", "swift"])
def test_windows_in_the_kernel_are_those_that_the_same_events_give_here(kernel: cache.Kernel, cc: str) -> None:
    for text in (LONG.replace("500ms", "200ms"), LOSSES):
        plan = _native.Scenario.from_text(text, "scenario.toml").changed(cc=cc).plan(1)
        ends, events, acks, difference = replay(plan, kernel, 1)
        assert difference is None
        assert ends >= 2
        assert events >= acks > 500


def test_fanins_reno_and_dctcp_do_on_linuxs_tcp_what_linuxs_own_do() -> None:
    for cc in ("reno", "dctcp"):
        linux, own = (fanin.run("long.toml", text=LONG, cc=cc, engine=e) for e in ("kernel", "kernel-fanin"))
        for frame in ("flows", "ports", "window", "queue"):
            assert getattr(own, frame).equals(getattr(linux, frame)), f"{cc}: {frame}"


def test_every_sender_of_the_registry_sends_on_linuxs_tcp() -> None:
    names = ["trim", "gss+cubic", "dcvegas", "l2dct", "bic", "swift", "tcprand+cubic", "hystart+newreno"]
    result = fanin.run("incast.toml", text=LOSSES, cc=names, engine="kernel")
    assert not result.failures
    done = result.messages.filter(pl.col("class") == "incast").group_by("cc").agg(pl.col("done_ms").is_not_null().sum())
    assert dict(done.iter_rows()) == dict.fromkeys(names, 16 * 3)


def test_a_parameter_reaches_the_algorithm_in_the_kernel() -> None:
    text = LONG.replace('name = "dctcp"', 'name = "tcprand+newreno"\nrand_rmin = "200B"')
    plain = fanin.run("long.toml", text=LONG, cc="newreno", engine="kernel")
    cut = fanin.run("long.toml", text=text, engine="kernel")
    sizes = [r.flows["bytes_sent"].sum() / r.flows["segments"].sum() for r in (plain, cut)]
    # Uniform on 200 to 1448 bytes of payload: 824 on average.
    assert sizes[0] > 1400
    assert 780 < sizes[1] < 850


def test_what_linux_has_itself_takes_no_parameters_of_fanins() -> None:
    text = LONG.replace('name = "dctcp"', 'name = "dctcp"\ndctcp_form = "rfc"\ndctcp_g = 0.125')
    with pytest.raises(ScenarioError, match=r"cc\.dctcp_.*kernel-fanin"):
        fanin.run("long.toml", text=text, engine="kernel")
    assert not fanin.run("long.toml", text=text, engine="kernel-fanin").failures


def test_what_acts_at_the_receiver_or_needs_deadlines_is_refused() -> None:
    for cc, why in (("ictcp", "receiver"), ("d2tcp", "deadlines"), ("ndp", "no `ndp`")):
        with pytest.raises(ScenarioError, match=rf"cc\.name.*{why}"):
            fanin.run("long.toml", text=LONG, cc=cc, engine="kernel")


def test_a_twin_runs_under_its_own_name() -> None:
    rust, twin = (fanin.run("long.toml", text=LONG, cc=cc, engine="kernel") for cc in ("trim", "trim@linux"))
    assert not rust.failures
    assert not twin.failures
    assert not rust.window["cwnd"].equals(twin.window["cwnd"])


def test_segmentation_offload_sends_bursts_into_the_queue() -> None:
    text = LONG.replace('rate = "100Mbps"', 'rate = "1Gbps"').replace('"400p"', '"60p"').replace("500ms", "200ms")
    found = []
    for tso in ("false", "true"):
        run = fanin.run("long.toml", text=text, cc="cubic", engine="kernel", settings={"stack.tso": tso == "true"})
        found.append(run.ports.filter(port="switch->client").row(0, named=True))
    assert found[1]["mean_queue_packets"] != found[0]["mean_queue_packets"]
    with pytest.raises(ScenarioError, match=r"stack\.tso"):
        fanin.run("long.toml", text=text, settings={"stack.tso": True})
