"""What is proposed for the hosts of a capture: bursts that a card cut, or that crossed the network whole; nothing for hosts without offload."""

from __future__ import annotations

import tomllib
from pathlib import Path

import fanin
import pytest
from fanin.rack.queue import Finding

from .conftest import CAPTURES, ROOT, Fanin

SHIPPED = ROOT / "data/captures/nginx_16to1_before.pcap.gz"

RACK = """
[topology]
senders = 8
rate = "1Gbps"
delay = "10us"
buffer = "100p"
[stack]
{knobs}
profile = "linux"
[[workload]]
kind = "incast"
bytes = "100KB"
request = "100B"
rounds = 20
jitter = "20us"
[run]
duration = "10s"
"""


def of_hosts(capture: Path) -> dict[str, Finding]:
    return {f.key: f for f in fanin.propose_rack(capture).findings if not f.key.startswith("rack.")}


def simulated(knobs: str, folder: Path) -> dict[str, Finding]:
    fanin.run("rack.toml", text=RACK.format(knobs=knobs), cc="cubic", seed=1, pcap=folder, pcap_at=["client"])
    return of_hosts(folder / "client.pcap")


def test_nothing_is_proposed_for_simulated_hosts_without_offload(tmp_path: Path) -> None:
    assert simulated("", tmp_path / "pcap") == {}


def test_simulated_hosts_whose_cards_cut_bursts_are_proposed_with_offload(tmp_path: Path) -> None:
    found = simulated("tso = true", tmp_path / "pcap")
    assert [(key, finding.value) for key, finding in found.items()] == [("hosts.tso", "true")]


LAST_PACKETS_LOST = """
[topology]
senders = 16
rate = "1Gbps"
delay = "25us"
buffer = "40p"
[stack]
{knobs}
profile = "linux"
[[workload]]
kind = "incast"
bytes = "8KB"
request = "300B"
rounds = 40
gap = "10ms"
jitter = "50us"
[run]
duration = "60s"
"""


@pytest.mark.parametrize(
    ("knobs", "told"),
    [
        ("", {}),
        ("common_ticks = true", {"stack.common_ticks": "true"}),
        ("common_ticks = true\nhz = 1000", {"stack.common_ticks": "true", "stack.hz": "1000"}),
    ],
)
def test_servers_of_one_machine_are_told_by_its_ticks(knobs: str, told: dict[str, str], tmp_path: Path) -> None:
    text = LAST_PACKETS_LOST.format(knobs=knobs)
    fanin.run("rack.toml", text=text, cc="cubic", seed=1, pcap=tmp_path, pcap_at=["client"])
    assert {key: finding.value for key, finding in of_hosts(tmp_path / "client.pcap").items()} == told
    # The file that is proposed is one that commands read.
    (tmp_path / "rack.toml").write_text(fanin.propose_rack(tmp_path / "client.pcap").text)
    fanin.compare(tmp_path / "client.pcap", rack=tmp_path / "rack.toml", cc=["cubic"], seeds=1)


@pytest.mark.parametrize("limit", [3200, 5000])
def test_the_size_from_which_on_bursts_are_cut_lies_in_its_range(limit: int, tmp_path: Path) -> None:
    found = simulated(f'tso = true\ntso_whole = "{limit}B"', tmp_path / "pcap")["stack.tso_whole"]
    assert found.low
    assert found.high
    assert int(found.low[:-1]) <= limit <= int(found.high[:-1])


@pytest.mark.parametrize("late", [1, 2, 4])
def test_what_the_timer_of_a_token_bucket_is_late_by_is_read_from_the_rhythm_of_the_link(
    late: int, tmp_path: Path
) -> None:
    knobs = f'tso = true\ntso_whole = "3200B"\nbucket_latency = "{late}us"'
    found = simulated(knobs, tmp_path / "pcap")["stack.bucket_latency"]
    assert found.certainty == "measured"
    assert found.value
    assert float(found.value.removesuffix("us")) == pytest.approx(late, rel=0.25)


@pytest.mark.parametrize("name", ["incast12_cubic_1g", "incast20_reno_1g", "incast6_dctcp_1g"])
@pytest.mark.parametrize("tap", ["client", "switch"])
def test_nothing_is_proposed_for_linux_without_offload(name: str, tap: str) -> None:
    # Its applications' writes end with PSH, too.
    assert of_hosts(CAPTURES / "virtual_kernel" / f"{name}.{tap}.pcap.gz") == {}


def test_namespaces_behind_token_buckets_let_two_segments_through_as_one_packet() -> None:
    # tc tbf with a burst of 3200 bytes (data/captures/README.md).
    found = of_hosts(SHIPPED)
    assert (found["hosts.tso"].value, found["hosts.tso"].certainty) == ("true", "measured")
    whole = found["stack.tso_whole"]
    assert (whole.low, whole.high) == ("3028B", "4541B")
    late = found["stack.bucket_latency"]
    assert (late.value, late.certainty) == ("16.6us", "measured")
    frame = found["stack.frame_overhead"]
    assert (frame.value, frame.certainty) == ("14B", "measured")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("http_onoff_8to1.pcap.gz", ["hosts.tso"]),
        ("memcached_incast_8to1.pcap.gz", ["hosts.tso", "stack.common_ticks"]),
        ("http_spt_then_lpt_5to1.pcap", ["hosts.tso"]),
    ],
)
def test_real_hosts_with_offload_are_told_by_bursts_of_all_lengths(name: str, told: list[str]) -> None:
    assert list(of_hosts(CAPTURES / name)) == told


def test_the_hosts_that_are_told_are_in_effect(fanin: Fanin, tmp_path: Path) -> None:
    assert fanin("rack", SHIPPED, "--out", "rack.toml").code == 0
    said = tomllib.loads((tmp_path / "rack.toml").read_text())
    assert said["hosts"] == {"tso": True}
    bucket = {"frame_overhead": "14B", "tso_whole": "3217B", "bucket_latency": "16.6us"}
    assert said["stack"] == {"profile": "linux", **bucket, "common_ticks": True}
    asked = ("--cc", "cubic", "--baseline", "cubic", "--seeds", "1", "--json")
    assert fanin("compare", SHIPPED, "--rack", "rack.toml", *asked).code == 0
