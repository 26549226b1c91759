"""Replays keep who waits for what: real Linux incast on exactly known racks, and the round-trip law."""

from __future__ import annotations

import csv
import json
import os
import statistics
from dataclasses import replace
from pathlib import Path

import fanin
import polars as pl
import pytest
from fanin import report
from fanin._native import Replay
from fanin.capture import waiting

from . import round_trip, round_trip_nets

CAPTURES = Path(__file__).parents[1] / "data" / "pcap" / "virtual_kernel"
SERVERS = {"incast12_cubic_1g": 12, "incast6_dctcp_1g": 6, "incast20_reno_1g": 20}
VANTAGES = ("client", "switch")
MORE = int(os.environ.get("FANIN_ROUND_TRIP", "0"))
"""How many random scenarios are tried beyond the few that every test run tries; `make round-trip` tries 200."""


def rows(name: str) -> list[dict[str, str]]:
    with (CAPTURES / name).open() as file:
        return list(csv.DictReader(file))


def rack(folder: Path, name: str) -> Path:
    of = next(row for row in rows("counterfactual.csv") if row["name"] == name)
    path = folder / "rack.toml"
    delay = int(of["link_delay_ns"]) / 1000
    path.write_text(
        f'[rack]\nrate = "1Gbps"\ndelay = "{delay:g}us"\nbuffer = "{of["buffer_pkts"]}p"\nmark = "{of["K"]}p"\n'
        # The kernel that was captured counted its timers at 1000 Hz.
        "[stack]\nhz = 1000\n"
    )
    return path


@pytest.mark.parametrize("name", SERVERS)
@pytest.mark.parametrize("vantage", VANTAGES)
def test_every_round_of_real_incast_is_found_and_takes_as_long_in_the_replay(
    tmp_path: Path, name: str, vantage: str
) -> None:
    truth = next(row for row in rows("truth.csv") if row["name"] == name)
    real = [float(ms) for ms in truth["round_ms"].split()]
    replayed = fanin.compare(CAPTURES / f"{name}.{vantage}.pcap.gz", rack(tmp_path, name), cc=truth["cc"], seeds=3)
    together = [group for group in replayed.groups if group["rounds"]]
    assert [(len(c["connections"]), c["rounds"]) for c in together] == [(SERVERS[name], 30)]
    edge = together[0]["released_by"][0]
    assert (edge["event"], edge["waits_for"]) == ("answers", "all")
    # The pause of truth.csv, and what the kernel's timer and the way of the last packets add.
    assert 0 <= edge["delay"]["median_ns"] / 1e6 - float(truth["gap_ms"]) < 0.2
    ours = replayed.rounds["completion_ms"].to_list()
    assert round_trip.quantile(ours, 0.5) == pytest.approx(round_trip.quantile(real, 0.5), rel=0.25)
    # The first round has a timeout in one of the three captures: whether it falls on a round is chance, so the rounds after it are compared.
    after = replayed.rounds.sort("seed", "release_ms").group_by("seed").tail(29)["completion_ms"].to_list()
    there, here = round_trip.quantile(real[1:], 0.99), round_trip.quantile(after, 0.99)
    assert max(there / here, here / there) < 1.5


def test_a_replay_of_connections_alone_loses_the_incast_and_says_so(tmp_path: Path) -> None:
    capture, on = CAPTURES / "incast12_cubic_1g.client.pcap.gz", rack(tmp_path, "incast12_cubic_1g")
    together = fanin.compare(capture, on, cc="cubic", seeds=1)
    alone = fanin.compare(capture, on, cc="cubic", seeds=1, independent=True)
    assert (together.rank_of, alone.rank_of) == ("requests", "responses")
    medians = [float(r.responses["completion_ms"].median()) for r in (together, alone)]  # type: ignore[arg-type]
    assert medians[0] > 2 * medians[1]
    assert any("--independent" in note for note in together.notes)
    assert not any("--independent" in note for note in alone.notes)


def test_what_was_found_is_said_in_a_sentence() -> None:
    found = fanin.trains(CAPTURES / "incast20_reno_1g.client.pcap.gz")
    (told,) = waiting.sentences(found.groups())
    assert told.startswith("20 servers are asked within ")
    assert "after the slowest answer" in told
    http = fanin.trains(CAPTURES.parents[3] / "data" / "captures" / "http_onoff_8to1.pcap.gz")
    assert waiting.sentences(http.groups()) == [waiting.NOTHING]


