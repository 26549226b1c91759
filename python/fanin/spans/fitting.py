"""Puts an application's calls in the place of what was inferred of them: bytes and network from packets, requests from traces."""

from __future__ import annotations

import json
import statistics
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fanin.errors import CaptureError
from fanin.spans.reading import Span, read
from fanin.statistics.frames import frame
from fanin.statistics.seeds import nearest_rank

if TYPE_CHECKING:
    from fanin._native import Replay
    from fanin.capture.traffic import TrainsResult

CLOCKS_NS = 2_000_000
"""Log and capture of one machine agree to this; the application's own time lies in it too."""

LEAST_FITTING = 0.5
"""With fewer calls that fit messages of the capture, these are traces of something else."""

BOUND_NS = 50_000
"""What begins so little before an answer was logged may have been released by it: threads are not logged in order."""

LATEST = 1_000
"""Requests that began last: the one before is looked for among them."""

Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Times:
    """How many there are, and the middle and the tail of their durations in milliseconds; None of none."""

    count: int
    p50_ms: float | None
    p99_ms: float | None

    @classmethod
    def of(cls, took_ns: Sequence[int]) -> Times:
        """Of durations in nanoseconds."""
        took = sorted(took_ns)
        if not took:
            return cls(0, None, None)
        at = [(nearest_rank(took, len(took), q) or 0) / 1e6 for q in (0.5, 0.99)]
        return cls(len(took), round(at[0], 3), round(at[1], 3))


