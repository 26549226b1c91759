"""The careful way to try an answer: one destination, for a while, taken back at the end or as soon as it gets worse."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from fanin.linux import program, routes

_RTT = re.compile(r"\brtt:([\d.]+)/")
_RETRANS = re.compile(r"\bretrans:\d+/(\d+)")
_SEGMENTS = re.compile(r"\bdata_segs_out:(\d+)")

LOOKS_BEFORE = 5
"""How often the sockets are looked at before the twin is there: what one look finds is chance."""

FEW = 10
"""Fewer retransmitted segments say nothing yet."""


@dataclass(frozen=True, slots=True)
class Socket:
    """One connection, by its ``TCP_INFO``."""

    rtt_ms: float
    retransmitted: int
    sent: int
    #: Names of congestion controls and options in its line.
    words: frozenset[str]


@dataclass(frozen=True, slots=True)
class Look:
    """What the sockets to the destination say now, their segments counted from the moment that is compared with."""

    sockets: int
    p99_rtt_ms: float
    retransmitted: int
    sent: int
    trying: int = 0
    """Sockets that have the twin."""

    @property
    def share(self) -> float:
        """Retransmitted part of the segments sent."""
        return self.retransmitted / self.sent if self.sent else 0.0


def sockets(destination: str) -> dict[str, Socket]:
    """Every connected socket to ``destination`` of this network namespace, by its two addresses (ss)."""
    words = ["ss", "-HtinO", "state", "established", "dst", destination]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    found = {}
    for row in done.stdout.splitlines():
        rtt, retransmitted, sent = (one.search(row) for one in (_RTT, _RETRANS, _SEGMENTS))
        if rtt:
            cells = row.split()
            found[" ".join(cells[2:4])] = Socket(
                float(rtt[1]),
                int(retransmitted[1]) if retransmitted else 0,
                int(sent[1]) if sent else 0,
                frozenset(cells[4:]),
            )
    return found


def look(now: dict[str, Socket], since: dict[str, Socket] | None = None, twin: str = "") -> Look:
    """What ``now`` says; segments that were sent before ``since`` do not count."""
    rtts = sorted(socket.rtt_ms for socket in now.values())
    retransmitted = sent = 0
    for name, socket in now.items():
        earlier = (since or {}).get(name)
        retransmitted += max(0, socket.retransmitted - (earlier.retransmitted if earlier else 0))
        sent += max(0, socket.sent - (earlier.sent if earlier else 0))
    return Look(
        sockets=len(rtts),
        p99_rtt_ms=rtts[min(len(rtts) - 1, int(0.99 * len(rtts)))] if rtts else 0.0,
        retransmitted=retransmitted,
        sent=sent,
        trying=sum(twin in socket.words for socket in now.values()),
    )


class Stopped(KeyboardInterrupt):
    """Ctrl-C: everything is taken back; ``seconds`` after it began."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds


def run(
    destination: str,
    name: str,
    *,
    seconds: float,
    params: list[str],
    margin: float = 1.5,
    every: float = 1.0,
    say: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Try a twin on one destination.

    Parameters
    ----------
    destination : str
        Address of the host whose new connections get it.
    name : str
        The algorithm, such as ``"trim"``.
    seconds : float
        How long at most.
    params : list of str
        ``key=value`` of the load.
    margin : float
        The p99 of the sockets' smoothed RTTs, or the share of retransmitted segments plus 0.1 %, may reach this many times what it was before.
    every : float
        Seconds between looks.

    Returns
    -------
    dict
        ``before``, ``worst``, ``stopped`` (why it ended early, or ``None``), ``seconds``, ``used`` (the most sockets at once that had the
        twin) and ``keep`` (those that have it until they close).

    Raises
    ------
    Stopped
        On Ctrl-C, when everything is taken back.
    """
    routes.check(destination)
    first = sockets(destination)
    if first:
        say(f"{len(first)} connections to {destination}: watching them for {LOOKS_BEFORE * every:g} s before")
    else:
        say(
            f"no connection to {destination} now: there is nothing to compare with, so only the time limit ends the trial"
        )
    began, stopped, used = time.monotonic(), None, 0
    try:
        before = look(first)
        for _ in range(LOOKS_BEFORE if first else 0):
            time.sleep(every)
            first = sockets(destination)
            again = look(first)
            before = replace(again, p99_rtt_ms=max(before.p99_rtt_ms, again.p99_rtt_ms))
        worst = replace(before, retransmitted=0, sent=0)
        with program.held(name, params) as twin:
            routes.add(destination, twin.name, owner=os.getpid())
            began = time.monotonic()
            try:
                while not stopped and time.monotonic() - began < seconds:
                    time.sleep(min(every, max(0.0, seconds - (time.monotonic() - began))))
                    now = look(sockets(destination), first, twin.name)
                    used = max(used, now.trying)
                    rtt = max(now.p99_rtt_ms, worst.p99_rtt_ms)
                    worst = replace(now if now.share >= worst.share else worst, p99_rtt_ms=rtt)
                    stopped = _worse(before, now, margin)
            finally:
                routes.undo(destination)
    except KeyboardInterrupt:
        raise Stopped(round(time.monotonic() - began, 1)) from None
    return {
        "destination": destination,
        "twin": twin.name,
        "seconds": round(time.monotonic() - began, 1),
        "stopped": stopped,
        "before": asdict(before),
        "worst": asdict(worst),
        "used": used,
        "keep": look(sockets(destination), twin=twin.name).trying,
    }


def _worse(before: Look, now: Look, margin: float) -> str | None:
    """Why the trial ends, if it does."""
    if not before.sockets or not now.sockets:
        return None
    if now.p99_rtt_ms > margin * before.p99_rtt_ms:
        return f"the p99 RTT rose from {before.p99_rtt_ms:g} to {now.p99_rtt_ms:g} ms, more than {margin:g} times"
    if now.retransmitted >= FEW and now.share > margin * (before.share + 0.001):
        return f"retransmissions rose from {before.share:.2%} to {now.share:.2%} of the segments"
    return None
