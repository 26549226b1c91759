"""Traces of an application: OTLP JSON, Jaeger JSON, or a CSV table."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from fanin.errors import CaptureError

PEERS = (
    "network.peer.address",
    "net.sock.peer.addr",
    "net.peer.ip",
    "server.address",
    "net.peer.name",
    "peer.ipv4",
    "peer.address",
)
"""Attributes that name the other side, the likeliest to be an address first (OpenTelemetry's and Jaeger's conventions)."""

STAGE = "fanin.stage"
"""Attribute that says which calls of a request left together, from 1; ``--spans-out`` writes it."""

COLUMNS = ("peer", "begin", "end")
NANOSECONDS = 1_000_000_000
LARGEST = 1e11
"""Unix seconds of the year 5138: what is larger counts nanoseconds."""
LAST_NS = 2**62
"""Unix nanoseconds of the year 2116: half of what 64 bits hold, so that differences and sums of two do not overflow."""
OBJECTS = 16
"""So many times its text a file of JSON takes in memory."""
LARGEST_TEXT = 1_000_000_000
"""Characters of a file, at most, where the system does not tell how much memory is left."""
PIECE = 1_000_000
"""Characters that are read at once."""
NO_TEXT = "is no text; give traces as OTLP JSON, Jaeger JSON or CSV"
SAID = 60
"""Characters of a value that a sentence repeats."""


@dataclass(frozen=True, slots=True)
class Span:
    """A call to a server, as the application saw it.

    Attributes
    ----------
    peer : str
        The server's IP address.
    begin_ns, end_ns : int
        Unix time in nanoseconds.
    request : str or None
        What tells calls of one request of the application from others: a trace's number.
    stage : int or None
        Which calls of the request left together, from 1, where the traces say it (:data:`STAGE`); else times tell.
    over_ns : int or None
        When the request was over, where the traces say it: the end of the span above its calls. Who has a quorum goes on before all calls end.
    """

    peer: str
    begin_ns: int
    end_ns: int
    request: str | None
    stage: int | None = None
    over_ns: int | None = None


def read(path: str | Path) -> list[Span]:
    r"""The calls to servers in a file of traces, in order of time.

    Of OTLP and Jaeger files these are the spans of kind *client* whose peer is an IP address. The request that they are of is the span above them: the
    nearest of kind *server*, else the outermost one of the file. A CSV file has the columns ``peer``, ``begin`` and ``end`` (Unix time in seconds, or in
    nanoseconds), ``request`` where it is known which calls belong together, and ``request_end`` where it is known when the request was over.

    Raises
    ------
    fanin.CaptureError
        When the file cannot be read or is no such file; the sentence names the line or the key.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "calls.csv")
    ...     _ = file.write_text("peer,begin,end,request\n10.0.0.1,1.5,1.75,a\n")
    ...     read(file)
    [Span(peer='10.0.0.1', begin_ns=1500000000, end_ns=1750000000, request='a', stage=None, over_ns=None)]
    """
    path = Path(path)
    try:
        text = _text(path)
    except OSError as error:
        raise CaptureError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise CaptureError(f"{path}: {NO_TEXT}") from None
    form = _of_json if text.lstrip().startswith(("{", "[")) else _of_csv
    spans = list(form(text, path))
    if not spans:
        raise CaptureError(
            f"{path}: has no call to a server: no span of kind client whose peer is an IP address "
            f"(attributes {', '.join(PEERS[:4])}), or no row"
        )
    return sorted(spans, key=lambda span: (span.begin_ns, span.end_ns, span.peer))


def _text(path: Path) -> str:
    """All of a file, without a byte order mark; a pipe or device without an end is refused before memory is."""
    from fanin.runs.executor import memory_left

    left = memory_left()
    most = LARGEST_TEXT if left is None else left // OBJECTS
    pieces, length = [], 0
    with path.open(encoding="utf-8-sig") as file:
        # A piece at a time: Ctrl-C is answered between two.
        while piece := file.read(PIECE):
            if "\0" in piece:
                raise CaptureError(f"{path}: {NO_TEXT}")
            pieces.append(piece)
            length += len(piece)
            if length > most:
                raise CaptureError(
                    f"{path}: is larger than {most // 1_000_000} MB, for which there is no memory; give fewer traces"
                )
    return "".join(pieces)


def _of_csv(text: str, path: Path) -> Iterator[Span]:
    rows = csv.DictReader(io.StringIO(text))
    try:
        yield from _rows(rows, path)
    except csv.Error as error:
        raise CaptureError(f"{path}:{rows.line_num + 1}: is no row of a table: {error}") from None


def _rows(rows: csv.DictReader[str], path: Path) -> Iterator[Span]:
    missing = [name for name in COLUMNS if name not in (rows.fieldnames or ())]
    if missing:
        raise CaptureError(
            f"{path}:1: has no column `{missing[0]}`; a table of calls begins with peer,begin,end or peer,begin,end,request"
        )
    names = list(rows.fieldnames or ())
    twice = [name for name in (*COLUMNS, "request", "request_end") if names.count(name) > 1]
    if twice:
        raise CaptureError(f"{path}:1: has two columns `{twice[0]}`; keep one")
    for row in rows:
        where = f"{path}:{rows.line_num}"
        peer = _address(row["peer"])
        if peer is None:
            raise CaptureError(f"{where}: peer is {_said(row['peer'])}, not an IP address")
        times = [_time(row[name], f"{where}: {name}") for name in ("begin", "end")]
        over = row.get("request_end")
        over_ns = _time(over, f"{where}: request_end") if over else None
        yield _span(peer, times[0], times[1], row.get("request") or None, where, over_ns=over_ns)


def _of_json(text: str, path: Path) -> Iterator[Span]:
    try:
        try:
            found = [json.loads(text, object_hook=_heard)]
        except json.JSONDecodeError as error:
            found = list(_lines(text, path, error))
    except RecursionError:
        raise CaptureError(f"{path}: is nested too deeply for traces") from None
    except CaptureError:
        raise
    except ValueError:
        # The only other one: a whole number of more digits than Python reads.
        raise CaptureError(f"{path}: is no JSON of traces: a whole number in it has thousands of digits") from None
    for number, document in enumerate(found):
        where = f"{path}" if len(found) == 1 else f"{path}:{number + 1}"
        if isinstance(document, Mapping) and "resourceSpans" in document:
            yield from _of_otlp(document, where)
        elif isinstance(document, Mapping) and "data" in document:
            yield from _of_jaeger(document, where)
        else:
            raise CaptureError(f"{where}: has neither `resourceSpans` (OTLP) nor `data` (Jaeger) at its top")


def _heard(made: dict[str, Any]) -> dict[str, Any]:
    """An object as it is: Ctrl-C is heard between lines of Python, and a file of traces may be read for ten seconds without one."""
    return made


def _lines(text: str, path: Path, whole: json.JSONDecodeError) -> Iterator[Any]:
    """The documents of a file that has one in each line, as the collector's file exporter writes it; `whole` says why it is not one document."""
    documents = 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                yield json.loads(line, object_hook=_heard)
            except json.JSONDecodeError as error:
                place, why = (number, error.msg) if documents else (whole.lineno, whole.msg)
                raise CaptureError(f"{path}:{place}: is no JSON: {why}") from None
            documents += 1


