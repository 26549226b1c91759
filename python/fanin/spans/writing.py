"""The requests of a capture as OTLP JSON, which tracing tools read and ``--spans`` reads back.

Names of fields and the encoding of numbers and identifiers are those of the OpenTelemetry protocol's JSON (opentelemetry-proto, trace.proto and "JSON
Protobuf Encoding"): lowerCamelCase, 64-bit integers as decimal text, identifiers in hexadecimal, kinds as numbers. Attributes are OpenTelemetry's
semantic conventions where these have one, ``fanin.*`` else.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from fanin.disk.files import write_text
from fanin.spans.reading import STAGE
from fanin.statistics.frames import frame

if TYPE_CHECKING:
    from fanin._native import Replay
    from fanin.capture.traffic import TrainsResult

SERVER, CLIENT = 2, 3
"""Kinds of spans (``SpanKind`` in trace.proto)."""


@dataclass(frozen=True, slots=True)
class Written:
    """What was written.

    Attributes
    ----------
    requests, messages : int
        Requests (a trace each) and their messages (a span of kind client each).
    incomplete : int
        Requests whose end is not in the capture, and were left out.
    others : int
        Messages of the capture that are in no request, and were left out.
    """

    requests: int
    messages: int
    incomplete: int
    others: int

    def sentence(self, file: str) -> str:
        """For people.

        Examples
        --------
        >>> Written(22, 264, 0, 3).sentence("spans.json")
        'spans.json: 22 requests as traces with 264 messages; left out: 3 messages that are in no request'
        """
        left = [
            f"{count} {what}"
            for count, what in (
                (self.incomplete, "requests whose end is not in the capture"),
                (self.others, "messages that are in no request"),
            )
            if count
        ]
        told = f"{file}: {self.requests} requests as traces with {self.messages} messages"
        return told + (f"; left out: {' and '.join(left)}" if left else "")


def write(
    found: TrainsResult, replay: Replay, path: str | Path, *, of: Sequence[str | os.PathLike[str] | None] = ()
) -> Written:
    """Write each request of a capture as a trace: one span for the request, below it one for each message.

    A message's span begins when it left the aggregator and ends when all of its answer had come, and has the server's address, the bytes of both ways,
    its stage, and its connection as ``tcp.stream`` numbers it. Requests whose end is not in the capture are left out, and so is what belongs to no request.

    Parameters
    ----------
    found : TrainsResult
        The capture.
    replay : Replay
        Its traffic towards one host: :meth:`fanin.TrainsResult.workload`.
    path : path
        File to write, whole or not at all.
    of : sequence of path or None
        Files that are read, which it does not replace.

    Raises
    ------
    fanin.OutputError
        When the file cannot be written.

    Examples
    --------
    >>> import fanin, tempfile
    >>> from fanin import spans
    >>> found = fanin.trains("tests/data/requests/chain.pcap.gz")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "spans.json")
    ...     told = write(found, found.workload(), file)
    ...     told.requests, told.messages, len(spans.read(file))
    (46, 184, 184)
    """
    rows = frame(replay.request_messages())
    # A call that was given up has no end.
    messages = rows.filter(pl.col("took_ns").is_not_null() & pl.col("answered_ns").is_not_null())
    epoch = int(found.summary["start_epoch_ns"])
    service = [{"key": "service.name", "value": {"stringValue": replay.aggregator}}]
    document = {
        "resourceSpans": [
            {
                "resource": {"attributes": service},
                "scopeSpans": [
                    {
                        "scope": {"name": "fanin", "version": found.version},
                        "spans": list(_spans(messages, epoch, replay.aggregator)),
                    }
                ],
            }
        ]
    }
    write_text(json.dumps(document, separators=(",", ":")) + "\n", path, "--spans-out", of=of)
    asked = sum(
        bool(message["request_bytes"])
        for connection in json.loads(replay.to_json())["connections"]
        if not connection.get("upstream")
        for message in connection["messages"]
    )
    requests, complete = rows["request"].n_unique(), messages["request"].n_unique()
    return Written(
        complete, messages.height, requests - complete, asked - rows.filter(pl.col("request_bytes") > 0).height
    )


def _spans(messages: pl.DataFrame, epoch: int, aggregator: str) -> Iterator[dict[str, Any]]:
    """A span for each request, and below it those of its messages."""
    for (number,), rows in messages.group_by("request", maintain_order=True):
        trace = _identifier(16, epoch, aggregator, number)
        root = _identifier(8, epoch, aggregator, number)
        begin = int(rows["begin_ns"][0])
        end = begin + int(rows["took_ns"][0])
        stages, servers = rows["stage"].n_unique(), rows["server"].n_unique()
        of = {"fanin.request": number, "fanin.stages": stages, "fanin.messages": rows.height, "fanin.servers": servers}
        yield _span(trace, root, None, "request", SERVER, epoch + begin, epoch + end, of)
        for n, row in enumerate(rows.iter_rows(named=True)):
            attributes = {
                "server.address": row["server"],
                "network.peer.address": row["server"],
                STAGE: row["stage"] + 1,
                "fanin.request_bytes": row["request_bytes"],
                "fanin.response_bytes": row["response_bytes"],
                "fanin.tcp_stream": row["connection"],
            }
            own = _identifier(8, epoch, aggregator, number, n)
            name, times = f"ask {row['server']}", (epoch + row["asked_ns"], epoch + row["answered_ns"])
            yield _span(trace, own, root, name, CLIENT, *times, attributes)


def _span(
    trace: str, own: str, parent: str | None, name: str, kind: int, begin: int, end: int, attributes: dict[str, Any]
) -> dict[str, Any]:
    found = {
        "traceId": trace,
        "spanId": own,
        "name": name,
        "kind": kind,
        "startTimeUnixNano": str(begin),
        "endTimeUnixNano": str(end),
        "attributes": [{"key": key, "value": _value(value)} for key, value in attributes.items()],
        "status": {},
    }
    return found if parent is None else {**found, "parentSpanId": parent}


def _value(value: object) -> dict[str, str]:
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": str(value)}


def _identifier(length: int, *parts: object) -> str:
    """So many bytes in hexadecimal; the same for the same capture and request, and never all zero, which is no identifier."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[: 2 * length - 1] + "1"
