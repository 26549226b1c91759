"""What Linux lets an operator set on a host for TCP's fan-in: the end it belongs to, its lines, and what it costs elsewhere.

Those with a key are settings of the simulator too, and may be candidates (:mod:`fanin.settings.declared`); the others are here with their lines
alone, since neither simulator nor virtual kernel can say what they would do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from fanin.settings import shell
from fanin.settings.declared import End

Place = Literal["route", "sysctl", "device", "qdisc"]


@dataclass(frozen=True, slots=True)
class HostSetting:
    """One setting of a host.

    Attributes
    ----------
    option : str
        As ``ip route``, ``sysctl``, ``ip link`` or ``tc`` call it.
    place : {"route", "sysctl", "device", "qdisc"}
        Which of them. A route's is of one peer's connections, a sysctl's of all of a host's (of its network namespace), the others' of a device.
    end : End
        Whose it is.
    value : str
        One to try.
    does : str
        What it changes.
    costs : str
        What it costs elsewhere.
    since : str
        The least Linux; empty where every supported one has it.
    key : str
        Of the simulator; empty where there is none.
    """

    option: str
    place: Place
    end: End
    value: str
    does: str
    costs: str
    since: str = ""
    key: str = ""

    def lines(self, peers: Sequence[str]) -> tuple[str, ...]:
        """What to type, on a host of its end, for connections with these peers.

        Examples
        --------
        >>> BY_OPTION["tcp_slow_start_after_idle"].lines(["10.0.0.1"])[0].endswith("sysctl -w net.ipv4.tcp_slow_start_after_idle=0")
        True
        """
        if self.place == "route":
            return shell.route(peers, {self.option: self.value})
        if self.place == "sysctl":
            return (shell.sysctl({f"net.ipv4.{self.option}": self.value}),)
        if self.place == "device":
            return (shell.device(peers[0], self.option, self.value),)
        return (shell.fair_queue(peers[0]),)

    def undo(self, peers: Sequence[str]) -> tuple[str, ...]:
        """What takes `lines` back."""
        if self.place == "route":
            return (shell.route_undo(peers),)
        if self.place == "sysctl":
            return (shell.sysctl_undo([f"net.ipv4.{self.option}"]),)
        if self.place == "device":
            return (shell.device_undo(peers[0], self.option),)
        return (shell.fair_queue_undo(peers[0]),)


HOST_SETTINGS = (
    HostSetting(
        "rto_min",
        "route",
        End.BOTH,
        "20ms",
        "floor of the retransmission timer, and of a host's own delayed ACKs, which are a jiffy shorter",
        "needless retransmissions where the round trip varies by more than the floor; more pure ACKs",
        since="6.7 (before, the aggregator's ACKs wait 40 ms whatever the floor: quickack 1 there)",
        key="stack.min_rto",
    ),
    HostSetting(
        "tcp_rto_min_us",
        "sysctl",
        End.BOTH,
        "20000",
        "the same for all of a host's connections that no route says otherwise for",
        "as rto_min, also towards the Internet, where round trips vary most: rather by routes",
        since="6.11",
        key="stack.min_rto",
    ),
    HostSetting(
        "quickack",
        "route",
        End.AGGREGATOR,
        "1",
        "every segment is acknowledged at once: round-trip samples without delayed ACKs, and low floors of the timer are safe",
        "up to twice as many ACKs, processor time at both ends and space on the way back",
        key="stack.delack_segments",
    ),
    HostSetting(
        "initcwnd",
        "route",
        End.SERVERS,
        "4",
        "segments that a new connection, or one that was idle, sends before the first ACK",
        "a round trip more for each doubling that a response then needs",
        key="stack.initial_window",
    ),
    HostSetting(
        "initrwnd",
        "route",
        End.AGGREGATOR,
        "10",
        "segments that a server may send before the aggregator has acknowledged any",
        "a round trip more for large responses of new connections; none later, when the window has grown",
    ),
    HostSetting(
        "window",
        "route",
        End.AGGREGATOR,
        "29200",
        "bytes that each server may have under way to the aggregator at once",
        "caps a connection at so many bytes per round trip, also when it is alone",
    ),
    HostSetting(
        "tcp_rmem",
        "sysctl",
        End.AGGREGATOR,
        "4096 65536 131072",
        "the receive buffer, and with it the largest window, that connections start with and grow to",
        "caps all of the host's connections at about its half per round trip, those to far hosts most",
    ),
    HostSetting(
        "tcp_slow_start_after_idle",
        "sysctl",
        End.SERVERS,
        "0",
        "a window is kept over silences longer than the retransmission timer instead of restarting from initcwnd",
        "bursts of a window that the network may not have room for any more",
        key="stack.cwnd_validation",
    ),
    HostSetting(
        "tcp_ecn",
        "sysctl",
        End.BOTH,
        "1",
        "connections ask for ECN, so that switches that mark need not drop; DCTCP asks by itself",
        "a switch that marks has to be there; some middleboxes on far paths drop what asks",
        key="stack.ecn",
    ),
    HostSetting(
        "features",
        "route",
        End.BOTH,
        "ecn",
        "the same for connections with one peer",
        "as tcp_ecn, for that peer alone",
    ),
    HostSetting(
        "fq",
        "qdisc",
        End.SERVERS,
        "fq",
        "flows of a host take turns and are paced by the queue; without it BBR paces by timers of its own",
        "processor time per packet; no pacing of Reno or CUBIC unless an application asks (SO_MAX_PACING_RATE)",
        key="stack.pacing",
    ),
    HostSetting(
        "gso_max_size",
        "device",
        End.SERVERS,
        "16384",
        "bytes that TCP hands at once to the card, which leave as one burst",
        "processor time per byte, on all connections of the device",
    ),
    HostSetting(
        "tcp_notsent_lowat",
        "sysctl",
        End.SERVERS,
        "131072",
        "bytes that wait unsent in a socket before its application may write more: later data can still be chosen",
        "more wake-ups of the application; nothing on the wire",
    ),
    HostSetting(
        "congctl",
        "route",
        End.SERVERS,
        "reno",
        "the congestion control of connections with one peer",
        "another sender's behaviour where connections share a queue with those that have not moved yet",
    ),
)
"""All of them."""

BY_OPTION = {setting.option: setting for setting in HOST_SETTINGS}
"""Each by what Linux calls it."""


def table() -> str:
    """The settings as a table of the manual.

    Examples
    --------
    >>> len(table().splitlines()) == len(HOST_SETTINGS) + 2
    True
    """
    rows = ["| setting | where | whose | does | costs elsewhere | Linux | simulated |", "|---|---|---|---|---|---|---|"]
    for s in HOST_SETTINGS:
        name = "qdisc fq" if s.place == "qdisc" else f"`{s.option}`"
        key = f"`{s.key}`" if s.key else "no"
        rows.append(f"| {name} | {s.place} | {s.end} | {s.does} | {s.costs} | {s.since} | {key} |")
    return "\n".join(rows)
