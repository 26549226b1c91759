"""The capture checks what was read of it: whether requests close and are alike, in words.

A request closes when all of its messages were answered in the capture, none left before what it waited for, and none is missing or of another request
too (``crates/capture/src/closing.rs``).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fanin.text import size

if TYPE_CHECKING:
    from fanin._native import Replay

STEADY = 0.8
"""With a smaller share of requests of the most frequent size, it is said that sizes differ: they do where messages of several requests were mixed up."""

APART = 4.0
"""The largest tenth of answers is said to differ when it begins at so many times the median: several answers may have been read as one."""

FEWEST = 20
"""Of fewer requests or answers no distribution is judged."""

PARTS, MOSTLY = 0.01, 0.5
"""Where more requests than the first share, and no more than the second, differ from the usual size, and some have fewer messages, these may be parts of
others. The laboratory's services (``make services``) that are read right to the request have none."""

FAULTS = {
    "shared": "have a message that another request has too",
    "longer": "last longer, or shorter, than their own messages",
    "overlapping": "have a message that left before the answers it is said to have waited for",
    "lost": "lack a message that waited for their answers",
}
"""What is an error of fanin's, and how it is said."""


def closings(replay: Replay) -> list[dict[str, Any]]:
    """Of each group that is asked in requests of several messages, whether these close.

    Keys are ``group`` (position in the groups), ``requests`` (those that the end of the capture cut off are left out), ``closed``,
    ``messages``, ``closed_messages``, ``unanswered``, ``faults`` (counts by name, see :data:`FAULTS`), and ``messages_per_request``,
    ``servers_per_request``, ``answer_bytes``: ``min``, ``median``, ``p90``, ``max``, ``usual`` and ``usual_share``.

    Examples
    --------
    >>> import fanin
    >>> found = closings(fanin.trains("tests/data/requests/chain.pcap.gz").workload())[0]
    >>> found["requests"], found["closed"], found["messages_per_request"]["usual"], sum(found["faults"].values())
    (46, 46, 4, 0)
    """
    return list(json.loads(replay.closings_json()))


def share(found: Sequence[dict[str, Any]]) -> float | None:
    """The share of messages whose request closes; None without any.

    Examples
    --------
    >>> share([]) is None
    True
    >>> share([{"messages": 8, "closed_messages": 6}])
    0.75
    """
    messages = sum(each["messages"] for each in found)
    return sum(each["closed_messages"] for each in found) / messages if messages else None


def faults(found: Sequence[dict[str, Any]]) -> dict[str, int]:
    """Requests that cannot be what an application did, by kind; empty where there are none: the law of the inference."""
    counts = {kind: sum(each["faults"][kind] for each in found) for kind in FAULTS}
    return {kind: count for kind, count in counts.items() if count}


def broken(found: Sequence[dict[str, Any]]) -> str | None:
    """One sentence about requests that fanin read wrongly; None where there are none."""
    wrong = faults(found)
    if not wrong:
        return None
    requests = sum(each["requests"] for each in found)
    told = "; ".join(f"{count:,} {FAULTS[kind]}" for kind, count in wrong.items())
    return (
        f"of {requests:,} requests that were read in this capture, some cannot be what the application did: {told}. This is an error of fanin's: rank by "
        "responses (--rank-of responses), or give the application's traces (--spans)"
    )


def unclear(found: Sequence[dict[str, Any]]) -> str | None:
    """One sentence about requests that may be parts of others; None where there are none.

    Examples
    --------
    >>> sizes = {"min": 1, "median": 8, "p90": 8, "max": 9, "usual": 8, "usual_share": 0.95}
    >>> unclear([{"requests": 246, "messages_per_request": sizes}])  # doctest: +ELLIPSIS
    "about 12 of 246 requests do not have the usual 8 messages, and some have only 1: they may be parts of others, ..."
    >>> unclear([{"requests": 246, "messages_per_request": {**sizes, "min": 8}}]) is None
    True
    """
    for each in found:
        sizes, requests = each["messages_per_request"], each["requests"]
        odd = 1 - sizes["usual_share"]
        if requests >= FEWEST and sizes["min"] < sizes["usual"] and PARTS < odd <= MOSTLY:
            return (
                f"about {odd * requests:.0f} of {requests:,} requests do not have the usual {sizes['usual']} messages, and some have only {sizes['min']}: "
                "they may be parts of others, so that there are fewer requests than were read, and longer ones; the application's traces tell (--spans)"
            )
    return None


def sentences(replay: Replay) -> list[str]:
    """What a reader of the requests should know: those that do not close, and those that are not alike."""
    return _told(closings(replay))


def _told(found: Sequence[dict[str, Any]]) -> list[str]:
    """For each group.

    Examples
    --------
    >>> alike = {"min": 12, "median": 12, "p90": 12, "max": 12, "usual": 12, "usual_share": 1.0}
    >>> none = {"shared": 0, "longer": 0, "overlapping": 0, "lost": 0}
    >>> one = {"group": 0, "requests": 300, "closed": 297, "messages": 3600, "closed_messages": 3564, "unanswered": 3, "faults": none,
    ...        "messages_per_request": alike, "servers_per_request": alike, "answer_bytes": {**alike, "median": 40_000, "p90": 41_000}}
    >>> _told([one])
    ['3 of 300 requests do not close: 3 lack an answer in the capture']
    >>> _told([{**one, "closed": 300, "unanswered": 0, "messages_per_request": {**alike, "min": 3, "max": 24, "usual_share": 0.4}}])
    ['requests have 3 to 24 messages (40% of them 12): either the application asks for so many or requests were mixed up']
    """
    told = []
    for each in found:
        if (left := each["requests"] - each["closed"]) > 0:
            why = f"{each['unanswered']:,} lack an answer in the capture" if each["unanswered"] else "see the warnings"
            told.append(f"{left:,} of {each['requests']:,} requests do not close: {why}")
        if each["requests"] < FEWEST:
            continue
        for name, what in (("messages_per_request", "messages"), ("servers_per_request", "servers")):
            sizes = each[name]
            if sizes["usual_share"] < STEADY and unclear([each]) is None:
                told.append(
                    f"requests have {sizes['min']} to {sizes['max']} {what} ({sizes['usual_share']:.0%} of them {sizes['usual']}): either the application "
                    "asks for so many or requests were mixed up"
                )
                break
        answers = each["answer_bytes"]
        if answers["p90"] > APART * answers["median"] > 0:
            told.append(
                f"a tenth of the answers have {size(answers['p90'])} or more, the median {size(answers['median'])}: either the servers answer so or "
                "several answers were read as one"
            )
    return told
