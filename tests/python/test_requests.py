"""What captures of services are read as, held against what the application itself logged.

`python -m tests.python.test_requests FOLDER` prints the table for every NAME.pcap.gz with NAME.log.json.gz in a folder.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import fanin
import pytest

from tests.services.judge import Counted, logged

SERVICES = Path(__file__).parents[2] / "tests/data/requests"


def log_of(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return found


def read(path: Path) -> Counted:
    """What the capture is read as."""
    found = fanin.trains(path)
    responses = sum(
        message["response_bytes"] > 0
        for connection in json.loads(found.workload().to_json())["connections"]
        for message in connection["messages"]
    )
    return Counted.of(responses, found.requests()["completion_ms"].drop_nulls().to_list())


def names(folder: Path) -> list[str]:
    return sorted(path.name.removesuffix(".log.json.gz") for path in folder.glob("*.log.json.gz"))


@pytest.mark.parametrize("name", names(SERVICES))
def test_requests_of_a_service_are_those_that_its_application_logged(name: str) -> None:
    said, found = logged(SERVICES / f"{name}.log.json.gz"), read(SERVICES / f"{name}.pcap.gz")
    assert found.responses == pytest.approx(said.responses, rel=0.01)
    assert found.requests == pytest.approx(said.requests, rel=0.02)
    # One by one, because so few have no steady percentiles. What the application's own process took is not on the wire: of two users in
    # one process it is long for a quarter of the requests.
    log = sorted(log_of(SERVICES / f"{name}.log.json.gz")["rounds"])
    took = fanin.trains(SERVICES / f"{name}.pcap.gz").requests()["completion_ms"].to_list()
    ratios = [ours / ((end - begin) * 1e3) for ours, (begin, end) in zip(took, log, strict=True)]
    assert sum(0.9 <= ratio <= 1.1 for ratio in ratios) >= 0.75 * len(ratios)


def test_a_loop_over_the_servers_that_is_held_up_now_and_then_is_one_stage() -> None:
    replay = fanin.trains(SERVICES.parent / "pcap/memcached_incast_8to1.pcap.gz").workload()
    # In 62 of these the last servers are asked up to 1.4 ms late; only the first request of all asks one after another.
    sizes = [len(each["requests"]) for each in json.loads(replay.to_json())["rounds"]]
    assert sizes.count(8) == 150
    assert len(sizes) == 151


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    print(f"{'service':10} {'responses':>17} {'requests':>15} {'p50 ms':>17} {'p99 ms':>17}   (log | capture)")
    for name in names(folder):
        a, b = logged(folder / f"{name}.log.json.gz"), read(folder / f"{name}.pcap.gz")
        print(
            f"{name:10} {a.responses:8} {b.responses:8} {a.requests:7} {b.requests:7} "
            f"{a.p50:8.2f} {b.p50:8.2f} {a.p99:8.2f} {b.p99:8.2f}"
        )
