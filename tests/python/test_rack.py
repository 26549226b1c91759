"""The rack that a capture speaks for, and what a comparison does with it."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import fanin
import fanin.report
import polars as pl
import pytest
from fanin.calibration import Calibrated, Shown, as_calibrated, calibrate
from fanin.calibration.search import MOST_APART
from fanin.capture.traffic import Queued, QueueLimit
from fanin.capture.vantage import paused_share, pauses
from fanin.rack.proposal import GUESSED_RATE, RackProposal, _by_pairs, _rate
from fanin.rack.queue import Finding, Losses, as_bps, buffer, waited

from . import known_racks, spoilt
from .conftest import CAPTURES, HTTP, RACK, ROOT, SMALL, Fanin

CLIENT_SIDE = CAPTURES / "http_onoff_8to1_client.pcap.gz"
NGINX = Path(__file__).parents[2] / "data/captures/nginx_16to1_before.pcap.gz"


def value(proposal: RackProposal, key: str) -> str | None:
    return next(f.value for f in proposal.findings if f.key == f"rack.{key}")


@pytest.mark.parametrize(
    "capture", [HTTP, CLIENT_SIDE, SMALL, CAPTURES / "iperf3_ipv6_nsec.pcap.gz"], ids=lambda p: p.name
)
def test_the_rate_of_the_bottleneck_is_found_wherever_the_tap_is(capture: Path) -> None:
    # All four went through 1 Gbit/s (tests/data/pcap/README.md).
    assert value(fanin.propose_rack(capture), "rate") == "1Gbps"


def test_what_was_sent_again_because_packets_came_out_of_order_is_not_expected_of_a_rack() -> None:
    # 300 Mbps by a token bucket; nothing was lost (tests/data/services/README.md). Held against a replay, the repetitions ask for a smaller buffer or
    # another rate, and no rack gives the times that were measured.
    result = fanin.compare(SERVICES / "reordered.pcap.gz", cc=["cubic"], seeds=2, keep=False)
    assert result.measured is not None
    assert result.calibration is not None
    assert result.measured.retransmissions > 50
    assert result.measured.overtaken > 0.9 * result.measured.retransmissions
    assert result.calibration.reproduced
    assert 'rate = "300Mbps"' in result.rack_text
    assert sum("behind later packets" in warning for warning in result.warnings) == 1
    assert not any("not what the capture measured" in warning for warning in result.warnings)


@pytest.mark.parametrize("delivered", [786304000, 781000000])
@pytest.mark.parametrize(
    ("share", "fastest", "rate", "high"),
    [(0.21, 3444311716, "1Gbps", None), (0.5, 820e6, "780Mbps", "2Gbps"), (0.7, 3444311716, "780Mbps", "3.4Gbps")],
)
def test_only_trains_that_agree_speak_for_a_shaped_link(
    share: float, fastest: float, rate: str, high: str | None, delivered: int
) -> None:
    # Twelve senders at 1 Gbps, seen as they arrive at the switch: the most frequent of many rates is no link's.
    link = {
        "receiver": "10.0.0.1", "samples": 1778, "rate_bps": 779898657, "share": share,
        "quartiles_bps": [779898657, fastest], "busiest_bps": 891144000, "delivered_bps": delivered, "merged_packets": 0,
    }  # fmt: skip
    found = _rate(link, "10.0.0.1")[1]
    assert found.value == rate
    # What passed bounds a guess from below; only where most trains agree is it measured, within its own bounds.
    assert (found.certainty, found.low, found.high) == ("bounded", f"{round(0.085 * delivered / 1e6)}0Mbps", high)
    agreed = _rate({**link, "share": 0.7, "quartiles_bps": [760e6, 820e6]}, "10.0.0.1")[1]
    assert (agreed.certainty, agreed.low, agreed.high) == ("measured", "760Mbps", "820Mbps")


def test_packets_behind_a_queue_that_are_all_spaced_alike_tell_the_rate_of_a_link_that_is_seldom_full() -> None:
    # Six servers' 64 KB pass a link of 10 Gbps in 0.4 ms, once in 10 ms: 327 Mbps.
    link = {
        "receiver": "10.0.0.1", "samples": 2070, "rate_bps": 10_236_455_082, "share": 0.99,
        "quartiles_bps": [10_236_455_082, 10_236_455_082], "busiest_bps": 326_640_000, "delivered_bps": 326_640_000, "merged_packets": 0,
    }  # fmt: skip
    found = _rate(link, "10.0.0.1", near=True)[1]
    assert (found.value, found.certainty) == ("10Gbps", "measured")
    # Before the queue that is a server's link, and stamps of a busy host are not alike.
    for other in (_rate(link, "10.0.0.1")[1], _rate({**link, "share": 0.55}, "10.0.0.1", near=True)[1]):
        assert (other.certainty, other.low) == ("bounded", "280Mbps")


@pytest.mark.parametrize(("rate", "low", "high"), [(10_236e6, "8.2Gbps", "10Gbps"), (353e6, "280Mbps", "370Mbps")])
def test_most_trains_behind_a_queue_bound_the_rate_of_a_link_that_was_never_full_for_ten_milliseconds(
    rate: float, low: str, high: str
) -> None:
    # A token bucket of 300 Mbps lets the first packets through faster: eight in a row pass at 353.
    link = {
        "receiver": "10.0.0.1", "samples": 11080, "rate_bps": rate, "share": 0.78,
        "quartiles_bps": [0.95 * rate, min(1.05 * rate, 10_236e6)], "busiest_bps": 0.165 * rate, "delivered_bps": 0.137 * rate, "merged_packets": 0,
    }  # fmt: skip
    found = _rate(link, "10.0.0.1", near=True)[1]
    assert (found.certainty, found.low, found.high) == ("bounded", low, high)
    assert found.evidence.startswith("78% of 11,080 trains")
    assert found.evidence.endswith(" was sent and acknowledged in ten milliseconds or more")


@pytest.mark.parametrize(
    ("found", "value", "low", "high"),
    [(423e6, "400Mbps", "340Mbps", "470Mbps"), (331e6, "330Mbps", "280Mbps", "360Mbps")],
)
def test_packets_of_two_servers_tell_the_rate_of_a_link_whose_trains_are_not_alike(
    found: float, value: str, low: str, high: str
) -> None:
    passed = Finding("rack.rate", "1Gbps", "bounded", "at most 345 Mbps passed", "290Mbps")
    assert _by_pairs({"pairs": None}, 1e9, passed) == (1e9, passed)
    bps, told = _by_pairs({"pairs": {"count": 684, "rate_bps": found, "height": 2.07}}, 1e9, passed)
    assert (told.value, told.certainty, told.low, told.high) == (value, "bounded", low, high)
    assert as_bps(value) == bps
    assert told.evidence.startswith("684 packets came as far behind one of another server")
    assert "2.1 times" in told.evidence
    assert (
        _by_pairs({"pairs": {"count": 684, "rate_bps": found, "height": 2.6}}, 1e9, passed)[1].certainty == "measured"
    )
    assert told.evidence.endswith(passed.evidence)


SERVICES = ROOT / "tests/data/services"


@pytest.mark.parametrize("name", ["fan", "fan_any", "grpc", "mc"])
def test_a_shaped_link_before_whose_queue_the_tap_is_is_told_by_the_servers_own_trains(name: str) -> None:
    # 500 Mbps by token buckets, a queue of 60 packets (tests/data/services/README.md); a gigabit would be an Ethernet's.
    found = {f.key: f for f in fanin.propose_rack(SERVICES / f"{name}.pcap.gz").findings}
    speed, queue = found["rack.rate"], found["rack.buffer"]
    assert speed.value == "500Mbps"
    assert speed.low is not None
    assert speed.high is not None
    assert as_bps(speed.low) <= 500e6 <= as_bps(speed.high)
    assert queue.low is not None
    assert queue.high is not None
    assert int(queue.low[:-1]) <= 60 <= int(queue.high[:-1])


def limits(amiss: dict[float, float], packets: Callable[[float], int], epochs: int = 20) -> Losses:
    """What losses say where a queue is amiss by so much at each rate in Mbps, and in between by the nearest."""

    def ask(bps: float) -> QueueLimit:
        nearest = min(amiss, key=lambda mbps: abs(mbps - bps / 1e6))
        n = packets(bps)
        return QueueLimit(250, epochs, n, amiss[nearest], (n, n, n), n + 1)

    return Losses(ask)


def towards(*lost: int) -> pl.DataFrame:
    """What went to a host, as far as its queue is told from it: packets that each connection lost before the tap."""
    return pl.DataFrame({"refilled_packets": lost, "largest_segment": 1448})


def test_the_rates_that_explain_the_losses_are_a_range_without_a_gap_around_the_best() -> None:
    told = limits({300: 0.22, 400: 0.14, 500: 0.12, 600: 0.34, 800: 0.9, 1000: 0.13}, lambda bps: 60)
    assert told.likely([300e6, 400e6, 500e6, 600e6, 800e6, 1e9], 500e6) == [300e6, 400e6, 500e6]
    assert told.likely([300e6, 400e6, 500e6, 600e6, 800e6, 1e9], 1e9) == [1e9]
    assert limits({500: 0.31}, lambda bps: 60).likely([400e6, 500e6], 500e6) == []


@pytest.mark.parametrize(("epochs", "few"), [(20, False), (2, True)])
def test_a_buffer_at_an_unknown_rate_is_a_range_whose_middle_stands_for_it(epochs: int, few: bool) -> None:
    speed = Finding("rack.rate", "1Gbps", "bounded", "", "250Mbps", "1Gbps")
    told = limits({250: 0.1, 1000: 0.1}, lambda bps: round(40e9 / bps), epochs)
    found = buffer(towards(), None, told, speed, 1e9)
    # 40 packets at 1 Gbps, 160 at a quarter.
    assert found.certainty == "bounded"
    assert (found.value, found.low, found.high) == (("80p", "18p", "354p") if few else ("80p", "36p", "177p"))
    assert "stands for the range" in found.evidence


@pytest.mark.parametrize(
    ("amiss", "told", "said"),
    [
        (0.3, ("60p", "46p", "79p"), "explains which packets were dropped (250 losses in 20 stretches)"),
        (0.31, ("60p", "3p", "512p"), "amiss by 31% of its length at each stretch; at 500 Mbps drops began at 3 to 61 packets: the queue drops early"),
        (0.61, ("100p", "1p", "512p"), "does one limit explain which; at 500 Mbps drops began at 3 to 61 packets: the queue drops early"),
    ],
)  # fmt: skip
def test_where_drops_begin_at_any_length_the_queue_may_hold_more(
    amiss: float, told: tuple[str, str, str], said: str
) -> None:
    speed = Finding("rack.rate", "500Mbps", "bounded", "", "500Mbps", "550Mbps")
    most = 60 if amiss <= 0.3 else 61
    losses = Losses(lambda bps: QueueLimit(250, 20, 60, amiss, (58 if amiss <= 0.3 else 3, 60, most), 62))
    found = buffer(towards(), None, losses, speed, 500e6)
    assert (found.value, found.low, found.high) == told, found
    assert said in found.evidence


def test_a_shaped_rate_is_known_to_a_tenth_and_its_buffer_no_better() -> None:
    speed = Finding("rack.rate", "500Mbps", "measured", "", "450Mbps", "550Mbps")
    told = limits({450: 0.05, 500: 0.04, 550: 0.05}, lambda bps: round(30e9 / bps))
    found = buffer(towards(), None, told, speed, 500e6)
    assert (found.value, found.certainty, found.low, found.high) == ("60p", "bounded", "52p", "67p")


@pytest.mark.parametrize(("capture", "truth"), [(HTTP, 40), (NGINX, 24)], ids=lambda p: getattr(p, "name", str(p)))
def test_the_real_buffer_lies_within_what_is_said_before_and_behind_the_queue(capture: Path, truth: int) -> None:
    seen = next(f for f in fanin.propose_rack(capture).findings if f.key == "rack.buffer")
    assert seen.certainty == "bounded"
    assert seen.low is not None
    assert seen.high is not None
    assert int(seen.low[:-1]) <= truth <= int(seen.high[:-1]) <= 4 * truth


MEASURED = Finding("rack.rate", "300Mbps", "measured", "")


def behind(p95_ms: float, p99_ms: float, lost: int = 1_000, speed: Finding = MEASURED) -> Finding:
    """The limit of a queue of 300 Mbps before the tap."""
    queued = Queued(answers=1_000, p95_ns=round(p95_ms * 1e6), p99_ns=round(p99_ms * 1e6))
    return waited(towards(lost), queued, speed, 300e6)


def test_a_queue_before_the_tap_is_as_long_as_the_longest_waits_where_many_are_as_long() -> None:
    # 4.0374 ms are 100 packets of 1514 bytes.
    assert (behind(2.9, 4.0374).value, behind(2.9, 4.0374).low, behind(2.9, 4.0374).high) == ("100p", "72p", "139p")


@pytest.mark.parametrize(
    ("low", "high", "ends"),
    [("150Mbps", "600Mbps", ("36p", "278p")), ("150Mbps", None, ("36p", "512p")), ("270Mbps", None, ("65p", "512p"))],
)
def test_a_wait_is_as_many_packets_as_the_slowest_and_the_fastest_rate_pass_in_it(
    low: str, high: str | None, ends: tuple[str, str]
) -> None:
    told = behind(2.9, 4.0374, speed=Finding("rack.rate", "300Mbps", "bounded", "", low, high))
    assert (told.low, told.high) == ends


def test_where_few_waited_long_the_queue_before_the_tap_may_hold_more() -> None:
    assert (behind(2.8, 4.0374).value, behind(2.8, 4.0374).low, behind(2.8, 4.0374).high) == ("100p", "72p", "512p")


def test_the_longest_waits_are_no_limit_where_fewer_packets_were_lost_than_answers_came() -> None:
    ends = [(told.low, told.high) for told in (behind(2.9, 4.0374, 999), behind(2.9, 4.0374, 1_000))]
    assert ends == [("72p", "512p"), ("72p", "139p")]


def test_waits_of_less_than_a_tick_tell_no_queue_before_the_tap() -> None:
    assert (behind(0.9, 1.0).certainty, behind(0.9, 0.99).certainty) == ("bounded", "assumed")
    hidden = next(f for f in fanin.propose_rack(CLIENT_SIDE).findings if f.key == "rack.buffer")
    assert (hidden.certainty, hidden.low, hidden.high) == ("assumed", "16p", "512p")


def test_without_losses_or_time_stamps_a_queue_before_the_tap_is_not_told() -> None:
    for told in (behind(2.9, 4.0374, lost=9), waited(towards(50), None, MEASURED, 300e6)):
        assert (told.value, told.certainty, told.low, told.high) == ("100p", "assumed", "16p", "512p")
    assert behind(2.9, 4.0374, lost=10).certainty == "bounded"


TEN = ROOT / "tests/data/incast/nginx_10to1.pcap.gz"
PSH = 8


def incast_of_ten(capture: Path = TEN, **settings: str) -> fanin.CompareResult:
    """Ten servers behind 100 packets at 150 Mbps (tests/data/incast)."""
    on = {key.replace("_", ".", 1): value for key, value in settings.items()}
    return fanin.compare(capture, cc=["cubic", "reno"], baseline="cubic", seeds=3, settings=on)


def test_an_incast_is_replayed_with_the_bursts_that_its_capture_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    told = incast_of_ten()
    assert told.calibration is not None
    assert told.calibration.reproduced
    found = told.calibration.calibration
    assert "stack.send_jitter" not in found.ranges()
    assert found.fits[0].furthest < MOST_APART / 2
    # Lengths are tried a tenth apart: what fits lies on both sides of it.
    lengths = [(int(dict(fit.settings)["rack.buffer"][:-1]), fit.weight) for fit in found.fits]
    assert max(lengths, key=lambda pair: pair[1])[0] == pytest.approx(100, rel=0.05)
    assert sum(length * weight for length, weight in lengths) == pytest.approx(100, rel=0.1)
    # Over the two seeds of a calibration the weights and the ends are left to chance.
    monkeypatch.setattr("fanin.calibration.search.SEEDS", 32)
    told = incast_of_ten()
    assert told.calibration is not None
    found = told.calibration.calibration
    low, high = (int(end[:-1]) for end in found.ranges()["rack.buffer"])
    assert low <= 100 <= high
    lengths = [(int(dict(fit.settings)["rack.buffer"][:-1]), fit.weight) for fit in found.fits]
    # 13 responses waited for a timer in the capture, 8 do on Linux in virtual time: a shorter queue has more.
    assert sum(length * weight for length, weight in lengths) == pytest.approx(100, rel=0.06)


def written_at_once(to: Path) -> Path:
    """The same capture where no write ends with the header of a response."""
    linktype, packets = spoilt.read(TEN)

    def at_once(stored: bytes) -> bytes:
        data, ip = bytearray(stored), spoilt.ETHERNET
        tcp = ip + 4 * (data[ip] & 15)
        length = int.from_bytes(data[ip + 2 : ip + 4]) - (tcp - ip) - 4 * (data[tcp + 12] >> 4)
        if length == 242:
            data[tcp + 13] &= ~PSH
        return bytes(data)

    return spoilt.write(to, linktype, [(ns, original, at_once(stored)) for ns, original, stored in packets])


def test_a_last_packet_that_is_lost_alone_is_replayed_by_hosts_out_of_step(tmp_path: Path) -> None:
    """Hosts that send packet by packet, in step, hardly ever lose a last packet alone, and no rack gives the capture."""
    capture = written_at_once(tmp_path / "at_once.pcap")
    told = incast_of_ten(capture, hosts_tso="false")
    assert told.calibration is not None
    assert told.calibration.reproduced
    ranges = told.calibration.calibration.ranges()
    low, high = (int(end[:-1]) for end in ranges["rack.buffer"])
    assert low <= 100 <= high
    # A packet of 1514 bytes at 150 Mbps.
    assert ranges["stack.send_jitter"] == ("81us", "81us")
    assert '\nsend_jitter = "81us"\n' in told.to_dict()["rack"]["text"]
    in_step = incast_of_ten(capture, hosts_tso="false", stack_send_jitter="10us")
    assert in_step.verdict.kind == "none"


@pytest.mark.parametrize("offload", [True, False])
def test_offload_that_a_rack_does_not_state_is_tried_where_nothing_else_gives_the_capture(
    offload: bool, tmp_path: Path
) -> None:
    """With offload the median request takes 26 ms, packet by packet 18, on Linux as in the simulator (service 311 of tools/regret.py)."""
    text = f"""