@dataclass(frozen=True, slots=True)
class _Node:
    """A span of any kind: what may be above a call."""

    parent: Any
    server: bool
    client: bool
    end_ns: int | None


_Nodes = Mapping[tuple[Any, Any], _Node]


def _over(nodes: _Nodes, trace: Any, parent: Any, known: dict[tuple[Any, Any], int | None]) -> int | None:
    """When the request above a call was over: the nearest span of kind server, else the outermost that is no call itself.

    `known` has it for spans that were passed before, so that a chain of calls is walked once and not from each of its links.
    """
    below, passed = list[_Node](), list[tuple[Any, Any]]()
    key, seen = (trace, parent), set[tuple[Any, Any]]()
    while key not in known and (node := nodes.get(key)) is not None and key not in seen:
        seen.add(key)
        passed.append(key)
        below.append(node)
        if node.server:
            break
        key = (trace, node.parent)
    over = known.get(key)
    for key, node in zip(reversed(passed), reversed(below), strict=True):
        if node.server or (over is None and not node.client):
            over = node.end_ns
        known[key] = over
    return over


def _of_otlp(document: Mapping[str, Any], where: str) -> Iterator[Span]:
    nodes: dict[tuple[Any, Any], _Node] = {}
    found: list[tuple[Any, Any, Span]] = []
    for r, resource in enumerate(_list(document, "resourceSpans", where)):
        at = f"{where}: resourceSpans[{r}]"
        older = "scopeSpans" not in resource
        for s, scope in enumerate(_list(resource, "instrumentationLibrarySpans" if older else "scopeSpans", at)):
            for n, span in enumerate(_list(scope, "spans", f"{at}.scopeSpans[{s}]")):
                here = f"{at}.scopeSpans[{s}].spans[{n}]"
                trace, parent, own = (_id(span, key, here) for key in ("traceId", "parentSpanId", "spanId"))
                kind = span.get("kind")
                client, server = kind in (3, "SPAN_KIND_CLIENT"), kind in (2, "SPAN_KIND_SERVER")
                over = None if client else _time(span.get("endTimeUnixNano"), f"{here}.endTimeUnixNano", unit=1)
                nodes[trace, own] = _Node(parent, server, client, over)
                if not client:
                    continue
                named = _list(span, "attributes", here)
                attributes = {_id(a, "key", here): _value(a.get("value")) for a in named}
                peer = _peer(attributes)
                if peer is not None:
                    begin = _time(span.get("startTimeUnixNano"), f"{here}.startTimeUnixNano", unit=1)
                    end = _time(span.get("endTimeUnixNano"), f"{here}.endTimeUnixNano", unit=1)
                    call = _span(peer, begin, end, trace or None, here, attributes.get(STAGE))
                    found.append((trace, parent, call))
    yield from _with_ends(found, nodes)


