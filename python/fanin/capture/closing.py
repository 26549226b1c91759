"""The capture checks what was read of it: whether requests close and are alike, in words.

A request closes when all of its messages were answered in the capture, none left before what it waited for, and none is missing or of another request
too (``crates/capture/src/closing.rs``).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fanin.runs.job import kind_of
from fanin.words.text import duration, size

if TYPE_CHECKING:
    from fanin._native import Replay

STEADY = 0.8
"""With a smaller share of requests of the most frequent size, it is said that sizes differ: they do where messages of several requests were mixed up."""

APART = 4.0
"""The largest tenth of answers is said to differ when it begins at so many times the median: several answers may have been read as one."""

FEWEST = 20
"""Of fewer requests or answers no distribution is judged."""

PARTS, MOSTLY = 0.01, 0.5
"""Where more requests than the first share, and no more than the second, differ from the usual size, and some have fewer messages, or twice as many, these
may be parts of others, or several. The laboratory's services (``make services``) that are read right to the request have none."""

LOOSE = 0.01
"""A larger share of messages that leave together and are in no request is said: counts of requests may be off by as much, where 2 % are allowed."""

TRAILING = 0.1
"""Where last calls take a larger share of most requests than this, times of requests rest on their user waiting for these."""

OWN_SHARE = 0.035
"""Where the application's own time is a larger share of a request than this, its own log may say a tenth more: it may take up to three times as long."""

LOOPS = 5
"""Before the first message of a request and after its last answer an application takes about as long as its loop over the servers does for so many of
these: of 40 services of the laboratory, 0.02 to 0.07 ms each in Python, half take 5 times and nine of ten 2.4 to 12 times."""

TURNS = 2
"""Where a request begins with one message no loop tells, and it takes about as long as from an answer to the next message, before the first and after the
last: of five such services half as long to twice as long."""

MISREAD = ("requests-broken", "requests-unclear", "requests-unbound", "requests-unsure", "messages-unread")
"""Kinds of warnings that say so."""

OF_RESPONSES = "Give the application's traces with --spans, or ask about single answers, whose times do not rest on that, with --rank-of responses."
"""What to do where requests may not be what was read."""

FAULTS = {
    "shared": "have a message that another request has too",
    "longer": "last longer, or shorter, than their own messages",
    "overlapping": "have a message that left before the answers it is said to have waited for",
    "lost": "lack a message that waited for their answers",
}
"""What is an error of fanin's, and how it is said."""