[topology]
senders = 24
rate = "200Mbps"
delay = "50us"
buffer = "64p"
[stack]
profile = "linux"
tso = {str(offload).lower()}
[[workload]]
kind = "incast"
bytes = "16KB"
rounds = 60
gap = "10ms"
request = "300B"
jitter = "50us"
[run]
duration = "120s"
"""
    fanin.run("rack.toml", text=text, cc="cubic", seed=1, pcap=tmp_path / "all")
    rack = tmp_path / "rack.toml"
    rack.write_text('[rack]\nrate = "200Mbps"\ndelay = "50us"\nbuffer = "64p"\n[stack]\nprofile = "linux"\n')
    told = fanin.compare(tmp_path / "all/client.pcap", rack, cc=["cubic"], baseline="cubic", seeds=2)
    assert told.calibration is not None
    assert told.calibration.reproduced
    assert not told.calibration.widened
    assert told.calibration.calibration.ranges() == ({"hosts.tso": ("true", "true")} if offload else {})


def test_a_proposed_file_is_a_rack_that_can_be_compared_on(fanin: Fanin, tmp_path: Path) -> None:
    assert fanin("rack", SMALL, "--out", "rack.toml").code == 0
    again = fanin("rack", SMALL, "--out", "rack.toml")
    assert again.code == 2
    assert "there is a file of this name" in again.err
    outcome = fanin("compare", SMALL, "--rack", "rack.toml", "--cc", "cubic", "--seeds", "1", "--json")
    assert outcome.code == 0, outcome.err
    without = fanin("compare", SMALL, "--cc", "cubic", "--seeds", "1", "--out", "results")
    assert "warning: the rack was proposed from the capture (rate 1Gbps" in without.err
    written = (tmp_path / "results/rack.toml").read_text()
    proposed, calibrated = (tomllib.loads(text) for text in ((tmp_path / "rack.toml").read_text(), written))
    # The replay chooses among the buffers that the capture allows, and says so; what was measured stays.
    buffers = [int(rack["rack"].pop("buffer")[:-1]) for rack in (proposed, calibrated)]
    assert proposed == calibrated
    assert max(buffers) <= 1.5 * min(buffers)
    assert "; calibrated: " in written


def test_no_text_of_a_name_ends_its_line_of_the_file(tmp_path: Path) -> None:
    hostile = tmp_path / "a\n[rack]\nrate='1bps'.pcap.gz"
    hostile.write_bytes(SMALL.read_bytes())
    assert fanin.propose_rack(hostile).text.count("\n[rack]") == 1


def test_a_tap_behind_the_queue_is_known_and_warned_of() -> None:
    there, here = fanin.trains(CLIENT_SIDE), fanin.trains(HTTP)
    assert there.behind_the_queue("10.77.0.1")
    assert not here.behind_the_queue("10.77.0.1")
    told = fanin.compare(CLIENT_SIDE, RACK, cc=["cubic"], seeds=1)
    assert any("taken behind the queue, at or near 10.77.0.1" in w for w in told.warnings)


def test_pauses_are_a_share_of_the_slowest_responses() -> None:
    result = fanin.compare(SMALL, RACK, cc=["cubic"], seeds=1)
    replay = fanin.trains(SMALL).workload()
    share = paused_share(result.responses, pauses(replay))
    assert share is not None
    assert 0 <= share <= 1


def test_a_capture_may_come_from_standard_input() -> None:
    import subprocess
    import sys

    with SMALL.open("rb") as file:
        done = subprocess.run(
            [sys.executable, "-m", "fanin", "trains", "-", "--json"], stdin=file, capture_output=True, check=True
        )
    assert b'"file": "standard input"' in done.stdout


def test_an_answer_on_several_racks_says_where_it_holds() -> None:
    result = fanin.compare(SMALL, RACK, cc=["cubic", "dctcp"], seeds=2, vary={"buffer": ["25p", "500p"]})
    assert [v.settings for v in result.variations] == [{"rack.buffer": "25p"}, {"rack.buffer": "500p"}]
    assert all(v.baseline_ms is not None for v in result.variations)
    assert "What if the rack is another" in fanin.report.page(result)
    with pytest.raises(fanin.ScenarioError, match="bufer"):
        fanin.compare(SMALL, RACK, cc=["cubic"], seeds=1, vary={"bufer": ["25p"]})


VIRTUAL = CAPTURES / "virtual_kernel"


def test_the_baseline_is_what_the_capture_shows_and_else_presumed_in_so_many_words() -> None:
    shown = fanin.compare(VIRTUAL / "incast6_dctcp_1g.client.pcap.gz", seeds=1, cc=["cubic", "dctcp"])
    assert shown.baseline == "dctcp"
    assert any(s.startswith("Your hosts run dctcp: 6 of 6 handshakes") for s in shown.verdict.support)
    presumed = fanin.compare(VIRTUAL / "incast12_cubic_1g.client.pcap.gz", seeds=1, cc=["cubic", "reno"])
    assert presumed.baseline == "cubic"
    assert any("the capture does not show it" in s for s in presumed.verdict.support)


def test_a_rate_that_a_tap_before_the_queue_cannot_see_is_never_proposed_in_silence() -> None:
    # Nothing is lost in this one, and packets arrive as the senders' links bring them.
    capture = VIRTUAL / "incast20_reno_1g.switch.pcap.gz"
    proposal = fanin.propose_rack(capture)
    assert any("is a guess" in warning for warning in proposal.warnings)
    assert "is a guess" in proposal.text
    told = fanin.compare(capture, cc=["cubic"], seeds=1)
    assert any("the rate of the link to the aggregator is a guess" in w for w in told.warnings)
    behind = fanin.propose_rack(VIRTUAL / "incast20_reno_1g.client.pcap.gz")
    assert not any("is a guess" in warning for warning in behind.warnings)


def test_another_rate_that_replays_have_found_is_not_called_a_guess() -> None:
    proposal = fanin.propose_rack(VIRTUAL / "incast20_reno_1g.switch.pcap.gz")
    steady = Shown.of([10 + n / 100 for n in range(100)], 0)
    fits = calibrate(steady, {"rack.rate": ["300Mbps"]}, lambda racks, seed: [[steady] for _ in racks])
    found = as_calibrated(proposal, Calibrated(fits, widened=True))
    assert 'rate = "300Mbps"' in found.text
    assert "is a guess" not in found.text
    said = next(warning for warning in found.warnings if warning.kind == GUESSED_RATE)
    assert "300Mbps is what gives the times that were measured" in said
    assert f"# {said}." in found.text


def test_losses_tell_the_rate_and_the_buffer_where_the_spacing_does_not() -> None:
    # Linux's own TCP on the virtual kernel: 1 Gbps, 120 packets.
    found = {f.key: f for f in fanin.propose_rack(VIRTUAL / "incast12_cubic_1g.switch.pcap.gz").findings}
    assert (found["rack.rate"].value, found["rack.rate"].certainty) == ("1Gbps", "measured")
    assert "only at this one does a queue explain" in found["rack.rate"].evidence
    assert found["rack.buffer"].certainty == "measured"
    assert found["rack.buffer"].value in {"119p", "120p"}


@pytest.mark.parametrize("number", range(10))
def test_the_buffer_of_a_random_rack_is_measured_or_within_the_range_told(number: int, tmp_path: Path) -> None:
    rack = known_racks.drawn(number)
    captures = known_racks.captured(rack, tmp_path)
    for tap in ("switch", "servers"):
        found = known_racks.told(rack, captures[tap])
        if found.certainty == "measured":
            assert abs(found.value - rack.buffer) <= 1 + rack.buffer // 50, (tap, rack, found)
        assert found.within, (tap, rack, found)
    behind = known_racks.told(rack, captures["client"])
    assert behind.certainty == "assumed"
    assert behind.low < behind.value < behind.high


def test_an_answer_on_a_proposed_rack_says_whether_it_depends_on_what_the_capture_does_not_show() -> None:
    behind = VIRTUAL / "incast12_cubic_1g.client.pcap.gz"
    told = fanin.compare(behind, cc=["cubic", "reno"], seeds=1)
    # The buffer is before this tap: of what a port may hold, what reproduces the capture is tried.
    assert told.variations
    assert all(16 <= int(v.settings["rack.buffer"][:-1]) <= 512 for v in told.variations)
    assert any(s.startswith("Not sure about: the buffer (assumed ") for s in told.verdict.support)
    # What is said by hand is no unknown.
    assert not fanin.compare(behind, cc=["cubic"], seeds=1, settings={"rack.buffer": "40p"}).variations
    # Nothing is left open on the virtual kernel's switch: its losses tell rate and buffer.
    measured = fanin.compare(VIRTUAL / "incast12_cubic_1g.switch.pcap.gz", cc=["cubic"], seeds=1)
    assert measured.rack_proposed
    assert not measured.variations
