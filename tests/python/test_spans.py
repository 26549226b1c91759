"""Traces of an application beside the capture of its traffic: what is read, what is said, what is replayed."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fanin
import polars as pl
import pytest
from fanin import spans
from fanin.capture import waiting
from fanin.spans.reading import _Node, _over

from .conftest import RACK, SMALL

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


SERVER, CLIENT = 2, 3


def own_ends_otlp(calls: list[tuple[str, float, float, int]], rounds: list[tuple[float, float]]) -> str:
    """The calls below a span of the request, and that below the call of a caller, which takes longer."""

    def span(
        trace: int, own: str, above: str, kind: int, begin: float, end: float, peer: str = ""
    ) -> dict[str, object]:
        told = [{"key": "network.peer.address", "value": {"stringValue": peer}}] if peer else []
        times = {"startTimeUnixNano": f"{begin * 1e9:.0f}", "endTimeUnixNano": f"{end * 1e9:.0f}"}
        return {
            "traceId": f"{trace:032x}",
            "spanId": own,
            "parentSpanId": above,
            "kind": kind,
            "attributes": told,
            **times,
        }

    found = [span(n, f"c{k}", "work", CLIENT, begin, end, peer) for k, (peer, begin, end, n) in enumerate(calls)]
    for n, (begin, end) in enumerate(rounds):
        found.append(span(n, "work", "request", 1, begin, end))
        found.append(span(n, "request", "caller", SERVER, begin, end))
        found.append(span(n, "caller", "", CLIENT, begin - 1, end + 1, "192.0.2.1"))
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": found}]}]})


def own_ends_jaeger(calls: list[tuple[str, float, float, int]], rounds: list[tuple[float, float]]) -> str:
    def span(trace: int, own: str, above: str, begin: float, end: float, **tags: str) -> dict[str, object]:
        begin, end = round(begin * 1e6), round(end * 1e6)
        references = [{"refType": "CHILD_OF", "traceID": f"{trace:x}", "spanID": above}] if above else []
        told = [{"key": key.replace("_", "."), "value": value} for key, value in tags.items()]
        return {"spanID": own, "references": references, "startTime": begin, "duration": end - begin, "tags": told}

    traces = [
        {
            "traceID": f"{n:x}",
            "spans": [
                span(n, "request", "", begin, end),
                *(
                    span(n, f"c{k}", "request", first, last, span_kind="client", net_peer_ip=peer)
                    for k, (peer, first, last, of) in enumerate(calls)
                    if of == n
                ),
            ],
        }
        for n, (begin, end) in enumerate(rounds)
    ]
    return json.dumps({"data": traces})


def own_ends_table(calls: list[tuple[str, float, float, int]], rounds: list[tuple[float, float]]) -> str:
    rows = [(*call, rounds[call[-1]][1]) for call in calls]
    return pl.DataFrame(rows, schema=["peer", "begin", "end", "request", "request_end"], orient="row").write_csv()


@pytest.mark.parametrize("form", [own_ends_otlp, own_ends_jaeger, own_ends_table])
@pytest.mark.parametrize("name", ["quorum", "hedge"])
def test_a_request_ends_when_its_own_span_does_and_not_with_a_call_that_nobody_waits_for(
    name: str, form: Callable[..., str], tmp_path: Path
) -> None:
    log = json.loads(gzip.decompress((REQUESTS / f"{name}.log.json.gz").read_bytes()))
    rounds = [(begin, end) for begin, end in log["rounds"]]
    calls = [
        (
            f"10.9.1.{server + 1}",
            begin,
            end,
            next(n for n, (first, last) in enumerate(rounds) if first <= begin <= last),
        )
        for server, _, begin, end in log["responses"]
    ]
    file = tmp_path / "traces"
    file.write_text(form(calls, rounds))
    found = fanin.trains(REQUESTS / f"{name}.pcap.gz")
    replay, told = spans.fit(found, found.workload(), file)
    assert (told.calls, told.fitting, told.requests.count) == (len(calls), len(calls), len(rounds))
    first = [min(begin for _, begin, _, of in calls if of == n) for n in range(len(rounds))]
    took = sorted((end - begin) * 1e3 for begin, (_, end) in zip(first, rounds, strict=True))
    assert told.requests.p99_ms == pytest.approx(took[-1], abs=0.002)
    # A call is held back for 60 to 90 ms now and then; the request is over long before.
    slowest = max((end - first[of]) * 1e3 for _, _, end, of in calls)
    assert slowest > 1.5 * took[-1]
    workload = json.loads(replay.to_json())
    requests = [each for each in workload["rounds"] if each["requests"]]
    assert max(each["took_ns"] for each in requests) / 1e6 <= took[-1]
    for n, each in enumerate(requests):
        members = each.get("answers") or each["requests"]
        in_time = sum(end <= rounds[n][1] + 5e-5 for _, _, end, of in calls if of == n)
        assert each.get("waits_for", len(members)) == in_time
    # What the next request waits for is what the application waited for.
    for message in (m for c in workload["connections"] for m in c["messages"]):
        release = message.get("release", {})
        if release.get("by") == "round" and (before := workload["rounds"][release["round"]])["requests"]:
            assert release["answers"] == before.get("waits_for", len(before.get("answers") or before["requests"]))


def test_a_span_that_ends_before_each_of_its_calls_does_not_end_the_request(tmp_path: Path) -> None:
    log = json.loads(gzip.decompress((REQUESTS / "fan.log.json.gz").read_bytes()))
    calls = [
        (
            server,
            begin,
            end,
            next(n for n, (first, last) in enumerate(log["rounds"]) if first <= begin <= last),
        )
        for *_, server, _, begin, end in log["responses"]
    ]
    file = tmp_path / "calls.csv"
    file.write_text(own_ends_table(calls, [(begin, begin) for begin, _ in log["rounds"]]))
    found = fanin.trains(REQUESTS / "fan.pcap.gz")
    replay, _ = spans.fit(found, found.workload(), file)
    assert not any("waits_for" in each for each in json.loads(replay.to_json())["rounds"])


def test_what_is_no_trace_is_refused_with_its_place(tmp_path: Path, capture: fanin.TrainsResult) -> None:
    wrong = {
        "peer,begin\n": r":1: has no column `end`",
        "peer,begin,end\nhost,1,2\n": r":2: peer is 'host', not an IP address",
        "peer,begin,end\n10.0.0.1,1,x\n": r":2: end is 'x', not a Unix time",
        "peer,begin,end\n10.0.0.1,2,1\n": r":2: ends before it begins",
        "peer,begin,end,request_end\n10.0.0.1,1,2,x\n": r":2: request_end is 'x', not a Unix time",
        "peer,begin,end\n": r"has no call to a server",
        "{": r":1: is no JSON",
        '{"resourceSpans": []}\n\n{"resourceSpans": [}\n': r":3: is no JSON",
        '{"resourceSpans": []\n}}': r":2: is no JSON",
        "peer,begin,end,begin\n10.0.0.1,1,2,1\n": r":1: has two columns `begin`",
        '{"traces": []}': r"has neither `resourceSpans` \(OTLP\) nor `data` \(Jaeger\)",
        '{"resourceSpans": 3}': r"`resourceSpans` is no list of objects",
        "peer,begin,end\n10.9.1.1,1,2\n": r"0 of its 1 calls fit messages of the capture",
    }
    file = tmp_path / "traces"
    for text, sentence in wrong.items():
        file.write_text(text)
        with pytest.raises(fanin.CaptureError, match=sentence):
            spans.fit(capture, capture.workload(), file)


def test_traces_of_a_single_request_say_that_nothing_releases_the_next(
    tmp_path: Path, capture: fanin.TrainsResult
) -> None:
    file = tmp_path / "calls.csv"
    file.write_text("".join(table(logged(capture)).splitlines(keepends=True)[:2]))
    replay, told = spans.fit(capture, capture.workload(), file)
    assert told.requests.count == 1
    assert waiting.sentences(waiting.groups(replay))


def test_a_byte_order_mark_a_mapped_address_and_a_fraction_are_read(tmp_path: Path) -> None:
    file = tmp_path / "traces"
    file.write_text("\ufeffpeer,begin,end\n::ffff:10.0.0.1,1.5,1.75\n", encoding="utf-8")
    assert [(span.peer, span.begin_ns) for span in spans.read(file)] == [("10.0.0.1", 1_500_000_000)]
    (call,) = JAEGER["data"][0]["spans"]
    file.write_text("\ufeff" + json.dumps({"data": [{"spans": [call | {"duration": 0.5}]}]}), encoding="utf-8")
    (span,) = spans.read(file)
    assert span.end_ns - span.begin_ns == 500


def test_traces_without_an_end_are_refused_before_memory_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fanin.runs.executor.memory_left", lambda: 64_000_000)
    with pytest.raises(fanin.CaptureError, match="/dev/zero: is no text"):
        spans.read("/dev/zero")
    with subprocess.Popen(["yes"], stdout=subprocess.PIPE) as endless:
        assert endless.stdout is not None
        with pytest.raises(fanin.CaptureError, match="is larger than 4 MB"):
            spans.read(f"/dev/fd/{endless.stdout.fileno()}")
        endless.kill()


def test_ctrl_c_ends_the_reading_of_traces_without_an_end(tmp_path: Path) -> None:
    pipe = tmp_path / "calls.csv"
    os.mkfifo(pipe)
    words = [Path(sys.executable).parent / "fanin", "compare", SMALL, "--rack", RACK, "--spans", pipe, "--out", "out"]
    with (
        subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as command,
        pipe.open("w") as end,
        subprocess.Popen(["yes"], stdout=end) as endless,
    ):
        time.sleep(0.5)
        command.send_signal(signal.SIGINT)
        said = command.communicate(timeout=20)[1]
        endless.kill()
    assert (command.returncode, said) == (130, "fanin: interrupted, nothing was written\n")
    assert list(tmp_path.iterdir()) == [pipe]


def test_ctrl_c_is_heard_while_json_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "traces.json"
    file.write_text(json.dumps({"data": [{"spans": [{"traceID": str(n)} for n in range(300_000)]}]}))
    whole = json.loads

    def soon(text: str, **how: object) -> object:
        # Of this process's own time, a small part of what the file takes.
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.01)
        return whole(text, **how)

    monkeypatch.setattr(json, "loads", soon)
    before = signal.signal(signal.SIGVTALRM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt) as heard:
            spans.read(file)
    finally:
        signal.signal(signal.SIGVTALRM, before)
    assert "_heard" in [entry.name for entry in heard.traceback]


def test_a_comparison_says_what_the_capture_alone_would_have_said(capture: fanin.TrainsResult, tmp_path: Path) -> None:
    file = tmp_path / "calls.csv"
    calls = logged(capture)
    file.write_text(table(calls))
    result = fanin.compare(SERVICES / "mc.pcap.gz", "examples/rack.toml", cc=["cubic"], seeds=1, spans=file, keep=False)
    assert result.spans is not None
    assert result.to_dict()["spans"]["requests"]["count"] == calls["request"].n_unique()
    assert any("by the capture alone" in note for note in result.notes)


HOSTILE = [
    None, True, 0, -5, 10**30, 1e308, float("nan"), float("inf"), "", "x", "-1", "9" * 5000, "\ud800", [], [[]], [None], {}, {"a": []},
]  # fmt: skip
CALL = {
    "traceId": "01", "spanId": "02", "parentSpanId": "03", "kind": 3, "startTimeUnixNano": "1700000000000000000",
    "endTimeUnixNano": "1700000000001000000",
    "attributes": [{"key": "network.peer.address", "value": {"stringValue": "10.0.0.1"}}, {"key": "fanin.stage", "value": {"intValue": 1}}],
}  # fmt: skip
CYCLE = [
    {**CALL, "spanId": "03", "parentSpanId": "04", "kind": 1},
    {**CALL, "spanId": "04", "parentSpanId": "03", "kind": 1},
]
OTLP = {"resourceSpans": [{"scopeSpans": [{"spans": [CALL, CALL, *CYCLE]}]}]}
JAEGER = {
    "data": [{"traceID": "01", "spans": [{
        "spanID": "02", "references": [{"refType": "CHILD_OF", "spanID": "03"}], "startTime": 1700000000000000, "duration": 1000,
        "tags": [{"key": "span.kind", "value": "client"}, {"key": "peer.ipv4", "value": "10.0.0.1"}],
    }]}]
}  # fmt: skip


def replaced(document: Any, value: Any) -> Iterator[Any]:
    """The document with each of its parts in turn replaced by a value."""
    yield value
    for key in document if isinstance(document, dict) else range(len(document)) if isinstance(document, list) else ():
        for part in replaced(document[key], value):
            copy = document.copy()
            copy[key] = part
            yield copy


@pytest.mark.parametrize("document", [OTLP, JAEGER], ids=["otlp", "jaeger"])
def test_a_hostile_value_anywhere_in_a_trace_is_read_or_refused_in_a_short_sentence(
    document: dict[str, Any], tmp_path: Path
) -> None:
    file = tmp_path / "traces"
    file.write_text(json.dumps(document))
    assert spans.read(file)
    refused = []
    for value in HOSTILE:
        for changed in replaced(document, value):
            try:
                text = json.dumps(changed)
            except ValueError:
                continue
            file.write_text(text)
            try:
                for span in spans.read(file):
                    assert 0 <= span.begin_ns <= span.end_ns < 2**63
                    (span.request or "").encode()
            except fanin.CaptureError as error:
                refused.append(str(error))
    assert len(refused) > 100
    assert max(map(len, refused)) < 400


def test_hostile_tables_and_depths_are_refused_in_a_sentence(tmp_path: Path) -> None:
    wrong = {
        "[" * 200_000: "is nested too deeply for traces",
        '{"data":' * 100_000: "is nested too deeply for traces",
        '{"data": ' + "9" * 10_000 + "}": "is no JSON of traces",
        "peer,begin,end\n10.0.0.1,1e308,1e308\n": ":2: begin is '1e308', not a Unix time",
        "peer,begin,end\n10.0.0.1,nan,1\n": ":2: begin is 'nan', not a Unix time",
        "peer,begin,end\n10.0.0.1,-1,1\n": ":2: begin is '-1', not a Unix time",
        "peer,begin,end\n10.0.0.1\n": ":2: begin is None, not a Unix time",
        f"peer,begin,end\n10.0.0.1,{'1' * 140_000},1\n": ":2: is no row of a table",
        f"peer,begin,end\n{'x' * 1000},1,1\n": r"peer is '.{59}\.\.\., not an IP",
    }
    file = tmp_path / "traces"
    for text, sentence in wrong.items():
        file.write_text(text)
        with pytest.raises(fanin.CaptureError, match=sentence) as raised:
            spans.read(file)
        assert len(str(raised.value)) < 400


@pytest.mark.parametrize(
    ("parents", "kinds", "over"),
    [
        # Nearest server; else the outermost that is no call; calls alone have none; a circle ends.
        ([None, 1, 2, 3], "SSIC", [1, 2, 2]),
        ([None, 1, 2, 3], "IIIC", [1, 1, 1]),
        ([None, 1, 2, 3], "CCCC", [None, None, None]),
        ([None, 1, 2, 3], "ICIC", [1, 1, 1]),
        ([3, 1, 2, 3], "CCCC", [None, None, None]),
    ],
)
def test_the_request_above_a_call_is_the_nearest_server_else_the_outermost_span(
    parents: list[int | None], kinds: str, over: list[int | None]
) -> None:
    nodes = {
        ("t", n): _Node(parent, kind == "S", kind == "C", None if kind == "C" else n)
        for n, (parent, kind) in enumerate(zip(parents, kinds, strict=True), start=1)
    }
    assert [_over(nodes, "t", n, {}) for n in (1, 2, 3)] == over
    known: dict[tuple[Any, Any], int | None] = {}
    assert [_over(nodes, "t", n, known) for n in (3, 2, 1)] == over[::-1]


def test_a_chain_of_calls_is_walked_once() -> None:
    class Counted(dict[tuple[Any, Any], _Node]):
        asked = 0

        def get(self, key: Any, default: Any = None) -> Any:
            self.asked += 1
            return super().get(key, default)

    count = 2_000
    nodes = Counted({("t", n): _Node(n - 1, False, n > 1, 7 if n == 1 else None) for n in range(1, count + 1)})
    known: dict[tuple[Any, Any], int | None] = {}
    assert {_over(nodes, "t", n, known) for n in range(1, count + 1)} == {7}
    assert nodes.asked <= count + 1
