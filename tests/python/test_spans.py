"""Traces of an application beside the capture of its traffic: what is read, what is said, what is replayed."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import fanin
import polars as pl
import pytest
from fanin import spans

DATA = Path(__file__).parents[1] / "data"
SERVICES, REQUESTS = DATA / "services", DATA / "requests"


@pytest.fixture(scope="module")
def capture() -> fanin.TrainsResult:
    return fanin.trains(SERVICES / "mc.pcap.gz")


def logged(capture: fanin.TrainsResult) -> pl.DataFrame:
    """What the application logged, with the number of its request: rounds are milliseconds apart."""
    start = capture.summary["start_epoch_ns"]
    rows = pl.read_csv(SERVICES / "mc_responses.csv").sort("begin_s")
    later = rows["begin_s"].to_list()
    until, number, numbers = 0.0, 0, []
    for begin, end in zip(later, rows["end_s"].to_list(), strict=True):
        number += begin > until + 2e-3
        until = max(until, end)
        numbers.append(number)
    at = [(pl.col(f"{name}_s") * 1e9).round().cast(pl.Int64) + start for name in ("begin", "end")]
    return rows.select("server", at[0].alias("begin"), at[1].alias("end"), pl.Series("request", numbers))


def otlp(calls: pl.DataFrame) -> str:
    def span(server: str, begin: int, end: int, request: int) -> dict[str, object]:
        return {
            "traceId": f"{request:032x}",
            "kind": 3,
            "startTimeUnixNano": str(begin),
            "endTimeUnixNano": str(end),
            "attributes": [{"key": "network.peer.address", "value": {"stringValue": server}}],
        }

    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span(*row) for row in calls.rows()]}]}]})


def jaeger(calls: pl.DataFrame) -> str:
    def span(server: str, begin: int, end: int, request: int) -> dict[str, object]:
        tags = [{"key": "span.kind", "value": "client"}, {"key": "net.peer.ip", "value": server}]
        return {
            "traceID": f"{request:x}",
            "startTime": begin // 1000,
            "duration": (end - begin) // 1000,
            "tags": tags,
        }

    return json.dumps({"data": [{"traceID": "0", "spans": [span(*row) for row in calls.rows()]}]})


def table(calls: pl.DataFrame) -> str:
    return calls.rename({"server": "peer"}).write_csv()


@pytest.mark.parametrize("form", [otlp, jaeger, table])
def test_requests_are_those_of_the_traces_in_each_form(
    capture: fanin.TrainsResult, tmp_path: Path, form: object
) -> None:
    calls, file = logged(capture), tmp_path / "traces"
    file.write_text(form(calls))  # type: ignore[operator]
    replay, told = spans.fit(capture, capture.workload(), file)
    assert (told.calls, told.fitting) == (calls.height, calls.height)
    requests = calls["request"].n_unique()
    assert (replay.rounds, told.requests.count) == (requests, requests)
    took = calls.group_by("request").agg(pl.col("end").max() - pl.col("begin").min())["end"].sort() / 1e6
    assert told.requests.p50_ms == pytest.approx(took[len(took) // 2], abs=0.01)
    # Each request but the first waits for the one before it.
    messages = [m for c in json.loads(replay.to_json())["connections"] for m in c["messages"]]
    assert (
        sum(m.get("release", {}).get("by") == "round" for m in messages) == calls.filter(pl.col("request") > 1).height
    )


def test_a_stage_waits_for_the_answer_that_its_trace_shows(capture: fanin.TrainsResult, tmp_path: Path) -> None:
    # Two rounds of the log as one request: the second is a stage of it.
    calls = logged(capture).with_columns((pl.col("request") + 1) // 2)
    file = tmp_path / "calls.csv"
    file.write_text(table(calls))
    replay, _ = spans.fit(capture, capture.workload(), file)
    workload = json.loads(replay.to_json())
    by = [m["release"]["by"] for c in workload["connections"] for m in c["messages"] if "release" in m]
    requests = [each for each in workload["rounds"] if each["requests"]]
    assert len(requests) == calls["request"].n_unique()
    # Half of the calls wait for all answers of the stage before, the others for the request before.
    gates = [each for each in workload["rounds"] if not each["requests"]]
    assert len(requests) - 1 <= len(gates) <= len(requests)
    assert {len(gate["answers"]) for gate in gates} == {12}
    assert by.count("round") == pytest.approx(calls.height - 12, abs=2)


def test_a_call_behind_a_semaphore_waits_for_so_many_answers_as_its_trace_shows(tmp_path: Path) -> None:
    log = json.loads(gzip.decompress((REQUESTS / "sem.log.json.gz").read_bytes()))
    rows = [
        (server, begin, end, next(n for n, (first, last) in enumerate(log["rounds"]) if first <= begin <= last))
        for *_, server, _, begin, end in log["responses"]
    ]
    file = tmp_path / "calls.csv"
    file.write_text(pl.DataFrame(rows, schema=["peer", "begin", "end", "request"], orient="row").write_csv())
    found = fanin.trains(REQUESTS / "sem.pcap.gz")
    replay, told = spans.fit(found, found.workload(), file)
    assert told.fitting == told.calls == len(rows)
    workload = json.loads(replay.to_json())
    requests = [each for each in workload["rounds"] if each["requests"]]
    # Twelve servers, at most four calls under way: four leave at once, each later one with one more answer of those before it.
    assert {(len(each["requests"]), len(each["answers"])) for each in requests} == {(4, 12)}
    inside = [
        (m["release"]["answers"], len(gate["answers"]))
        for c in workload["connections"]
        for m in c["messages"]
        if m["release"]["by"] == "round" and not (gate := workload["rounds"][m["release"]["round"]])["requests"]
    ]
    assert len(inside) == 8 * len(requests)
    assert all(1 <= need <= of <= 11 for need, of in inside)
    assert sum(of - need <= 3 for need, of in inside) > 0.9 * len(inside)
    edges = {edge["event"]: edge["requests"] for edge in workload["groups"][0]["released_by"]}
    assert edges == {"answers": 4 * (len(requests) - 1), "inside": 8 * len(requests), "nothing": 4}


def test_what_is_no_trace_is_refused_with_its_place(tmp_path: Path, capture: fanin.TrainsResult) -> None:
    wrong = {
        "peer,begin\n": r":1: has no column `end`",
        "peer,begin,end\nhost,1,2\n": r":2: peer is 'host', not an IP address",
        "peer,begin,end\n10.0.0.1,1,x\n": r":2: end is 'x', not a Unix time",
        "peer,begin,end\n10.0.0.1,2,1\n": r":2: ends before it begins",
        "peer,begin,end\n": r"has no call to a server",
        "{": r":1: is no JSON",
        '{"traces": []}': r"has neither `resourceSpans` \(OTLP\) nor `data` \(Jaeger\)",
        '{"resourceSpans": 3}': r"`resourceSpans` is no list of objects",
        "peer,begin,end\n10.9.1.1,1,2\n": r"0 of its 1 calls fit messages of the capture",
    }
    file = tmp_path / "traces"
    for text, sentence in wrong.items():
        file.write_text(text)
        with pytest.raises(fanin.CaptureError, match=sentence):
            spans.fit(capture, capture.workload(), file)


def test_a_comparison_says_what_the_capture_alone_would_have_said(capture: fanin.TrainsResult, tmp_path: Path) -> None:
    file = tmp_path / "calls.csv"
    calls = logged(capture)
    file.write_text(table(calls))
    result = fanin.compare(SERVICES / "mc.pcap.gz", "examples/rack.toml", cc=["cubic"], seeds=1, spans=file, keep=False)
    assert result.spans is not None
    assert result.to_dict()["spans"]["requests"]["count"] == calls["request"].n_unique()
    assert any("by the capture alone" in note for note in result.notes)
