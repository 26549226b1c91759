"""What the capture itself measured, to hold the simulation against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from fanin.runs.job import RunWarning
from fanin.statistics.frames import frame
from fanin.statistics.ranking import completion_statistics
from fanin.words.text import duration, enumeration, significant

if TYPE_CHECKING:
    from fanin._native import Replay
    from fanin.capture.traffic import TrainsResult
    from fanin.statistics.ranking import RankingRow, RankOf

FACTOR = 1.5
"""A measured and a simulated value further apart than this are a warning."""

FEWEST_RETRANSMISSIONS = 10
"""Counts below this on both sides are not held against each other: chance makes any ratio of them."""

FEWEST_RESPONSES = {"p50": 20, "p99": 100}
"""With fewer responses a percentile of them says nothing."""

FEWEST_FOR_A_GAIN = {"mean": 20, "p50": 20, "p95": 40, "p99": 100, "p99_9": 1000}
"""The same of every statistic that a gain may be claimed at."""

NS_PER_MS = 1e6

NOT_AS_MEASURED = "not-as-measured"
"""The kind of the sentence that says that the simulated baseline is not what the capture measured."""

WAN_RTT_MS = 2.0
"""A shortest round trip above this is no data centre's."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What happened in the capture.

    Attributes
    ----------
    responses : int
        Responses with payload whose first and last packet are in the capture.
    completion_ms : dict of str to float or None
        Duration of responses, keys as in :data:`fanin.statistics.ranking.STATISTICS`: from the first packet to the last as the tap saw them, and half of
        the connection's shortest round trip, for the way of one of the two.
    retransmissions : int
        Segments from the servers that were sent again, as far as the tap could see.
    overtaken : int
        Of these what the network had only delivered behind later packets, which no rack does.
    syn_retransmissions : int
        SYNs that were sent again: each cost its connection a second or more.
    min_rtt_ms : float or None
        Shortest round trip of all connections; None where the tap saw none.
    ecn : bool
        Packets were marked CE, so the switch marks and the hosts negotiated ECN.
    """

    responses: int
    completion_ms: dict[str, float | None]
    retransmissions: int
    overtaken: int
    syn_retransmissions: int
    min_rtt_ms: float | None
    ecn: bool

    @property
    def replayed_retransmissions(self) -> int:
        """What a replay on the right rack sends again."""
        return self.retransmissions - self.overtaken

    def told(self) -> dict[str, float]:
        """Completion times by statistic, ms, of what there are enough responses for (:data:`FEWEST_FOR_A_GAIN`)."""
        return {
            name: value
            for name, value in self.completion_ms.items()
            if value is not None and self.responses >= FEWEST_FOR_A_GAIN.get(name, 1)
        }

    def to_dict(self) -> dict[str, Any]:
        """As it stands in JSON."""
        return {
            "responses": self.responses,
            "completion_ms": dict(self.completion_ms),
            "retransmissions": self.retransmissions,
            "overtaken": self.overtaken,
            "syn_retransmissions": self.syn_retransmissions,
            "min_rtt_ms": self.min_rtt_ms,
            "ecn": self.ecn,
        }


def durations(found: TrainsResult, aggregator: str) -> list[float]:
    """How long each response to a host took, in ms, in the order in which they began; as :attr:`Measured.completion_ms`."""
    towards = found.towards(aggregator).select("connection", "asks", rtt=shortest_rtt())
    half = pl.Series("half", [(rtt or 0) / 2e6 for rtt in towards["rtt"]], dtype=pl.Float64)
    answers = pl.col("asks")
    began, ended, size = (
        pl.when(answers).then(pl.col(f"response_{what}")).otherwise(pl.col(f"request_{what}"))
        for what in ("start_ms", "end_ms", "bytes")
    )
    took = (
        found.turns.join(towards.with_columns(half), on="connection", how="inner", maintain_order="left")
        .filter(size > 0)
        .sort("connection", maintain_order=True)
        .select(began=began, took=ended - began + pl.col("half"))
    )
    return took.drop_nulls().sort("began", maintain_order=True)["took"].to_list()


def shortest_rtt() -> pl.Expr:
    """The shortest round trip of each connection of :meth:`fanin.TrainsResult.towards`, ns; null where none was seen."""
    return pl.min_horizontal(pl.col(name).replace(0, None) for name in ("handshake_rtt_ns", "min_rtt_ns"))


def tree_durations(found: TrainsResult, replay: Replay) -> list[float | None]:
    """How long each request tree took, in ms: from the client's request at the tap to the end of the answer, and the way between tap and client.

    None where the capture lacks an end of it.
    """
    trees = frame(replay.trees()).with_columns(began=_whole_ns(pl.col("start_ns")))
    turns = found.turns.select(
        "connection",
        began=_whole_ns(pl.col("response_start_ms") * NS_PER_MS),
        took=pl.col("response_end_ms") - pl.col("request_start_ms"),
    )
    rows = trees.join(turns, on=["connection", "began"], how="left", maintain_order="left")
    # The answer passes the tap towards the client, so its round trip is from the tap to the client and back.
    rtt = {c: found.connections[c]["to_client"]["min_rtt_ns"] or 0 for c in rows["connection"].unique().sort()}
    return [
        None if ms is None else ms + rtt[c] / NS_PER_MS for c, ms in zip(rows["connection"], rows["took"], strict=True)
    ]


def _whole_ns(time: pl.Expr) -> pl.Expr:
    return time.round(0).cast(pl.Int64)


def waited(found: TrainsResult, replay: Replay, of: RankOf) -> list[float | None] | None:
    """What request trees, requests or stages took in the capture, in ms; None for responses, which :func:`durations` knows."""
    if of == "trees":
        return tree_durations(found, replay)
    if of == "stages":
        return replay.stage_times_ms()
    return replay.round_times_ms() if of == "requests" else None


def measured(found: TrainsResult, aggregator: str, waited_ms: Sequence[float | None] | None = None) -> Measured:
    """What the responses to one host really took; with `waited_ms`, what its request trees or rounds took."""
    towards = found.towards(aggregator)
    rtt = towards.select(shortest_rtt()).to_series().min()
    took = durations(found, aggregator)
    if waited_ms is not None:
        took = [ms for ms in waited_ms if ms is not None]
    return Measured(
        responses=len(took),
        completion_ms=completion_statistics(took),
        retransmissions=int(towards["repaired_packets"].sum()),
        overtaken=int(towards["overtaken_packets"].sum()),
        # The SYN/ACK is one too.
        syn_retransmissions=int(towards["repeated_syns"].sum()),
        min_rtt_ms=rtt / 1e6 if isinstance(rtt, int) else None,
        ecn=bool((towards["ce_packets"] > 0).any()),
    )


@dataclass(frozen=True, slots=True)
class Today:
    """What a capture shows of what the hosts that send run.

    Attributes
    ----------
    cc : str or None
        The algorithm; None where only `why` can be said.
    why : str
        How the capture shows it, or what it cannot be.
    """

    cc: str | None
    why: str


FEWEST_RELEASES, FEWEST_BACKOFFS = 40, 10
"""With fewer packets that tell what made their sender send, or fewer losses, nothing is concluded."""


def seen_baseline(found: TrainsResult, aggregator: str) -> Today | None:
    """What the hosts that send to `aggregator` run, as far as the capture shows it; None where it does not.

    DCTCP's hosts send their SYNs as ECN-capable (ECT), which RFC 3168 forbids to all others (Linux, ``tcp_ecn_send_synack``). Of the others, what
    follows its acknowledgements is told from what paces (BBR), and what a loss leaves of the window tells BBR (nearly all), CUBIC (0.7) and Reno
    (half) apart. Both are needed for BBR: a busy host and a shaper send between acknowledgements too.
    """
    sides = found.towards(aggregator)
    opened = sides.filter(pl.col("handshake_seen"))
    capable = int(opened["ect_syn"].sum())
    if 2 * capable > opened.height:
        return Today(
            "dctcp",
            f"{capable} of {opened.height} handshakes in the capture were sent as ECN-capable, as only DCTCP's are",
        )
    # Behind the queue, its link is what spaces the packets.
    releases = int(sides["releases"].sum())
    if releases < FEWEST_RELEASES or found.behind_the_queue(aggregator):
        return None
    prompted, unprompted = (int(sides[f"{name}_releases"].sum()) / releases for name in ("prompted", "unprompted"))
    losses, over_half, small = (int(sides[name].sum()) for name in ("backoffs", "backoffs_over_half", "backoffs_small"))
    if prompted <= 0.5 and unprompted >= 0.3 and losses >= FEWEST_BACKOFFS and small >= 0.2 * losses:
        return Today(
            "bbr",
            f"{unprompted:.0%} of {releases:,} packets left between acknowledgements, and {small / losses:.0%} of {losses} losses left nearly all of "
            "the window, as with BBR",
        )
    if prompted < 0.8:
        return None
    clocked = f"{prompted:.0%} of {releases:,} packets left when an acknowledgement came, as with none that paces (BBR)"
    # What leaves nearly all of the window is neither Reno's nor CUBIC's: the second loss of one window, or a response whose end is near.
    cuts, shallow = losses - small, over_half - small
    share = "none" if shallow == 0 else f"{shallow / max(cuts, 1):.0%}"
    told = f"{clocked}, and {share} of {cuts} losses that took a part of the window left more than half of it"
    if cuts >= FEWEST_BACKOFFS and shallow >= 0.4 * cuts:
        return Today("cubic", told)
    if cuts >= FEWEST_BACKOFFS and shallow <= 0.15 * cuts:
        return Today("reno", f"{told} (Vegas and others that halve theirs look the same)")
    return Today(None, clocked)


def another_baseline(seen: Measured, presumed: RankingRow, rows: Sequence[RankingRow]) -> list[str]:
    """Where the presumed baseline is not what was measured and one other algorithm of the comparison is: it may be what the hosts run.

    It proves nothing, since the rack may be wrong too: so it is a remark beside the gap, and never the baseline.
    """
    if not _apart_from(seen, presumed) or _can_be_told(seen) < 2:
        return []
    alike = [row for row in rows if row is not presumed and not _apart_from(seen, row)]
    if not alike:
        return []
    names = enumeration([row.cc for row in alike[:3]])
    those = "would have been measured so" if len(alike) == 1 else "would each have been measured so"
    return [
        f"on this rack {names} {those}, within a factor of {FACTOR} at each of them: if that is what the hosts run, say it with --baseline "
        f"{alike[0].cc}; if they run {presumed.cc}, the rack is wrong"
    ]


def _can_be_told(seen: Measured) -> int:
    """Of how many statistics a capture has enough to hold a simulation against them."""
    enough = sum(
        seen.responses >= fewest and bool(seen.completion_ms[name]) for name, fewest in FEWEST_RESPONSES.items()
    )
    return enough + (seen.replayed_retransmissions >= FEWEST_RETRANSMISSIONS)


def _apart_from(seen: Measured, simulated: RankingRow) -> dict[str, tuple[float, float]]:
    """Where a simulated row is not what was measured: both values by statistic."""
    apart = {}
    for name, fewest in FEWEST_RESPONSES.items():
        there, here = seen.completion_ms[name], simulated.completion_ms[name].value
        if seen.responses >= fewest and there and here and max(there / here, here / there) > FACTOR:
            apart[name] = (there, here)
    there, here = float(seen.replayed_retransmissions), simulated.retransmissions.value or 0.0
    if max(there, here) >= FEWEST_RETRANSMISSIONS and max(there + 1, here + 1) / min(there + 1, here + 1) > FACTOR:
        apart["retransmissions"] = (there, here)
    return apart


def disagreement(seen: Measured, simulated: RankingRow, simulated_rtt_ms: float | None) -> list[str]:
    """Where the simulated baseline is not what the capture measured, and the likeliest reason; nothing where they agree."""
    told: list[str] = []
    if seen.syn_retransmissions:
        n = seen.syn_retransmissions
        told.append(
            f"{n} {'SYN was' if n == 1 else 'SYNs were'} sent again in the capture, which costs a second or more each: connections were refused "
            "or their first packets lost, and no congestion control changes that"
        )
    apart = _apart_from(seen, simulated)
    if apart:
        parts = [_apart(name, *pair) for name, pair in apart.items()]
        told.append(
            RunWarning(
                f"the simulation of {simulated.cc} is not what the capture measured: {enumeration(parts)}. "
                f"{_reason(apart, seen.min_rtt_ms, simulated_rtt_ms)}",
                NOT_AS_MEASURED,
                simulated.cc,
            )
        )
    return told


def _apart(name: str, there: float, here: float) -> str:
    factor = f"{significant(max(there, here) / min(there, here), 2)} times" if min(there, here) > 0 else ""
    if name == "retransmissions":
        return f"{there:,.0f} retransmission{'' if round(there) == 1 else 's'} measured, {here:,.0f} simulated"
    more = "longer" if here > there else "shorter"
    return f"{name.replace('p50', 'median')} {duration(there)} measured, {duration(here)} simulated ({factor} {more})"


def _reason(apart: dict[str, tuple[float, float]], seen_rtt: float | None, simulated_rtt: float | None) -> str:
    """The likeliest reason, most telling evidence first."""
    if seen_rtt and simulated_rtt and seen_rtt > WAN_RTT_MS and seen_rtt > 5 * simulated_rtt:
        return (
            f"The capture's shortest round trip is {duration(seen_rtt)}, the rack's {duration(simulated_rtt)}: it was taken across a WAN, "
            "and a rack does not show what its traffic waits for."
        )
    times = apart.get("p50") or apart.get("p99")
    # A round trip explains what goes the same way.
    if (
        seen_rtt
        and simulated_rtt
        and times
        and (
            (seen_rtt > 2 * simulated_rtt and times[0] > times[1])
            or (simulated_rtt > 2 * seen_rtt and times[0] < times[1])
        )
    ):
        slower = "short" if seen_rtt > simulated_rtt else "long"
        return (
            f"Likely the rack's `delay` is too {slower}: the shortest round trip is {duration(seen_rtt)} in the capture and "
            f"{duration(simulated_rtt)} on the rack."
        )
    lost = apart.get("retransmissions")
    if lost and lost[0] < lost[1]:
        return "Likely the rack's `buffer` is smaller than the real one, or its links slower: see what `fanin rack` proposes, or try others with --vary."
    if lost:
        return (
            "Likely the real buffer is smaller than the rack's, or traffic that is not in the capture shared the port: "
            "see what `fanin rack` proposes, or try others with --vary."
        )
    middle, tail = apart.get("p50"), apart.get("p99") or apart["p50"]
    if middle and middle[0] < middle[1] and tail[0] > tail[1]:
        return (
            "Likely the rack's links are slower than the real ones, which the median shows, and the hosts slower than the simulation's, which cost no "
            "time, which p99 shows: check `rate` first."
        )
    if tail[0] > tail[1]:
        return (
            "Likely the hosts were slower than the simulation's, which cost no time, or the rack's links are faster than the real ones: "
            "check `rate`, and `jitter` under [replay]."
        )
    return (
        "Likely the rack is slower than the real one, or the capture was taken behind the queue, where the network's stalls pass for pauses of "
        "the application: check `rate`, and capture at the switch or at the servers."
    )
