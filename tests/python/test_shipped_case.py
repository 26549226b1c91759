"""The case that is shipped: captured, answered, typed on its hosts, captured again, with the application's log of both."""

from __future__ import annotations

import gzip
import json
import statistics

import fanin
import pytest

from .conftest import ROOT

CAPTURES = ROOT / "data" / "captures"
REQUESTS = 200


def logged(when: str) -> list[float]:
    """What each request took by the application's log, ms, in ascending order."""
    with gzip.open(CAPTURES / f"nginx_16to1_{when}.log.json.gz") as file:
        return sorted((end - begin) * 1e3 for begin, end in json.load(file)["rounds"])


@pytest.mark.parametrize("when", ["before", "after"])
def test_both_captures_are_read_as_the_application_logged(when: str) -> None:
    found = fanin.trains(CAPTURES / f"nginx_16to1_{when}.pcap.gz").workload()
    read, truth = sorted(took for took in found.round_times_ms() if took is not None), logged(when)
    assert len(read) == len(truth) == REQUESTS
    assert statistics.mean(read) == pytest.approx(statistics.mean(truth), rel=0.02)
    for share in (0.5, 0.95, 0.99):
        assert read[int(share * REQUESTS)] == pytest.approx(truth[int(share * REQUESTS)], rel=0.02)


def test_what_was_stated_is_what_the_application_got() -> None:
    result = fanin.compare(CAPTURES / "nginx_16to1_before.pcap.gz")
    told, after = result.verdict, logged("after")
    assert (told.kind, told.best) == ("change", "trim with RTO floor 5ms")
    assert told.recommendation is not None
    typed = (CAPTURES / "nginx_16to1_typed.sh").read_text()
    assert all(line in typed for line in [*told.recommendation.trial, *told.recommendation.at_aggregator])
    for name, got in (("mean", statistics.mean(after)), ("p95", after[int(0.95 * REQUESTS)])):
        stated = result.expected(told.best or "", name)
        assert stated is not None
        low, high = stated
        assert low <= got <= high, (name, low, got, high)


def test_a_value_that_is_set_is_checked_for_what_came_to_the_candidates_in_the_course_of_the_runs() -> None:
    # TRIM with an RTO floor is tried once both have shown what they do.
    result = fanin.compare(CAPTURES / "nginx_16to1_before.pcap.gz", settings={"stack.initial_quickacks": 15})
    assert any(row.cc == "trim with RTO floor 5ms" for row in result.ranking)
