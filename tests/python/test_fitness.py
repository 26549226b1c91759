"""Whether a capture is fit to judge by: what taps, filters and tools spoil is said, what can be mended is, and a good capture is not doubted."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import fanin
import pytest
from fanin.runs.job import RunWarning

from . import spoilt
from .conftest import CAPTURES, HTTP, ROOT, Fanin
from .spoilt import Packet

SERVICES = ROOT / "tests/data/services"
FAN = SERVICES / "fan.pcap.gz"
AGGREGATOR = bytes([10, 9, 0, 1])
YEAR_NS = 365 * 86_400 * 10**9

GOOD = [
    *sorted(SERVICES.glob("*.pcap.gz")),
    *sorted((CAPTURES / "virtual_kernel").glob("*.pcap.gz")),
    *(CAPTURES / f"{name}.gz" for name in ("http_onoff_8to1_client.pcap", "memcached_incast_8to1.pcap")),
    CAPTURES / "http_spt_then_lpt_5to1.pcap",
    HTTP,
]
"""Taken on a host or a switch, whole."""

SPOILT: dict[str, tuple[Callable[[list[Packet]], list[Packet]], str, set[str]]] = {
    "one packet in ten": (lambda p: spoilt.sampled(p, 10), "payload-missing", set()),
    "one packet in two": (lambda p: spoilt.sampled(p, 2), "payload-missing", set()),
    "one packet in 150 dropped": (
        lambda p: [each for n, each in enumerate(p) if n % 150],
        "payload-missing",
        {"sizes", "times"},
    ),
    "ten milliseconds": (lambda p: spoilt.rounded(p, 10_000_000), "coarse-clock", {"sizes"}),
    "a tenth of a millisecond": (lambda p: spoilt.rounded(p, 100_000), "coarse-clock", {"sizes", "times", "losses"}),
    "no clock": (lambda p: [(0, *rest) for _, *rest in p], "stopped-clock", {"sizes"}),
    "five minutes forward, in an answer": (lambda p: spoilt.leapt(p, 300 * 10**9), "clock-steps", {"sizes"}),
    "twenty years forward": (lambda p: spoilt.leapt(p, 20 * YEAR_NS), "clock-steps", {"sizes"}),
    "other addresses": (lambda p: spoilt.again(p, 8_000, spoilt.translated), "translated-copies", {"sizes", "times"}),
    "every fourth acknowledgement": (
        lambda p: spoilt.thinned(p, 4),
        "acknowledgements-missing",
        {"sizes", "times"},
    ),
    "no acknowledgement": (lambda p: spoilt.thinned(p, 10**9), "acknowledgements-missing", {"sizes", "times"}),
    "answers only": (lambda p: spoilt.from_address(p, lambda a: a != AGGREGATOR), "one-direction", {"sizes"}),
    "requests only": (lambda p: spoilt.from_address(p, lambda a: a == AGGREGATOR), "one-direction", {"sizes"}),
}
"""What is done to a capture, why it is then not fit, and what it is still fit for."""


@pytest.fixture(scope="module")
def fan() -> tuple[int, list[Packet]]:
    return spoilt.read(FAN)


def sent_again(found: fanin.TrainsResult) -> int:
    sides = [c[side] for c in found.connections for side in ("to_server", "to_client")]
    return sum(side["retransmitted_packets"] + side["refilled_packets"] for side in sides)


@pytest.mark.parametrize("capture", GOOD, ids=lambda path: path.name)
def test_a_good_capture_is_not_doubted(capture: Path) -> None:
    found = fanin.trains(capture).fitness
    assert found.fit, found.sentence
    assert found.sentence == "fit to judge"
    assert found.reasons == ()


@pytest.mark.parametrize("what", SPOILT)
def test_what_spoils_a_capture_is_named_and_no_advice_rests_on_it(
    fan: tuple[int, list[Packet]], tmp_path: Path, what: str
) -> None:
    change, why, still = SPOILT[what]
    found = fanin.trains(spoilt.write(tmp_path / "spoilt.pcap", fan[0], change(fan[1]))).fitness
    assert why in [reason.kind for reason in found.reasons]
    assert set(found.fit_for) == still
    assert found.fit == ({"sizes", "times", "losses"} <= still)
    assert found.verdict == ("limited" if still else "unfit")
    assert all(found.lacks(aspect) for aspect in {"sizes", "times", "losses", "rack"} - still)


@pytest.mark.parametrize("speed", [0.97, 1.05, 2.0])
def test_a_clock_that_runs_at_another_speed_than_the_hosts_is_told(tmp_path: Path, speed: float) -> None:
    linktype, packets = spoilt.read(HTTP)
    found = fanin.trains(spoilt.write(tmp_path / "fast.pcap", linktype, spoilt.paced(packets, speed))).fitness
    assert [reason.kind for reason in found.reasons] == ["wrong-clock"]
    assert found.clock_speed is None or found.clock_speed == pytest.approx(speed, rel=0.01)
    assert not found.fit


@pytest.mark.parametrize("ns", [1_000, 300_000, 3_000_000, 20_000_000, 50_000_000])
@pytest.mark.parametrize("tag", [False, True])
def test_packets_that_come_twice_are_counted_once_however_far_apart(
    fan: tuple[int, list[Packet]], tmp_path: Path, ns: int, tag: bool
) -> None:
    twice = spoilt.again(fan[1], ns, spoilt.tagged if tag else lambda stored: stored)
    once, found = fanin.trains(FAN), fanin.trains(spoilt.write(tmp_path / "twice.pcap", fan[0], twice))
    assert found.fitness.fit
    assert found.fitness.copied_packets == pytest.approx(len(fan[1]), rel=0.005)
    assert found.fitness.copies_apart_ns == ns
    assert abs(sent_again(found) - sent_again(once)) <= 3
    assert found.turns.height == once.turns.height
    assert found.rounds() == once.rounds()


def test_a_tap_on_every_interface_of_a_switch_sees_each_packet_three_times_and_no_loss_more() -> None:
    found = fanin.trains(SERVICES / "fan_any.pcap.gz")
    # The same run at one interface, over the same 0.6 s.
    assert sent_again(found) == 13
    assert found.fitness.copied_packets == found.summary["tcp_packets"] * 2 // 3


def test_what_was_sent_again_and_not_lost_is_counted_apart() -> None:
    found = fanin.trains(FAN).fitness
    assert (found.retransmitted_packets, found.spurious_packets) == (32, 32)


def test_a_rack_is_never_measured_by_a_capture_that_is_not_fit_for_it(
    fan: tuple[int, list[Packet]], tmp_path: Path
) -> None:
    for what, (change, _, _) in SPOILT.items():
        path = spoilt.write(tmp_path / "spoilt.pcap", fan[0], change(fan[1]))
        assert {f.certainty for f in fanin.propose_rack(path).findings} == {"assumed"}, what


def test_each_command_says_first_whether_the_capture_is_fit(
    fanin: Fanin, fan: tuple[int, list[Packet]], tmp_path: Path
) -> None:
    sample = spoilt.write(tmp_path / "sample.pcap", fan[0], spoilt.sampled(fan[1], 10))
    for path, said in ((FAN, "fan.pcap.gz: fit to judge"), (sample, "sample.pcap: not fit to judge: ")):
        assert fanin("trains", path).out.splitlines()[0].startswith(said)
        assert fanin("rack", path).out.splitlines()[0].removeprefix("# ").startswith(said)
    assert json.loads(fanin("trains", sample, "--json").out)["fitness"]["verdict"] == "unfit"
    assert json.loads(fanin("rack", sample, "--json").out)["fitness"]["fit"] is False


def test_no_advice_rests_on_a_capture_that_lacks_most_packets(
    fanin: Fanin, fan: tuple[int, list[Packet]], tmp_path: Path
) -> None:
    sample = spoilt.write(tmp_path / "sample.pcap", fan[0], spoilt.sampled(fan[1], 10))
    outcome = fanin("compare", sample, "--seeds", "3", "--cc", "cubic,bbr,reno", "--json")
    assert outcome.code == 0, outcome.err
    answer = outcome.json()["answer"]
    assert answer["kind"] == "none"
    assert answer["headline"].startswith("No advice yet: the capture is not fit to judge: ")
    assert outcome.json()["recommendation"] is None
    refused = fanin("advise", sample)
    assert refused.code == 2
    assert "no advice yet: the capture is not fit to judge" in refused.err


def test_no_advice_about_requests_rests_on_a_reading_that_is_doubted(fanin: Fanin) -> None:
    # How many answers a quorum's user waits for is told by his traces alone.
    asked = ("compare", ROOT / "tests/data/requests/quorum.pcap.gz", "--seeds", "3", "--cc", "cubic,reno", "--json")
    answer = fanin(*asked).json()["answer"]
    assert answer["kind"] == "none"
    assert "are read as going on with some of their answers (a quorum)" in answer["headline"]
    assert "--rank-of responses" in " ".join(answer["support"])
    of_responses = fanin(*asked, "--rank-of", "responses").json()["answer"]
    assert "a quorum" not in of_responses["headline"]


def test_no_advice_rests_on_answers_that_stand_in_for_requests_that_were_not_read() -> None:
    compared = fanin.compare(ROOT / "tests/data/requests/chain.pcap.gz", cc=["cubic", "reno"], seeds=2)
    doubt = RunWarning("requests are missing", "requests-unbound")
    of_answers = replace(compared, rank_of="responses", warnings=[*compared.warnings, doubt])
    assert of_answers.verdict.kind == "none"
    assert of_answers.verdict.headline == "No advice yet: requests are missing."
    assert "requests are missing" not in replace(of_answers, rank_of_given=True).verdict.headline
