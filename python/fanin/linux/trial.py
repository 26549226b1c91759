"""The careful way to try an answer: one destination, for a while, taken back at the end or as soon as it gets worse."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fanin.linux import program, routes

_RTT = re.compile(r"\brtt:([\d.]+)/")
_RETRANS = re.compile(r"\bretrans:\d+/(\d+)")
_SEGMENTS = re.compile(r"\bdata_segs_out:(\d+)")


@dataclass(frozen=True)
class Look:
    """What the sockets to the destination say now (``TCP_INFO``, through ss)."""

    sockets: int
    p99_rtt_ms: float
    retransmitted: int
    sent: int

    @property
    def share(self) -> float:
        """Retransmitted part of the segments sent."""
        return self.retransmitted / self.sent if self.sent else 0.0


def look(destination: str) -> Look:
    """Read every connected socket to ``destination`` of this network namespace."""
    done = subprocess.run(
        ["ss", "-Htin", "state", "established", "dst", destination], capture_output=True, text=True, check=False
    )
    rtts = sorted(float(rtt) for rtt in _RTT.findall(done.stdout))
    return Look(
        sockets=len(rtts),
        p99_rtt_ms=rtts[min(len(rtts) - 1, int(0.99 * len(rtts)))] if rtts else 0.0,
        retransmitted=sum(map(int, _RETRANS.findall(done.stdout))),
        sent=sum(map(int, _SEGMENTS.findall(done.stdout))),
    )


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
        ``before``, ``worst``, ``stopped`` (why it ended early, or ``None``) and ``seconds``.
    """
    before = look(destination)
    if not before.sockets:
        say(
            f"no connection to {destination} now: there is nothing to compare with, so only the time limit ends the trial"
        )
    began, stopped, worst = time.monotonic(), None, before
    with program.held(name, params) as twin:
        routes.add(destination, twin.name, owner=os.getpid())
        try:
            while not stopped and time.monotonic() - began < seconds:
                time.sleep(min(every, max(0.0, seconds - (time.monotonic() - began))))
                now = look(destination)
                if now.p99_rtt_ms > worst.p99_rtt_ms or now.share > worst.share:
                    worst = now
                stopped = _worse(before, now, margin)
        finally:
            routes.undo(destination)
    return {
        "destination": destination,
        "twin": twin.name,
        "seconds": round(time.monotonic() - began, 1),
        "stopped": stopped,
        "before": before.__dict__,
        "worst": worst.__dict__,
    }


def _worse(before: Look, now: Look, margin: float) -> str | None:
    """Why the trial ends, if it does."""
    if not before.sockets or not now.sockets:
        return None
    if now.p99_rtt_ms > margin * before.p99_rtt_ms:
        return f"the p99 RTT rose from {before.p99_rtt_ms:g} to {now.p99_rtt_ms:g} ms, more than {margin:g} times"
    if now.share > margin * (before.share + 0.001):
        return f"retransmissions rose from {before.share:.2%} to {now.share:.2%} of the segments"
    return None
