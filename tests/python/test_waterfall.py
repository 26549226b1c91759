"""Requests as pictures and as traces: what is drawn and exported is what was read, and the capture checks it."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import fanin
import polars as pl
import pytest
from fanin import spans, waterfall
from fanin.capture import closing, waiting
from fanin.comparison import doubts

from . import spoilt
from .conftest import ROOT

REQUESTS = ROOT / "tests/data/requests"
NAMES = sorted(path.name.removesuffix(".log.json.gz") for path in REQUESTS.glob("*.log.json.gz"))
GOES_ON_WITHOUT = ("hedge", "quorum")
"""Calls that the application does not wait for: a trace has them as it has the others."""
CAPTURES = sorted([*ROOT.glob("tests/data/**/*.pcap*"), *ROOT.glob("data/captures/*.pcap*")])


def members(replay: Any) -> set[frozenset[tuple[int, int]]]:
    """Each request as its messages."""
    rows = waterfall.frame(replay.request_messages()).drop_nulls("answered_ns")
    return {
        frozenset(part.select("position", "turn").iter_rows())
        for part in rows.partition_by("request", maintain_order=True)
    }


def calls(file: Path) -> list[dict[str, Any]]:
    """The spans below those of the requests."""
    (resource,) = json.loads(file.read_text())["resourceSpans"]
    return [span for span in resource["scopeSpans"][0]["spans"] if "parentSpanId" in span]


@pytest.mark.parametrize("name", NAMES)
def test_requests_that_are_exported_as_traces_are_read_back_as_the_same_requests(name: str, tmp_path: Path) -> None:
    found, file = fanin.trains(REQUESTS / f"{name}.pcap.gz"), tmp_path / "spans.json"
    written = spans.write(found, found.workload(), file)
    assert written.messages == len(spans.read(file)) > 0
    replay, told = spans.fit(found, found.workload(), file)
    assert (told.calls, told.fitting, told.requests_alike) == (written.messages, written.messages, written.requests)
    if name not in GOES_ON_WITHOUT:
        assert told.requests == told.requests_alone
    if not written.others:
        assert told.responses == told.responses_alone
    assert members(replay) == members(found.workload())
    # Written once more, the calls are the same, stages and all.
    again = tmp_path / "again.json"
    spans.write(found, replay, again)
    assert calls(again) == calls(file)


def test_a_trace_is_what_the_opentelemetry_protocol_says(tmp_path: Path) -> None:
    found, file = fanin.trains(REQUESTS / "two.pcap.gz"), tmp_path / "spans.json"
    spans.write(found, found.workload(), file)
    (resource,) = json.loads(file.read_text())["resourceSpans"]
    every = resource["scopeSpans"][0]["spans"]
    assert {a["key"] for a in resource["resource"]["attributes"]} == {"service.name"}
    roots = {span["traceId"]: span for span in every if "parentSpanId" not in span}
    for span in every:
        # trace.proto: 16 and 8 bytes in hexadecimal, 64-bit integers as text; kinds server (2) and client (3).
        assert re.fullmatch("[0-9a-f]{32}", span["traceId"])
        assert re.fullmatch("[0-9a-f]{16}", span["spanId"])
        assert int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
        root = roots[span["traceId"]]
        assert span["kind"] == (2 if span is root else 3)
        assert span.get("parentSpanId", root["spanId"]) == root["spanId"]
        assert int(root["startTimeUnixNano"]) <= int(span["startTimeUnixNano"])
        assert int(span["endTimeUnixNano"]) <= int(root["endTimeUnixNano"])
    assert len({span["spanId"] for span in every}) == len(every)
    # 8 servers first, then the other 4.
    calls = [span for span in every if span["traceId"] == next(iter(roots)) and span["kind"] == 3]
    stages = [a["value"]["intValue"] for span in calls for a in span["attributes"] if a["key"] == "fanin.stage"]
    assert sorted(stages) == ["1"] * 8 + ["2"] * 4


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_no_request_of_a_shipped_capture_is_what_no_application_did(path: Path) -> None:
    try:
        found = fanin.trains(path)
        replay = found.workload()
    except fanin.CaptureError:
        return  # no TCP, or no payload
    assert closing.faults(closing.closings(replay)) == {}
    each = waterfall.requests(waterfall.messages(replay)).drop_nulls("took_ms").sort("request")
    ours = found.requests().drop_nulls("completion_ms").sort("request")
    assert each["took_ms"].to_list() == pytest.approx(ours["completion_ms"].to_list())


def unanswered(workload: dict[str, Any]) -> dict[str, Any]:
    """The same without the answer of one message of every request."""
    for each in workload["rounds"]:
        if each["requests"]:
            connection, message = (each.get("answers") or each["requests"])[0]
            lost = workload["connections"][connection]["messages"][message]
            lost.update(response_bytes=0, pieces=[], took_ns=None)
            each.pop("took_ns", None)
    return workload


def test_a_capture_whose_requests_do_not_close_is_not_said_to_be_explained() -> None:
    found = fanin.trains(REQUESTS / "fan.pcap.gz")
    whole = found.workload()
    assert "100% of requests explained" in waiting.sentences(waiting.groups(whole))[0]
    lacking = fanin._native.Replay.from_json(json.dumps(unanswered(json.loads(whole.to_json()))))
    assert (waiting.explained(waiting.groups(lacking)) or 0.0) < 0.05
    assert "100%" not in waiting.sentences(waiting.groups(lacking))[0]
    assert any("do not close" in sentence for sentence in closing.sentences(lacking))


def test_a_request_that_takes_more_than_its_own_messages_is_reported_as_an_error_of_fanin() -> None:
    workload = json.loads(fanin.trains(REQUESTS / "fan.pcap.gz").workload().to_json())
    first = next(each for each in workload["rounds"] if each["requests"])
    first["took_ns"] *= 2
    replay = fanin._native.Replay.from_json(json.dumps(workload))
    told = closing.broken(closing.closings(replay))
    assert told is not None
    assert "1 last longer, or shorter, than their own messages" in told
    assert "This is an error of fanin's" in told


def test_a_request_that_was_read_as_two_is_doubted_and_the_shipped_services_are_not() -> None:
    for name in NAMES:
        replay = fanin.trains(REQUESTS / f"{name}.pcap.gz").workload()
        assert closing.unclear(closing.closings(replay)) is None, name
    workload = json.loads(fanin.trains(REQUESTS / "fan.pcap.gz").workload().to_json())
    messages = [c["messages"] for c in workload["connections"]]
    # Nothing waits for the last.
    *_, whole = (each for each in workload["rounds"] if each["requests"])
    rest = {**whole, "requests": whole["requests"][4:]}
    whole["requests"] = whole["requests"][:4]
    for each in (whole, rest):
        members = [messages[c][m] for c, m in each["requests"]]
        each.pop("answers", None)
        each["took_ns"] = max(m["start_ns"] + m["took_ns"] for m in members) - min(m["start_ns"] for m in members)
    workload["rounds"].append(rest)
    found = closing.closings(fanin._native.Replay.from_json(json.dumps(workload)))
    told = closing.unclear(found)
    assert closing.broken(found) is None
    assert told is not None
    assert "about 2 of 25 requests do not have the usual 12 messages, and some have only 4" in told


def test_shipped_captures_are_not_doubted_and_a_quorum_is() -> None:
    expected: dict[str, list[str]] = {"quorum": ["requests-unsure"], "pages": ["requests-unsure"]}
    for name in NAMES:
        found = closing.doubts(fanin.trains(REQUESTS / f"{name}.pcap.gz").workload())
        assert list(found) == expected.get(name, []), name
    # Each connection goes its own way here: what leaves together does so by chance.
    for path in [path for path in CAPTURES if path.name.startswith(("http_onoff", "http_spt", "memcached_incast"))]:
        assert closing.doubts(fanin.trains(path).workload()) == {}, path.name


@pytest.mark.parametrize(("share", "missed"), [(0.5, True), (0.0, False)])
def test_a_connection_that_disappears_is_told_by_the_requests_that_lack_it(
    share: float, missed: bool, tmp_path: Path
) -> None:
    """A server of which no connection is there at all cannot be missed."""
    linktype, packets = spoilt.read(ROOT / "data/captures/nginx_16to1_before.pcap.gz")
    file = spoilt.write(tmp_path / "lacking.pcap", linktype, spoilt.without(packets, 3, share))
    found = closing.doubts(fanin.trains(file).workload())
    assert list(found) == (["requests-unclear"] if missed else [])
    assert not missed or "connections are missing in the capture" in found["requests-unclear"]


def test_messages_that_leave_together_and_are_in_no_request_are_said_to_be_so() -> None:
    workload = json.loads(fanin.trains(REQUESTS / "fan.pcap.gz").workload().to_json())
    workload["rounds"] = []
    for group in workload["groups"]:
        group["rounds"] = 0
    for connection in workload["connections"]:
        for message in connection["messages"]:
            message.pop("release", None)
    replay = fanin._native.Replay.from_json(json.dumps(workload))
    found = closing.doubts(replay)
    assert list(found) == ["requests-unbound"]
    assert (
        "leave together with others, or so long after them or their answers each time, and belong to no request"
        in found["requests-unbound"]
    )
    assert "requests-unbound" in [warning.kind for warning in doubts.about_the_capture(replay, independent=False)]
    assert waiting.explained(waiting.groups(replay)) == 0.0


def test_the_typical_request_is_the_median_and_the_slow_one_of_the_slowest_hundredth() -> None:
    each = pl.DataFrame({"request": range(300), "took_ms": [float(n * 7 % 300) for n in range(300)]})
    took = dict(each.rows())
    typical, slow = waterfall.typical(each), waterfall.slow(each)
    assert typical is not None
    assert slow is not None
    assert sorted(took.values()).index(took[typical]) == 149
    assert sorted(took.values()).index(took[slow]) == 297


def test_the_page_of_requests_has_every_message_and_the_calls_of_the_traces(tmp_path: Path) -> None:
    found = fanin.trains(REQUESTS / "sem.pcap.gz")
    log = json.loads(gzip.decompress((REQUESTS / "sem.log.json.gz").read_bytes()))
    rows = [
        (server, begin, end, next(n for n, (first, last) in enumerate(log["rounds"]) if first <= begin <= last))
        for *_, server, _, begin, end in log["responses"]
    ]
    calls = tmp_path / "calls.csv"
    calls.write_text(pl.DataFrame(rows, schema=["peer", "begin", "end", "request"], orient="row").write_csv())
    replay, told = spans.fit(found, found.workload(), calls)
    found.write_files(tmp_path / "out", replay=replay, request=3, traced=told.placed)
    page = (tmp_path / "out/requests.html").read_text()
    block = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert block is not None
    data = json.loads(block[1])
    assert data["chosen"] == 3
    assert len(data["messages"]["label"]) == told.fitting
    assert all(
        to >= since for since, to in zip(*(data["messages"][f"traced_{end}_us"] for end in ("from", "to")), strict=True)
    )
    assert pl.read_parquet(tmp_path / "out/requests.parquet").height == len(data["requests"]) == 22
    with pytest.raises(fanin.CaptureError, match="--request 22"):
        found.write_files(tmp_path / "other", replay=replay, request=22)


def test_a_ranking_is_of_requests_unless_stages_or_responses_are_asked_for() -> None:
    capture, rack = REQUESTS / "two.pcap.gz", ROOT / "examples/rack.toml"
    replay = fanin.trains(capture).workload()
    stages = [took for took in replay.stage_times_ms() if took is not None]
    told = {
        of: fanin.compare(capture, rack, cc=["cubic"], seeds=1, rank_of=of, keep=False)
        for of in (None, "stages", "responses")
    }
    assert [result.rank_of for result in told.values()] == ["requests", "stages", "responses"]
    assert [result.measured.responses for result in told.values() if result.measured] == [28, len(stages), 28 * 12]
    (row,) = told["stages"].ranking
    assert (row.requests, row.stages, row.unfinished_stages) == (28, replay.stages, 0)
    # 8 servers, and then 4: two stages, each of which is a part of the request.
    assert 2 * 28 <= len(stages) <= 2 * 28 + 2
    assert row.completion_ms == row.stage_ms
    assert row.completion_ms["p50"].value < row.request_ms["p50"].value  # type: ignore[operator]
    assert told["stages"].stages.height == row.stages
