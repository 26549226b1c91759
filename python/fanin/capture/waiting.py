"""Who waits for what in a capture, in words.

The groups of a capture (`Company` in the workload file) become sentences such as "24 servers are asked within
20 us; the next request starts 2.0 ms after the slowest answer; 98% of requests explained".
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fanin.capture import closing

if TYPE_CHECKING:
    from fanin._native import Replay

MOST = 6
"""More groups than this are summed up."""

NOTHING = "no fan-in seen: each connection is replayed alone"
"""What is said of a capture without rounds."""


def groups(replay: Replay) -> list[dict[str, Any]]:
    """Who is asked together, and what its requests wait for, as in the workload file.

    Besides, ``closed`` is the share of its messages whose request closes (:mod:`fanin.capture.closing`), None where there are no requests of several
    messages.

    Examples
    --------
    >>> import fanin
    >>> [each["closed"] for each in groups(fanin.trains("tests/data/requests/chain.pcap.gz").workload())]
    [1.0]
    """
    shares = {each["group"]: closing.share([each]) for each in closing.closings(replay)}
    found = json.loads(replay.groups_json())
    return [{**group, "closed": shares.get(number)} for number, group in enumerate(found)]


def sentences(groups: Sequence[dict[str, Any]]) -> list[str]:
    """What was found, one sentence per group of several connections, the largest first.

    Parameters
    ----------
    groups : sequence of dict
        As :attr:`fanin.CompareResult.groups`.

    Examples
    --------
    >>> delay = {"p10_ns": 1990000, "median_ns": 2000000, "p90_ns": 2100000}
    >>> edges = [{"event": "answers", "waits_for": "all", "requests": 240, "delay": delay},
    ...          {"event": "nothing", "requests": 24, "delay": delay}]
    >>> found = {"connections": list(range(24)), "servers": 24, "upstream": False, "rounds": 11, "requests": 264,
    ...          "spread": {"p10_ns": 18000, "median_ns": 20000, "p90_ns": 22000}, "released_by": edges}
    >>> sentences([found])
    ['24 servers are asked within 20 us, 11 times; the next request starts 2.0 ms after the slowest answer; 100% of requests explained']
    >>> sentences([])
    ['no fan-in seen: each connection is replayed alone']
    """
    together = sorted((c for c in groups if c["rounds"]), key=lambda c: -len(c["connections"]))
    linked = [c for c in groups if not c["rounds"] and any(e["event"].startswith("others") for e in c["released_by"])]
    told = [_group(c, groups) for c in (together + linked)[:MOST]]
    left = len(together) + len(linked) - MOST
    if left > 0:
        told.append(f"{left} more groups of servers are asked in rounds of their own")
    if not told:
        return [NOTHING]
    alone = sum(len(c["connections"]) for c in groups if c not in together and c not in linked)
    if alone:
        told.append(f"{alone} {'connection' if alone == 1 else 'connections'} without rounds: each is replayed alone")
    return told


def explained(groups: Sequence[dict[str, Any]]) -> float | None:
    """The share of messages that are explained: their cause is in the capture, and the request that they are of closes. None without any.

    The first messages of all are left out: they can follow nothing.

    Examples
    --------
    >>> explained([]) is None
    True
    """
    edges = [edge for group in groups for edge in group["released_by"]]
    # The first request of a connection can follow nothing.
    first = sum(len(group["connections"]) for group in groups if not group["upstream"])
    known = sum(edge["requests"] for edge in edges if edge["event"] != "nothing")
    unknown = sum(edge["requests"] for edge in edges if edge["event"] == "nothing")
    total = known + max(unknown - first, 0)
    if not total:
        return None
    shares = [(int(c["requests"]), float(c["closed"])) for c in groups if c.get("closed") is not None]
    messages = sum(requests for requests, _ in shares)
    closes = sum(requests * share for requests, share in shares) / messages if messages else 1.0
    return float(known / total * closes)


def _group(group: dict[str, Any], groups: Sequence[dict[str, Any]]) -> str:
    # Traces of one request have none that releases the next.
    known = [edge for edge in group["released_by"] if edge["event"] != "nothing" and edge["requests"]]
    parts = []
    if group["rounds"]:
        if any(edge["event"] == "inside" for edge in known):
            parts.append(f"{group['rounds']} requests, each to {_servers(group)} in steps")
        else:
            within = _time(group["spread"]["median_ns"])
            parts.append(f"{_servers(group)} are asked within {within}, {group['rounds']} times")
    else:
        are = "is" if group["servers"] == 1 else "are"
        parts.append(f"{_servers(group)} {are} {'answered' if group['upstream'] else 'asked alone'}")
    what = "answers" if group["upstream"] else "requests"
    total = sum(edge["requests"] for edge in known)
    for edge in sorted(known, key=lambda e: -int(e["requests"])):
        if edge["requests"] < 0.02 * total:
            continue
        share = "" if edge["requests"] > 0.95 * total else f" ({edge['requests'] / total:.0%} of its {what})"
        parts.append(_edge(edge, group, groups) + share)
    if not known:
        parts.append("nothing in the capture says when the next request starts, so it stays on the clock")
    share_known = explained([group])
    if share_known is not None and known:
        # Rounded down: 100 % is said of all alone.
        parts.append(f"{math.floor(share_known * 100 + 1e-9)}% of {what} explained")
    return "; ".join(parts)


def _edge(edge: dict[str, Any], group: dict[str, Any], groups: Sequence[dict[str, Any]]) -> str:
    later = f"{_time(edge['delay']['median_ns'])} after"
    # On connections of clients the aggregator answers, and what it has of them are requests.
    one = "an answer leaves" if group["upstream"] else "a request leaves"
    next_one = "the next request starts" if group["rounds"] else one
    match edge["event"]:
        case "answers":
            waits = {
                "all": "the slowest answer",
                "first": "the first answer",
                "majority": "more than half have answered",
            }
            which = waits.get(edge["waits_for"], f"{edge['waits_for']} have answered")
            return f"{next_one} {later} {which}"
        case "inside":
            return f"the next of its steps leaves {later} answers of the same request"
        case "own-answer":
            return f"{one} {later} the {'request' if group['upstream'] else 'response'} before on its connection"
        case "others-answers":
            other = groups[edge["group"]]
            return f"{next_one} {later} {'a request' if other['upstream'] else 'the answer'} of {_other(other)}"
        case "others-requests":
            other = groups[edge["group"]]
            return f"{next_one} {later} {'an answer' if other['upstream'] else 'a request'} to {_other(other)}"
        case "timer":
            return f"{next_one} every {_time(edge['delay']['median_ns'])}, by a timer"
        case other:
            return f"{next_one} {later} {other}"


def _other(group: dict[str, Any]) -> str:
    if group["upstream"]:
        return "a client"
    return f"another group of {_servers(group)}" if group["rounds"] else f"connection {group['connections'][0]}"


def _servers(group: dict[str, Any]) -> str:
    """Who is at the other end: clients, where the aggregator is the server."""
    count, connections = group["servers"], len(group["connections"])
    servers = f"{count} {'client' if group['upstream'] else 'server'}{'' if count == 1 else 's'}"
    return servers if connections == count else f"{servers} ({connections} connections)"


def _time(ns: float) -> str:
    """Two digits and a unit.

    Examples
    --------
    >>> _time(20_400), _time(2_040_000), _time(1_500_000_000)
    ('20 us', '2.0 ms', '1.5 s')
    """
    for unit, scale in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= scale:
            value = ns / scale
            return f"{value:.1f} {unit}" if value < 9.95 else f"{value:.0f} {unit}"
    return f"{ns:.0f} ns"
