"""Fanin's own congestion control inside the kernel's real TCP, and what else only a kernel can show. Needs a built kernel."""

from __future__ import annotations

from pathlib import Path

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


@pytest.mark.parametrize("cc", ["reno", "gss+newreno", "trim", "dctcp", "swift"])
def test_windows_in_the_kernel_are_those_that_the_same_events_give_here(kernel: cache.Kernel, cc: str) -> None:
    for text in (LONG.replace("500ms", "200ms"), LOSSES):
        plan = _native.Scenario.from_text(text, "scenario.toml").changed(cc=cc).plan(1)
        ends, events, acks, difference = replay(plan, kernel, 1)
        assert difference is None
        assert ends >= 2
        assert events >= acks > 500


def test_fanins_reno_and_dctcp_do_on_linuxs_tcp_what_linuxs_own_do() -> None:
    # In thirty packets DCTCP reduces for marks, and halves again when some of the same window are lost.
    shallow = LONG.replace('"400p"', '"30p"')
    # Windows of one segment after timeouts, in a queue that marks each packet: reductions end with two.
    crowd = LONG.replace("500ms", "1500ms").replace("senders = 2", "senders = 40").replace('"400p"', '"60p"')
    for text, names in (
        (LONG, ("reno", "dctcp")),
        (shallow, ("reno", "dctcp")),
        (LOSSES, ("reno", "dctcp")),
        (crowd, ("dctcp",)),
    ):
        for cc in names:
            linux, own = (fanin.run("scenario.toml", text=text, cc=cc, engine=e) for e in ("kernel", "kernel-fanin"))
            for frame in ("flows", "messages", "ports", "window", "queue"):
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


@pytest.mark.parametrize("name", ['"tcprand+reno"\nrand_rmin = "200B"', '"tcprand+cubic"'])
def test_sizes_are_drawn_of_what_waits_and_hold_no_end_of_a_message_back(name: str) -> None:
    """Of the rest of a buffer they were smaller, 762 bytes in the mean; Nagle's rule held the last one back behind one that was drawn short."""
    text = INCAST.replace('name = "cubic"', f"name = {name}").replace("64KB", "128KB").replace('"100p"', '"200p"')
    runs = [fanin.run("incast.toml", text=text, seeds=2, engine=engine) for engine in ("sim", "kernel")]
    answers = [r.flows.filter(pl.col("class") == "incast") for r in runs]
    sizes = [a["bytes_sent"].sum() / a["segments"].sum() for a in answers]
    assert sizes[1] == pytest.approx(sizes[0], rel=0.03)
    slow = [r.messages.filter(pl.col("class") == "incast")["completion_ms"].quantile(0.9) for r in runs]
    assert slow[1] == pytest.approx(slow[0], rel=0.1)


def test_what_linux_has_itself_takes_no_parameters_of_fanins() -> None:
    text = LONG.replace('name = "dctcp"', 'name = "dctcp"\ndctcp_form = "rfc"\ndctcp_g = 0.125')
    with pytest.raises(ScenarioError, match=r"cc\.dctcp_.*kernel-fanin"):
        fanin.run("long.toml", text=text, engine="kernel")
    assert not fanin.run("long.toml", text=text, engine="kernel-fanin").failures


def test_what_is_no_tcp_is_refused() -> None:
    with pytest.raises(ScenarioError, match=r"cc\.name.*no `ndp`"):
        fanin.run("long.toml", text=LONG, cc="ndp", engine="kernel")


def test_a_twin_runs_under_its_own_name() -> None:
    rust, twin = (fanin.run("long.toml", text=LONG, cc=cc, engine="kernel") for cc in ("trim", "trim@linux"))
    assert not rust.failures
    assert not twin.failures
    assert not rust.window["cwnd"].equals(twin.window["cwnd"])


def test_segmentation_offload_sends_the_simulators_bursts() -> None:
    drops = {}
    for engine in ("sim", "kernel"):
        for tso in (False, True):
            run = fanin.run("incast.toml", text=INCAST, cc="bbr", engine=engine, settings={"stack.tso": tso})
            drops[engine, tso] = run.ports.filter(port="switch->client").row(0, named=True)["drops"]
    assert drops["kernel", True] > 1.1 * drops["kernel", False], drops
    assert drops["sim", True] == pytest.approx(drops["kernel", True], rel=0.1), drops