@dataclass(frozen=True, slots=True)
class Fitted:
    """What the traces say, beside what the capture alone would have said.

    Attributes
    ----------
    file : str
        The traces.
    calls, fitting : int
        Calls within the time of the capture to servers in it, and how many of them are messages of the capture.
    messages : int
        Messages of the capture to these servers in the time of the traces.
    responses, responses_alone : Times
        By the traces; by the capture alone.
    requests, requests_alone : Times
        The same of requests: all calls of a trace, to the end of the span above them where there is one, else to the last call's; what the capture alone
        takes for one.
    requests_alike : int
        Requests of the traces whose calls are exactly the messages that the capture alone takes for one.
    placed : mapping
        Per message (position of its connection in the workload, and its own), begin and end of its call, ns from the start of the capture.
    """

    file: str
    calls: int
    fitting: int
    messages: int
    responses: Times
    responses_alone: Times
    requests: Times
    requests_alone: Times
    requests_alike: int
    placed: Mapping[Place, tuple[int, int]] = field(default_factory=dict, repr=False)

    def sentences(self) -> list[str]:
        """For people."""

        def beside(what: str, traced: Times, alone: Times) -> str:
            def said(times: Times) -> str:
                return f"{times.count} (p50 {times.p50_ms} ms, p99 {times.p99_ms} ms)" if times.count else "none"

            return f"{what} by {self.file}: {said(traced)}; by the capture alone: {said(alone)}"

        told = [beside("responses", self.responses, self.responses_alone)]
        if self.requests.count:
            told.append(beside("requests", self.requests, self.requests_alone))
            told.append(
                f"{self.requests_alike} of {self.requests.count} requests of {self.file} have exactly the messages that the capture alone takes for one"
            )
        if self.fitting < self.calls:
            told.append(
                f"{self.calls - self.fitting} of {self.calls} calls of {self.file} are no message of the capture and were left out"
            )
        if self.messages > self.fitting:
            told.append(
                f"{self.messages - self.fitting} of {self.messages} messages of the capture are in no trace; each is sent when it was, as background"
            )
        return told

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON output."""
        return {name: value for name, value in asdict(self).items() if name != "placed"}


def fit(found: TrainsResult, replay: Replay, path: str | Path) -> tuple[Replay, Fitted]:
    """The traffic with requests, and who waits for whom, as an application's traces say.

    Parameters
    ----------
    found : TrainsResult
        The capture.
    replay : Replay
        Its traffic towards the host whose application wrote the traces.
    path : path
        As :func:`fanin.spans.read` takes it.

    Returns
    -------
    (Replay, Fitted)
        The traffic, and how the traces differ from what the capture alone would have said.

    Raises
    ------
    fanin.CaptureError
        When the file is no traces, or its calls are not those of the capture.
    """
    from fanin import _native

    spans, workload = read(path), json.loads(replay.to_json())
    epoch = int(found.summary["start_epoch_ns"])
    length = int(found.summary["duration_ns"])
    inside = [s for s in spans if s.end_ns >= epoch and s.begin_ns <= epoch + length and s.peer in workload["servers"]]
    places = _places(inside, workload, epoch)
    if len(places) < LEAST_FITTING * len(inside) or not places:
        raise CaptureError(
            f"{path}: {len(places)} of its {len(spans)} calls fit messages of the capture by server and time; are they of the same run, and the "
            "clocks of both hosts the same (Unix time)?"
        )
    alone = [m["took_ns"] for c in workload["connections"] for m in c["messages"] if m.get("took_ns")]
    before = [r["took_ns"] for r in workload["rounds"] if r["requests"] and r.get("took_ns")]
    first, last = min(s.begin_ns for s in inside) - epoch, max(s.end_ns for s in inside) - epoch
    seen = [m for c in workload["connections"] for m in c["messages"] if first <= m["start_ns"] <= last]
    groups = _requests(inside, places)
    own = _messages(replay)
    if groups:
        _write(workload, inside, places, groups)
    told = Fitted(
        file=str(path),
        calls=len(inside),
        fitting=len(places),
        messages=len(seen),
        responses=Times.of([s.end_ns - s.begin_ns for s in inside]),
        responses_alone=Times.of(alone),
        requests=Times.of([_over(inside, group) - min(inside[n].begin_ns for n in group) for group in groups]),
        requests_alone=Times.of(before),
        requests_alike=sum(frozenset(places[n] for n in group) in own for group in groups),
        placed={place: (inside[n].begin_ns - epoch, inside[n].end_ns - epoch) for n, place in places.items()},
    )
    return _native.Replay.from_json(json.dumps(workload)) if groups else replay, told


def _messages(replay: Replay) -> set[frozenset[Place]]:
    """The messages of each request that the capture alone shows."""
    rows = frame(replay.request_messages()).select("request", "position", "turn")
    return {
        frozenset(part.select("position", "turn").iter_rows())
        for part in rows.partition_by("request", maintain_order=True)
    }


def _places(spans: Sequence[Span], workload: Mapping[str, Any], epoch: int) -> dict[int, Place]:
    """Which message each call is.

    Of those of its server that begin and end within it, or at least begin, and belong to no other call, the one nearest to its begin and end.
    """
    by_server: dict[str, list[tuple[int, int, Place]]] = {}
    for c, connection in enumerate(workload["connections"]):
        server = workload["servers"][connection["server"]]
        for m, message in enumerate(connection["messages"]):
            if message["request_bytes"] and message.get("took_ns") is not None:
                at = message["start_ns"]
                by_server.setdefault(server, []).append((at, at + message["took_ns"], (c, m)))
    left = {server: sorted(messages) for server, messages in by_server.items()}
    found: dict[int, Place] = {}
    # What ends first has the smallest choice. What ended later in the capture than in every trace is known by its begin alone: at a tap
    # before the queue, when the last packet of an answer reached the aggregator is an estimate.
    for exactly in (True, False):
        for n in sorted((n for n in range(len(spans)) if n not in found), key=lambda n: spans[n].end_ns):
            span, mine = spans[n], left.get(spans[n].peer, [])
            begin, end = span.begin_ns - epoch - CLOCKS_NS, span.end_ns - epoch + CLOCKS_NS
            nearest: tuple[int, int] | None = None
            for k in range(bisect_left(mine, begin, key=lambda message: message[0]), len(mine)):
                at, until, _ = mine[k]
                if at > end:
                    break
                apart = abs(at - begin - CLOCKS_NS) + (abs(end - CLOCKS_NS - until) if exactly else 0)
                if (until <= end or not exactly) and (nearest is None or apart < nearest[0]):
                    nearest = (apart, k)
            if nearest is not None:
                found[n] = mine.pop(nearest[1])[2]
    return found


def _requests(spans: Sequence[Span], places: Mapping[int, Place]) -> list[list[int]]:
    """Calls by request, in order of their begin; none where the traces do not say."""
    groups: dict[str, list[int]] = {}
    for n, span in enumerate(spans):
        if n in places and span.request is not None:
            groups.setdefault(span.request, []).append(n)
    return list(groups.values())


def _over(spans: Sequence[Span], group: Sequence[int]) -> int:
    """When a request was over: as the traces say, or when its last call was. A span that ends before each of its calls does not wait for them."""
    said = max((over for n in group if (over := spans[n].over_ns) is not None), default=None)
    if said is None or not _needed(spans, group, said):
        return max(spans[n].end_ns for n in group)
    return said


def _needed(spans: Sequence[Span], group: Sequence[int], over: int) -> list[int]:
    """The calls that were over when their request was, in order of their ends."""
    return sorted((n for n in group if spans[n].end_ns <= over + BOUND_NS), key=lambda n: spans[n].end_ns)


def _write(
    workload: dict[str, Any], spans: Sequence[Span], places: Mapping[int, Place], groups: list[list[int]]
) -> None:
    """Requests become rounds."""
    messages = {place: workload["connections"][place[0]]["messages"][place[1]] for place in places.values()}
    for c, connection in enumerate(workload["connections"]):
        for m, message in enumerate(connection["messages"]):
            message.pop("release", None)
            if (c, m) not in messages and message["request_bytes"]:
                message["release"] = {"by": "clock", "regardless": bool(message["overlapped"])}
    rounds = _Rounds(spans, places, messages)
    for group in groups:
        rounds.add(group)
    connections = sorted({c for c, _ in messages})
    workload["rounds"], workload["traced"] = rounds.all, True
    workload["groups"] = [
        {
            "connections": connections,
            "servers": len({workload["connections"][c]["server"] for c in connections}),
            "upstream": False,
            "rounds": len(groups),
            "requests": sum(len(group) for group in groups),
            "spread": _delay(rounds.spreads),
            "released_by": rounds.edges(),
        }
    ]
    workload.pop("untold", None)


class _Rounds:
    """Rounds as they stand in a workload, and what released their messages."""

    def __init__(
        self, spans: Sequence[Span], places: Mapping[int, Place], messages: Mapping[Place, dict[str, Any]]
    ) -> None:
        self.all: list[dict[str, Any]] = []
        self.spreads: list[int] = []
        self._spans, self._places, self._messages = spans, places, messages
        self._ended: list[tuple[int, int]] = []
        self._last_on: dict[int, tuple[int, int]] = {}
        self._pauses: list[int] = []
        self._steps: list[int] = []
        self._first_calls = 0
        self._late_calls: list[int] = []

    def add(self, group: list[int]) -> None:
        """A request's calls. Each waits for so many answers of its request as had come when it began, the first ones for the request before."""
        spans, places = self._spans, self._places
        needed = _needed(spans, group, _over(spans, group))
        # The request ends with the last of the calls that it waits for; what its application does after that is no part of a replay.
        begin, end = spans[group[0]].begin_ns, spans[needed[-1]].end_ns
        before = _before(begin, self._last_on.get(places[group[0]][0]), self._ended)
        first = self._released(group, before)
        request = {"group": 0, "requests": [list(places[n]) for n in first], "took_ns": end - begin}
        if len(first) < len(group):
            request["answers"] = [list(places[n]) for n in group]
        if len(needed) < len(group):
            request["waits_for"] = len(needed)
        self._late_calls.append(len(group) - len(needed))
        self._ended.append((end, len(self.all)))
        self._last_on |= {places[n][0]: self._ended[-1] for n in group}
        self.spreads.append(spans[first[-1]].begin_ns - begin)
        self._first_calls += len(first)
        self.all.append(request)

    def _released(self, group: list[int], before: tuple[int, int] | None) -> list[int]:
        """Say what releases each call of a request; the calls that waited for none of its own answers."""
        spans = self._spans
        gates: dict[tuple[int | None, int, int], int] = {}
        first: list[int] = []
        leads: dict[int, int] = {}
        for n in group:
            # What left together waited for what the first of it waited for, though one more answer may have come since.
            lead = n if (stage := spans[n].stage) is None else leads.setdefault(stage, n)
            answered = [j for j in group if spans[j].end_ns <= spans[lead].begin_ns + BOUND_NS]
            answered = [j for j in answered if spans[j].begin_ns < spans[lead].begin_ns]
            if not answered:
                first.append(n)
                release, late = _after_request(self.all, before, spans[n].begin_ns)
                self._pauses += [] if late is None else [late]
            else:
                last = max(spans[j].end_ns for j in answered)
                asked = [j for j in group if spans[j].begin_ns <= last and spans[j].begin_ns < spans[lead].begin_ns]
                key, late = (stage, len(asked), len(answered)), max(0, spans[n].begin_ns - last)
                if key not in gates:
                    gates[key] = len(self.all)
                    self.all.append({"group": 0, "requests": [], "answers": [list(self._places[j]) for j in asked]})
                release = {"by": "round", "round": gates[key], "answers": len(answered), "delay_ns": late}
                self._steps.append(late)
            self._messages[self._places[n]]["release"] = release
        return first

    def edges(self) -> list[dict[str, Any]]:
        """What released the messages, and how many each."""
        usual = statistics.mode(self._late_calls)
        waits_for = f"all but {usual}" if usual else "all"
        pauses = self._pauses
        edges = [{"event": "answers", "waits_for": waits_for, "requests": len(pauses), "delay": _delay(pauses)}]
        if self._steps:
            edges.append({"event": "inside", "requests": len(self._steps), "delay": _delay(self._steps)})
        if self._first_calls > len(pauses):
            edges.append({"event": "nothing", "requests": self._first_calls - len(pauses), "delay": _delay([])})
        return edges


def _before(begin: int, same: tuple[int, int] | None, ended: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    """The request before, of the same user as far as one can say: of its connection, else the one that ended last before it began."""
    if same is not None and same[0] <= begin:
        return same
    # More than these are not under way at once.
    return max((each for each in ended[-LATEST:] if each[0] <= begin), default=None)


def _after_request(
    rounds: Sequence[Mapping[str, Any]], before: tuple[int, int] | None, begin: int
) -> tuple[dict[str, Any], int | None]:
    """What releases a call of a request's first; and how long after it, if it is another request's end."""
    if before is None:
        return {"by": "clock"}, None
    end, number = before
    request = rounds[number]
    of = request.get("waits_for") or len(request.get("answers") or request["requests"])
    return {"by": "round", "round": number, "answers": of, "delay_ns": begin - end}, begin - end


def _delay(values: Sequence[int]) -> dict[str, int]:
    if not values:
        return {"p10_ns": 0, "median_ns": 0, "p90_ns": 0}
    ordered = sorted(values)
    at = [ordered[int(q * (len(ordered) - 1))] for q in (0.1, 0.9)]
    return {"p10_ns": at[0], "median_ns": int(statistics.median_low(ordered)), "p90_ns": at[1]}