def closings(replay: Replay) -> list[dict[str, Any]]:
    """Of each group that is asked in requests of several messages, whether these close.

    Groups without requests are left out, unless their messages leave together.

    Keys are ``group`` (position in the groups), ``requests`` (those that its begin or end cut off are left out), ``closed``,
    ``messages``, ``closed_messages``, ``unanswered``, ``partial`` (requests whose user is taken to go on with some of their answers), ``trailing`` and
    ``trailing_share`` (requests that end with calls after all other answers, which bring hardly anything, and the share of their time that these take),
    ``interrupted`` (requests in which nothing was missing for longer than before most requests, while another one began), ``unbound`` (messages that
    leave together, or so long after others or their answers each time, and are in no request), ``beside`` (messages that leave together with those of
    other groups, or as soon as these are answered, where they are more than chance gives), ``lacking`` (requests that lack a server that the group's
    others, or those of a group like it, ask), ``apart`` (requests, where none can be two that were mixed up: each begins when nothing is missing, after a
    pause three times as long as any inside them, and asks no server twice), ``in_turns`` (requests, where short and long pauses between them take turns
    more than chance gives), ``served`` (requests, where each begins with what one client of the aggregator asked for, and the answer to him waits for it),
    ``faults`` (counts by name, see :data:`FAULTS`), and
    ``messages_per_request``, ``first_messages``, ``connections_per_request``, ``servers_per_request``, ``answer_bytes``: ``min``, ``median``, ``p90``,
    ``max``, ``usual`` and ``usual_share``.

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
    >>> told = {"requests": 246, "served": 0, "messages": 1940, "apart": 240}
    >>> unclear([{**told, "messages_per_request": sizes}])  # doctest: +ELLIPSIS
    "about 12 of 246 requests do not have the usual 8 messages, and some have only 1: they may be parts of others, ..."
    >>> unclear([{**told, "messages_per_request": {**sizes, "min": 8}}]) is None
    True
    >>> unclear([{**told, "messages_per_request": {**sizes, "min": 5}}])  # doctest: +ELLIPSIS
    "about 12 of 246 requests do not have the usual 8 messages, and some have only 5: ..."
    >>> unclear([{**told, "apart": 246, "messages_per_request": {**sizes, "min": 5, "max": 8}}]) is None
    True
    >>> unclear([{**told, "messages_per_request": {**sizes, "min": 8, "max": 16}}])  # doctest: +ELLIPSIS
    "about 12 of 246 requests do not have the usual 8 messages, and some have 16: several may have been read as one, ..."
    >>> most = {**sizes, "min": 6, "max": 516, "usual": 6, "usual_share": 0.8}
    >>> unclear([{"requests": 5, "served": 0, "messages": 540, "messages_per_request": most}])  # doctest: +ELLIPSIS
    "one of 5 requests has 516 of their 540 messages: many may have been read as one, ..."
    >>> unclear([{"requests": 5, "served": 0, "messages": 540, "messages_per_request": {**most, "max": 270}}]) is None
    True
    """
    for each in _untold(found):
        sizes, requests = each["messages_per_request"], each["requests"]
        odd = 1 - sizes["usual_share"]
        # Where nothing ends a request, one of a few holds nearly everything.
        if requests > 1 and sizes["max"] > MOSTLY * each["messages"] and each["messages"] >= FEWEST:
            return (
                f"one of {requests:,} requests has {sizes['max']:,} of their {each['messages']:,} messages: many may have been read as one, so that there "
                "are more requests than were read, and shorter ones; the application's traces tell (--spans)"
            )
        if requests < FEWEST or not PARTS < odd <= MOSTLY:
            continue
        begin = f"about {odd * requests:.0f} of {requests:,} requests do not have the usual {sizes['usual']} messages, and some have "
        end = "; the application's traces tell (--spans)"
        # Of two parts of a request that runs alone one has half of its messages or less.
        whole = each["apart"] == requests and 2 * sizes["min"] > sizes["usual"] >= sizes["max"]
        if sizes["min"] < sizes["usual"] and not whole:
            return (
                f"{begin}only {sizes['min']}: they may be parts of others, so that there are fewer requests than were read, and longer ones, or others may "
                f"be several that were read as one{end}"
            )
        # A single one may be the first, in which an application warms up.
        if sizes["max"] >= 2 * sizes["usual"] and round(odd * requests) > 1:
            return f"{begin}{sizes['max']}: several may have been read as one, so that there are more requests than were read, and shorter ones{end}"
    return None


def lacking(found: Sequence[dict[str, Any]]) -> str | None:
    """One sentence about requests that lack a server that others of their kind ask; None where there are none.

    Examples
    --------
    >>> lacking([{"requests": 150, "lacking": 82}])  # doctest: +ELLIPSIS
    "82 of 150 requests lack a server that others of their kind ask: ..."
    >>> lacking([{"requests": 150, "lacking": 0}]) is None
    True
    """
    without = sum(each["lacking"] for each in found)
    if not without:
        return None
    requests = sum(each["requests"] for each in found)
    return (
        f"{without:,} of {requests:,} requests lack a server that others of their kind ask: the application leaves it out, or its "
        "messages were taken for other requests', or connections are missing in the capture (a tap that samples or loses them); in the last two cases "
        "requests have more messages than were read and may take longer; the application's traces tell (--spans)"
    )


def in_step(found: Sequence[dict[str, Any]]) -> str | None:
    """One sentence about groups that are asked together though they were read as services of their own; None where there are none.

    Examples
    --------
    >>> in_step([{"messages": 402, "beside": 141}])  # doctest: +ELLIPSIS
    "141 of 402 messages of requests leave together with messages of other groups, or as soon as those are answered, more than chance gives: ..."
    >>> in_step([{"messages": 402, "beside": 0}]) is None
    True
    """
    of = [each for each in found if each["beside"]]
    if not of:
        return None
    messages, beside = (sum(each[name] for each in of) for name in ("messages", "beside"))
    return (
        f"{beside:,} of {messages:,} messages of requests leave together with messages of other groups, or as soon as those are answered, more than chance "
        "gives: the groups may be parts of one request, so that there are fewer requests than were read, and longer ones; the application's traces tell "
        "(--spans)"
    )