def test_the_rates_of_the_rack_tell_servers_times_from_the_network(tmp_path: Path) -> None:
    """Answers of 4 KB far apart never show how fast the links are: at 10 Gbps 1 Gbps was presumed, and 36 us too much taken off."""
    network = 'rate = "10Gbps"\ndelay = "5us"\nbuffer = "120p"\n'
    scenario, on = tmp_path / "scenario.toml", tmp_path / "rack.toml"
    scenario.write_text(
        f'[topology]\nsenders = 5\n{network}[stack]\nprofile = "linux"\n[[workload]]\nkind = "incast"\nbytes = "4KB"\nrounds = 25\n'
        'gap = "5ms"\nrequest = "200B"\njitter = "300us"\n[run]\nduration = "1s"\n'
    )
    on.write_text(f"[rack]\n{network}")
    run = fanin.run(scenario, cc="reno", seeds=1, pcap=tmp_path / "pcap", pcap_at=["client"])
    capture = tmp_path / "pcap" / "client.pcap"

    def off(of: fanin.TrainsResult) -> float:
        times = []
        for connection in json.loads(of.workload().to_json())["connections"]:
            asked, answered = (
                run.messages.filter(pl.col("flow") == 2 * connection["connection"] + side).sort("release_ms")
                for side in (0, 1)
            )
            took = (answered["release_ms"] - asked["done_ms"]).to_list()
            times += [m["service_ns"] / 1e3 - ms * 1e3 for m, ms in zip(connection["messages"], took, strict=True)]
        return statistics.median(times)

    # The hosts' own noise is 5 us in the middle, which one handshake shows more or less of.
    assert abs(off(fanin.trains(capture, rack=on))) < 6
    assert off(fanin.trains(capture)) < -20


@pytest.mark.parametrize("number", range(15 + MORE))
def test_a_run_that_is_captured_and_replayed_is_the_same_run(number: int) -> None:
    # The first numbers, whatever they are: none is picked.
    made = round_trip.case(number)
    found = round_trip.check(made)
    assert found.holds or found.excused, f"{' and '.join(found.breaks)}: {found} of {made}"


@pytest.mark.parametrize("number", range(10 + MORE))
def test_so_it_is_on_other_networks_and_under_other_workloads(number: int) -> None:
    made = round_trip_nets.case(number)
    if made.named in round_trip_nets.LIMITS:
        pytest.skip(round_trip_nets.LIMITS[made.named])
    found = round_trip_nets.check(made)
    assert found.holds or found.excused, f"{' and '.join(found.breaks)}: {found} of {made}"


def test_every_workload_and_topology_of_the_registry_is_asked_or_has_its_reason() -> None:
    cases = [round_trip_nets.case(number) for number in range(200)]
    asked = {word.split('"')[1] for made in cases for word in made.workload.split("kind = ")[1:]}
    assert not asked & set(round_trip_nets.NEVER)
    assert asked | set(round_trip_nets.NEVER) == {entry.name for entry in fanin.entries("workload")}
    assert {made.net.name for made in cases} | {"star"} == {entry.name for entry in fanin.entries("topology")}


@pytest.mark.parametrize(
    ("cc", "other"),
    [
        ("cubic", "dctcp"),
        ("dctcp", "reno"),
        ("reno", "vegas"),
        ("bbr", "cubic"),
    ],
)
def test_the_gain_that_a_replay_promises_is_the_gain_that_is_got(tmp_path: Path, cc: str, other: str) -> None:
    found = round_trip.promise(replace(round_trip.case(1000), cc=cc, place="client"), other, tmp_path)
    assert found.holds, found


def test_the_report_draws_the_rounds_and_shows_both_medians(tmp_path: Path) -> None:
    found = fanin.compare(
        CAPTURES / "incast12_cubic_1g.client.pcap.gz", rack(tmp_path, "incast12_cubic_1g"), cc="cubic", seeds=1
    )
    assert [len(each) for each in found.captured_rounds] == [12] * 30
    assert found.alone is not None
    assert found.alone.together_ms > 2 * found.alone.alone_ms
    page = report.page(found)
    assert page.count('class="slowest"') == 30
    assert "12 servers are asked within" in page
    assert "each connection alone" in page
    http = CAPTURES.parents[3] / "data" / "captures" / "http_onoff_8to1.pcap.gz"
    alone = fanin.compare(http, rack(tmp_path, "incast12_cubic_1g"), cc="cubic", seeds=1)
    assert waiting.NOTHING in report.page(alone)


def test_a_workload_file_that_calls_groups_companies_is_the_same_workload() -> None:
    replay = fanin.trains(CAPTURES.parents[1] / "requests" / "chain.pcap.gz").workload()
    written = json.loads(replay.to_json())
    written["companies"] = written.pop("groups")
    for each in [*written["rounds"], *(edge for c in written["companies"] for edge in c["released_by"])]:
        if "group" in each:
            each["company"] = each.pop("group")
    assert len(written["companies"]) > 0
    assert Replay.from_json(json.dumps(written)).to_json() == replay.to_json()