def test_bursts_that_no_card_cuts_take_one_place_of_a_queue_as_in_the_simulator() -> None:
    offered, lost = {}, {}
    for engine in ("sim", "kernel"):
        for whole in ("0B", "16KB"):
            on = {"stack.tso": True, "stack.tso_whole": whole}
            run = fanin.run("incast.toml", text=INCAST, cc="cubic", engine=engine, settings=on)
            port = run.ports.filter(port="switch->client").row(0, named=True)
            offered[engine, whole], lost[engine, whole] = port["offered_packets"], port["dropped_bytes"]
    for engine in ("sim", "kernel"):
        assert offered[engine, "16KB"] < 0.8 * offered[engine, "0B"], offered
    assert offered["sim", "16KB"] == pytest.approx(offered["kernel", "16KB"], rel=0.1), offered
    assert lost["sim", "16KB"] == pytest.approx(lost["kernel", "16KB"], rel=0.2), lost


SLOW_TIMERS = LOSSES.replace("senders = 16", "senders = 32").replace('"64KB"', '"8KB"')
SLOW_TIMERS = SLOW_TIMERS.replace('profile = "linux"', 'profile = "linux"\nmin_rto = "5ms"\ncommon_ticks = true')


def test_hz_decides_the_least_timeout_as_in_the_simulator() -> None:
    try:
        cache.find(1000)
    except EngineError as why:
        pytest.skip(str(why))
    usual = {}
    for name, hz in (("kernel", 250), ("kernel-hz1000", 1000)):
        for engine in ("sim", name):
            run = fanin.run(
                "incast.toml", text=SLOW_TIMERS, cc="reno", seeds=4, engine=engine, settings={"stack.hz": hz}
            )
            waited = run.messages.filter(pl.col("class") == "incast", pl.col("timeouts") == 1)
            usual[engine, hz] = waited["completion_ms"].median()
    # The floor of 5 ms is two jiffies of 4 ms, or five of 1 ms, and a timer is up to a jiffy late.
    assert usual["sim", 250] == pytest.approx(usual["kernel", 250], rel=0.02)
    assert usual["sim", 1000] == pytest.approx(usual["kernel-hz1000", 1000], rel=0.02)
    assert usual["kernel", 250] > 2 * usual["kernel-hz1000", 1000]
    with pytest.raises(ScenarioError, match=r"stack\.hz.*kernel-hz1000"):
        fanin.run("long.toml", text=LONG, engine="kernel", settings={"stack.hz": 1000})


HALF = Path(__file__).parents[1] / "data/cc/fanin_half.c"


def test_a_file_of_ones_own_runs_by_its_path_and_by_its_name(kernel: cache.Kernel, tmp_path: Path) -> None:
    other = tmp_path / "other.c"
    other.write_text(HALF.read_text())
    with pytest.raises(ScenarioError, match=r"cc\.name: the virtual kernel has no .*other\.c; run `fanin kernel build"):
        fanin.run("long.toml", text=LONG, cc=str(other), engine="kernel")
    if HALF.name not in [file.name for file in kernel.extra]:
        pytest.skip(f"needs `fanin kernel build --cc {HALF}`")
    reno = fanin.run("incast.toml", text=LOSSES, cc="reno", engine="kernel")
    by_path, by_name = (fanin.run("incast.toml", text=LOSSES, cc=cc, engine="kernel") for cc in (str(HALF), HALF.stem))
    assert by_path.messages["done_ms"].equals(reno.messages["done_ms"])
    assert by_name.messages["done_ms"].equals(reno.messages["done_ms"])
    settings = {"cc.divisor": 4}
    quarter = fanin.run("incast.toml", text=LOSSES, cc=HALF.stem, engine="kernel", settings=settings)
    assert not quarter.messages["done_ms"].equals(reno.messages["done_ms"])
    changed = tmp_path / HALF.name
    changed.write_text(HALF.read_text() + "/* another version */\n")
    with pytest.raises(ScenarioError, match="built with another version"):
        fanin.run("long.toml", text=LONG, cc=str(changed), engine="kernel")


def test_receivers_delay_acks_for_linuxs_vegas_as_they_do_in_the_simulator() -> None:
    counts = {}
    for engine in ("sim", "kernel"):
        ports = fanin.run("long.toml", text=LONG, cc="vegas", engine=engine).ports
        data, acks = (ports.filter(port=port)["packets"].item() for port in ("switch->client", "client->switch"))
        counts[engine] = acks / data
    # NS2's form of the algorithm asks for an ACK per packet, Linux's does not.
    assert counts["kernel"] < 0.65
    assert counts["kernel"] == pytest.approx(counts["sim"], rel=0.2)