def interrupted(found: Sequence[dict[str, Any]]) -> str | None:
    """One sentence about requests in which nothing was missing for longer than between most, while others began; None where hardly any or most are so.

    Examples
    --------
    >>> interrupted([{"requests": 240, "served": 0, "interrupted": 12}])  # doctest: +ELLIPSIS
    "in 12 of 240 requests nothing is missing for longer than between most of them, while others begin: ..."
    >>> [interrupted([{"requests": 240, "served": 0, "interrupted": odd}]) for odd in (2, 200)]
    [None, None]
    """
    for each in _untold(found):
        requests, odd = each["requests"], each["interrupted"]
        if requests >= FEWEST and PARTS * requests < odd <= MOSTLY * requests:
            return (
                f"in {odd:,} of {requests:,} requests nothing is missing for longer than between most of them, while others begin: messages of several "
                "may have been mixed up, so that requests are shorter than were read; the application's traces tell (--spans)"
            )
    return None


def unbound(found: Sequence[dict[str, Any]]) -> str | None:
    """One sentence about messages that leave together, or so long after others or their answers each time, and are in no request; None: hardly any.

    Examples
    --------
    >>> unbound([{"messages": 2700, "unbound": 2700}])  # doctest: +ELLIPSIS
    "2,700 of 2,700 messages leave together with others, or so long after them or their answers each time, and belong to no request that was found: ..."
    >>> unbound([{"messages": 2700, "unbound": 20}]) is None
    True
    """
    loose = sum(each["unbound"] for each in found)
    messages = sum(each["messages"] for each in found)
    if loose <= LOOSE * messages:
        return None
    return (
        f"{loose:,} of {messages:,} messages leave together with others, or so long after them or their answers each time, and belong to no request "
        "that was found: requests are missing, and the replay does not know what these messages wait for; the application's traces tell (--spans)"
    )


def unsure(found: Sequence[dict[str, Any]]) -> str | None:
    """One sentence about requests whose messages, or whose end, the capture does not settle; None where there are none.

    Examples
    --------
    >>> sizes = {"min": 2, "median": 2, "p90": 8, "max": 62, "usual": 2, "usual_share": 0.4}
    >>> told = {"requests": 150, "served": 0, "apart": 0, "in_turns": 0, "partial": 0, "trailing": 0, "trailing_share": 0.0}
    >>> told |= {"connections_per_request": sizes, "servers_per_request": sizes, "first_messages": sizes}
    >>> unsure([{**told, "apart": 150, "messages_per_request": sizes}]) is None
    True
    >>> unsure([{**told, "served": 150, "messages_per_request": sizes}]) is None  # the aggregator's clients tell
    True
    >>> unsure([{**told, "messages_per_request": sizes}])  # doctest: +ELLIPSIS
    'requests have 2 to 62 messages, and only 40% of them the usual 2: ...'
    >>> alike = {**told, "messages_per_request": {**sizes, "usual_share": 1.0}}
    >>> unsure([{**alike, "partial": 150}])  # doctest: +ELLIPSIS
    "150 of 150 requests are read as going on with some of their answers (a quorum): ..."
    >>> unsure([{**alike, "trailing": 150, "trailing_share": 0.21}])  # doctest: +ELLIPSIS
    "150 of 150 requests end with a call that brings hardly anything, when all else has been answered: ... requests are 21% shorter; ..."
    >>> unsure([{**alike, "trailing": 150, "trailing_share": 0.05}]) is unsure([alike]) is None
    True
    >>> unsure([{**alike, "in_turns": 150}])  # doctest: +ELLIPSIS
    "short and long pauses between 150 requests take turns more than chance gives: some may be stages of others, ..."
    >>> four = {"connections_per_request": {**sizes, "usual": 32, "usual_share": 1.0}, "servers_per_request": {**sizes, "usual": 8, "usual_share": 1.0}}
    >>> unsure([{**alike, **four, "messages_per_request": {**sizes, "usual": 32, "usual_share": 1.0}}])  # doctest: +ELLIPSIS
    "requests ask each of 8 servers 4 times, each time on another connection: ..."
    """
    for each in _untold(found):
        sizes, requests, partial = each["messages_per_request"], each["requests"], each["partial"]
        if requests >= FEWEST and sizes["usual_share"] < MOSTLY and not each["apart"] and not _begins_once(each):
            return (
                f"requests have {sizes['min']} to {sizes['max']} messages, and only {sizes['usual_share']:.0%} of them the usual {sizes['usual']}: either "
                "the application asks for so many or requests were mixed up; its traces tell (--spans)"
            )
        if each["trailing"] > MOSTLY * requests >= MOSTLY * FEWEST and each["trailing_share"] > TRAILING:
            return (
                f"{each['trailing']:,} of {requests:,} requests end with a call that brings hardly anything, when all else has been answered: whether the "
                f"user waits for it the capture does not tell; if not, requests are {each['trailing_share']:.0%} shorter; the application's traces tell "
                "(--spans)"
            )
        if (times := _times_each(each)) > 1:
            return (
                f"requests ask each of {each['servers_per_request']['usual']} servers {times} times, each time on another connection: {times} users may "
                "have begun at the same moments, so that there are more requests than were read, and shorter ones; the application's traces tell (--spans)"
            )
        if each["in_turns"]:
            return (
                f"short and long pauses between {requests:,} requests take turns more than chance gives: some may be stages of others, so that there are "
                "fewer requests than were read, and longer ones; the application's traces tell (--spans)"
            )
        if partial > MOSTLY * requests:
            return (
                f"{partial:,} of {requests:,} requests are read as going on with some of their answers (a quorum): pauses are steadier after these than "
                "after all, but how many are waited for, and so how long requests last, is told by the application's traces alone (--spans)"
            )
    return None