def _with_ends(found: Iterable[tuple[Any, Any, Span]], nodes: Mapping[tuple[Any, Any], _Node]) -> Iterator[Span]:
    """The calls, each with the end of the request above it, which may stand behind it in the file."""
    known: dict[tuple[Any, Any], int | None] = {}
    for trace, parent, call in found:
        yield replace(call, over_ns=_over(nodes, trace, parent, known))


def _of_jaeger(document: Mapping[str, Any], where: str) -> Iterator[Span]:
    nodes: dict[tuple[Any, Any], _Node] = {}
    found: list[tuple[Any, Any, Span]] = []
    for t, trace in enumerate(_list(document, "data", where)):
        for n, span in enumerate(_list(trace, "spans", f"{where}: data[{t}]")):
            here = f"{where}: data[{t}].spans[{n}]"
            tags = {_id(tag, "key", here): tag.get("value") for tag in _list(span, "tags", here)}
            trace_id = _id(span, "traceID", here) or _id(trace, "traceID", here)
            references = _list(span, "references", here)
            above = [_id(ref, "spanID", here) for ref in references if ref.get("refType") == "CHILD_OF"]
            parent = above[0] if above else _id(span, "parentSpanID", here)
            begin = _time(span.get("startTime"), f"{here}.startTime", unit=1_000)
            took = _time(span.get("duration"), f"{here}.duration", unit=1_000)
            end = _time(begin + took, f"{here}.duration", unit=1)
            client = tags.get("span.kind") == "client"
            nodes[trace_id, _id(span, "spanID", here)] = _Node(parent, tags.get("span.kind") == "server", client, end)
            peer = _peer(tags) if client else None
            if peer is not None:
                found.append((trace_id, parent, _span(peer, begin, end, trace_id, here, tags.get(STAGE))))
    yield from _with_ends(found, nodes)


def _list(of: Any, key: str, where: str) -> list[Any]:
    found = of.get(key) if isinstance(of, Mapping) else {}
    if found is None:
        # As exporters write an empty list.
        return []
    if not isinstance(found, list) or not all(isinstance(each, Mapping) for each in found):
        raise CaptureError(f"{where}: `{key}` is no list of objects")
    return found


def _id(of: Mapping[str, Any], key: str, where: str) -> str | None:
    """The name of a trace, a span or an attribute."""
    found = of.get(key)
    if found is None or isinstance(found, str):
        # JSON can write halves of characters, which are no text.
        return found and found.encode("utf-8", "replace").decode()
    if isinstance(found, int):
        return str(found)
    raise CaptureError(f"{where}: `{key}` is {_said(found)}, not text")


def _said(value: Any) -> str:
    """A value in a sentence."""
    text = repr(value)
    return text if len(text) <= SAID else f"{text[:SAID]}..."


def _value(value: Any) -> Any:
    return next(iter(value.values()), None) if isinstance(value, Mapping) else value


def _peer(attributes: Mapping[Any, Any]) -> str | None:
    return next((found for key in PEERS if (found := _address(attributes.get(key))) is not None), None)


def _address(text: Any) -> str | None:
    """An address, its port left out."""
    if not isinstance(text, str):
        return None
    text = text.strip()
    for candidate in (text, text.rpartition(":")[0].strip("[]")):
        try:
            found = ip_address(candidate)
            # As a socket of both families names a peer of IPv4.
            return str(getattr(found, "ipv4_mapped", None) or found)
        except ValueError:
            continue
    return None


def _time(value: Any, where: str, unit: int | None = None) -> int:
    """In nanoseconds; without a unit what is no number of nanoseconds is one of seconds."""
    try:
        number = float(value)
        if not math.isfinite(number) or number < 0:
            raise ValueError
        seconds = unit is None and number <= LARGEST
        scale = NANOSECONDS if seconds else unit or 1
        # A whole number has more digits than a float keeps.
        time = round(number * scale) if seconds or isinstance(value, float) else int(value) * scale
        if time > LAST_NS:
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise CaptureError(f"{where} is {_said(value)}, not a Unix time") from None
    return time


def _span(
    peer: str, begin: int, end: int, request: Any, where: str, stage: Any = None, *, over_ns: int | None = None
) -> Span:
    if end < begin:
        raise CaptureError(f"{where}: ends before it begins")
    try:
        number = None if stage is None else int(stage)
        if number is not None and not -LAST_NS <= number <= LAST_NS:
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise CaptureError(f"{where}: {STAGE} is {_said(stage)}, not a whole number") from None
    return Span(peer, begin, end, None if request is None else str(request), number, over_ns)