def _untold(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those groups of which no clients tell where a request begins and ends."""
    return [each for each in found if not each["served"]]


def _begins_once(closing: dict[str, Any]) -> bool:
    """Whether each request begins with as many messages as most do, and asks fewer later: two that were mixed up would begin twice.

    Examples
    --------
    >>> first = {"min": 8, "usual": 8}
    >>> [_begins_once({"messages_per_request": {"max": most}, "first_messages": first}) for most in (15, 16)]
    [True, False]
    >>> _begins_once({"messages_per_request": {"max": 12}, "first_messages": {"min": 7, "usual": 8}})
    False
    """
    sizes, first = closing["messages_per_request"], closing["first_messages"]
    return bool(first["min"] >= first["usual"] and sizes["max"] < 2 * first["usual"])


def _times_each(closing: dict[str, Any]) -> int:
    """How often requests ask each of their servers, each time on another connection; 0 where most are not alike in that."""
    messages, connections, servers = (
        closing[name] for name in ("messages_per_request", "connections_per_request", "servers_per_request")
    )
    alike = (
        closing["requests"] >= FEWEST
        and min(each["usual_share"] for each in (messages, connections, servers)) >= STEADY
    )
    # Who asks one server alone shares out his work.
    if (
        not alike
        or servers["usual"] < 2
        or messages["usual"] != connections["usual"]
        or messages["usual"] % servers["usual"]
    ):
        return 0
    return int(messages["usual"] // servers["usual"])


def doubts(replay: Replay) -> dict[str, str]:
    """What speaks against the requests that were read, as kind and sentence; empty for most captures."""
    found = closings(replay)
    each = {
        "requests-broken": broken(found),
        "requests-unclear": lacking(found) or unclear(found) or in_step(found) or interrupted(found),
        "requests-unbound": unbound(found),
        "requests-unsure": unsure(found),
    }
    return {kind: sentence for kind, sentence in each.items() if sentence is not None}


def misread(warnings: Sequence[str]) -> str | None:
    """The first of these that says that the requests of the capture may be others than those that were read; None without one.

    Examples
    --------
    >>> from fanin.runs.job import RunWarning
    >>> misread([RunWarning("a guess", "guessed-rate"), RunWarning("requests are missing", "requests-unbound")])
    'requests are missing'
    """
    return next((str(warning) for warning in warnings if kind_of(warning) in MISREAD), None)


def unseen(replay: Replay) -> str | None:
    """One sentence where the application's own time, which no packet shows, matters beside that of its requests; None where it does not.

    Its measure is what the application takes to ask one server after another, and, where a request has stages, from the answers of one to the next.
    """
    median = _median(replay)
    if median is None:
        return None
    own = max((_own(group, each, median) for group, each in _grouped(replay) if each["requests"]), default=0.0)
    if own <= OWN_SHARE * median:
        return None
    beside = f"{own / median:.0%} of" if own < median else f"{own / median:.1f} times"
    return (
        f"what the application takes before the first message of a request and after its last answer is not in the capture: by the pace at which it asks, "
        f"about {duration(own)}, {beside} the median request, or twice that; its own log has requests that are longer by as much, "
        "and by several times that where it serves several users at once and is busy with the others"
    )


def at_once(replay: Replay) -> str | None:
    """One sentence where users go on with their next request without a pause, so that no pause tells it from a stage; None where they pause."""
    median = _median(replay)
    if median is None:
        return None
    within = [
        delay
        for group, each in _grouped(replay)
        for delay in (edge["delay"]["p90_ns"] / 1e6 for edge in group["released_by"] if edge["event"] == "answers")
        # An application that takes as long inside of a request does not pause between two.
        if each["requests"] >= FEWEST and delay <= _own(group, each, median)
    ]
    if not within:
        return None
    return (
        f"nine of ten requests begin within {duration(max(within))} of the answers that their user had waited for, as stages of one request would: if the "
        "application asks several times for a request, each may be counted; its traces (--spans) tell"
    )


def _median(replay: Replay) -> float | None:
    """The median request, ms; None of too few."""
    took = sorted(value for value in replay.round_times_ms() if value is not None)
    return took[len(took) // 2] if len(took) >= FEWEST else None


def _grouped(replay: Replay) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Groups of requests, each with how it closes."""
    groups = json.loads(replay.groups_json())
    return [(groups[each["group"]], each) for each in closings(replay)]


def _own(group: dict[str, Any], closing: dict[str, Any], median: float) -> float:
    """What the application takes for a request beside it, in ms. What takes longer than most requests is a timer."""
    inside = [edge["delay"]["median_ns"] / 1e6 for edge in group["released_by"] if edge["event"] == "inside"]
    turn = max((delay for delay in inside if delay < median), default=0.0)
    # A request may begin with some of its messages: the spread is theirs. Those of one connection leave together, however long the loop takes for each.
    first = closing["first_messages"]["median"]
    writes = min(first, closing["connections_per_request"]["median"])
    step = group["spread"]["median_ns"] / 1e6 / max(1, writes - 1)
    return float(max(LOOPS * step, turn if first > 1 else TURNS * turn))


def sentences(replay: Replay) -> list[str]:
    """What a reader of the requests should know: those that do not close, and those that are not alike."""
    return _told(closings(replay)) + [told for told in (at_once(replay), unseen(replay)) if told is not None]


def _told(found: Sequence[dict[str, Any]]) -> list[str]:
    """For each group.

    Examples
    --------
    >>> alike = {"min": 12, "median": 12, "p90": 12, "max": 12, "usual": 12, "usual_share": 1.0}
    >>> none = {"shared": 0, "longer": 0, "overlapping": 0, "lost": 0}
    >>> one = {"group": 0, "requests": 300, "closed": 297, "messages": 3600, "closed_messages": 3564, "unanswered": 3, "partial": 0, "faults": none,
    ...        "served": 0, "apart": 0, "in_turns": 0, "trailing": 0, "trailing_share": 0.0,
    ...        "messages_per_request": alike, "connections_per_request": alike, "servers_per_request": alike,
    ...        "answer_bytes": {**alike, "median": 40_000, "p90": 41_000}}
    >>> _told([one])
    ['3 of 300 requests do not close: 3 lack an answer in the capture']
    >>> _told([{**one, "closed": 300, "unanswered": 0, "messages_per_request": {**alike, "min": 12, "max": 20, "usual_share": 0.6}}])
    ['requests have 12 to 20 messages (60% of them 12): either the application asks for so many or requests were mixed up']
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
            if sizes["usual_share"] < STEADY and unclear([each]) is None and unsure([each]) is None:
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
