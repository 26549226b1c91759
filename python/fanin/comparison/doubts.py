"""Where a replay need not be what the captured service would do: what the capture does not show, and whether it matters here.

Each doubt is tried, not presumed: the replay of the TCP that was captured is held against the capture itself, and against replays of other traffic that
the capture cannot tell from this one. Where all agree nothing is said.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from fanin.capture import closing
from fanin.runs.job import RunWarning
from fanin.statistics.frames import frame
from fanin.words.text import duration

if TYPE_CHECKING:
    from fanin._native import Replay

NOT_AS_CAPTURED = "not-as-captured"

KINDS = (
    NOT_AS_CAPTURED,
    "server-times-unseen",
    "held-back",
    "timer-untested",
    "requests-untold",
    "requests-broken",
    "requests-unclear",
    "requests-unbound",
    "requests-unsure",
    "unasked",
)
"""Kinds of these warnings."""

MOST = {0.5: 1.10, 0.99: 1.25}
"""Quantiles, and the factor by which they may be apart beyond chance."""

NAMES = {0.5: "median", 0.9: "p90", 0.95: "p95", 0.99: "p99"}

TAILS = (0.99, 0.95, 0.9)
"""Where a sample does not bound a quantile from above, being too small, the next one stands in for the tail."""

SEEDS = 5
"""Replays of other possible traffic are made for so many seeds at most."""

SIGMAS = 2.0
"""So many standard errors, in rank, may a quantile of the capture lie from that of the replay."""

FEWEST = 10
"""Fewer rounds or responses of a capture are not held against its replay."""

MARGIN = 1.05
"""Seeds that were not run may lie so far beyond those that were."""

UNASKED_SHARE = 0.1
"""More of the responses that follow no request are remarked."""

EVENTS = {"timeouts": "timeouts", "drops": "drops"}
"""Counts of a run that are compared, and how they are called."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """What replays of one algorithm came to, as :attr:`fanin.CompareResult.responses`, ``rounds`` and ``runs`` have it."""

    responses: pl.DataFrame
    rounds: pl.DataFrame
    runs: pl.DataFrame

    def of(self, cc: str, seeds: Sequence[int]) -> Replayed:
        """Those of one algorithm and these seeds: of responses and rounds the columns that are looked at here."""
        mine = (pl.col("cc") == cc) & pl.col("seed").is_in(list(seeds))
        responses = self.responses.lazy().filter(mine).select("cc", "seed", "response", "completion_ms")
        rounds = self.rounds.lazy().filter(mine).select("cc", "seed", "round", "completion_ms")
        return Replayed(responses.collect(), rounds.collect(), self.runs.filter(mine))

    def times(self) -> dict[str, list[pl.Series]]:
        """Completion times by seed, in ms and in order, without those that wait for handshakes: the first round, and each connection's first response."""
        responses = self.responses.filter(pl.col("response") > 0)
        rounds = self.rounds.filter(pl.col("round") > 0)
        return {"round": _by_seed(rounds), "response": _by_seed(responses)}


def about_the_capture(replay: Replay, *, independent: bool) -> list[str]:
    """What the capture leaves open about the applications, whichever TCP runs."""
    told: list[str] = []
    if not independent:
        told += [RunWarning(sentence, kind) for kind, sentence in closing.doubts(replay).items()]
    if replay.untold:
        several = replay.untold > 1
        told.append(
            RunWarning(
                f"{replay.untold:,} {'requests were' if several else 'request was'} in flight together with others on a connection, and neither sizes nor "
                "the ends of writes (PSH) tell where each answer ends: such requests are replayed as one with a long answer, so that there are fewer "
                "answers than there were",
                "requests-untold",
            )
        )
    if not independent and replay.merged > UNASKED_SHARE * (replay.responses + replay.merged):
        told.append(
            RunWarning(
                f"{replay.merged:,} writes (ends with PSH) follow no request and no pause, and are replayed as parts of {replay.responses:,} answers: what "
                "their servers waited for is not in the capture, and there are fewer answers than there were",
                "unasked",
            )
        )
    elif not independent and replay.unasked > UNASKED_SHARE * replay.responses:
        told.append(
            RunWarning(
                f"{replay.unasked:,} of {replay.responses:,} answers follow no request: what their servers waited for is not in the capture, so each "
                "leaves at its time in the capture however late the ones before are, and answers without a pause between them are replayed as one",
                "unasked",
            )
        )
    return told


def against_the_capture(replay: Replay, cc: str, replayed: Replayed, half_rtt: pl.DataFrame) -> list[str]:
    """The replay of the captured TCP beside what the capture itself shows of rounds, or of responses where it has none.

    `half_rtt` is half of each ``connection``'s shortest round trip as ``way``, in ms: the way of a request to its server.
    """
    apart = _apart(replay, replayed, half_rtt)
    if not apart:
        return []
    return [
        RunWarning(
            f"replayed under {cc}, {' and '.join(apart)} in the capture itself, further apart than chance explains: either {cc} or the rack file is not "
            "what was captured, or what the capture does not show decides here (docs/numbers.md, What a replay cannot know). Trust the order more than "
            "the times",
            NOT_AS_CAPTURED,
            cc,
        )
    ]


def _apart(replay: Replay, replayed: Replayed, half_rtt: pl.DataFrame) -> list[str]:
    """Where a replay of the captured TCP is not the capture, by more than chance, in rounds or else in responses: in words."""
    rounds, here = _rounds(replay), replayed.times()["round"]
    if len(rounds) and any(len(seed) for seed in here):
        return _beyond("round", rounds, here)
    seen, here = _responses(replay, replayed, half_rtt)
    return _beyond("response", seen, here)


def _rounds(replay: Replay) -> pl.Series:
    return pl.Series(replay.round_times_ms()[1:], dtype=pl.Float64).drop_nulls().sort()


def _responses(replay: Replay, replayed: Replayed, half_rtt: pl.DataFrame) -> tuple[pl.Series, list[pl.Series]]:
    """Times of responses in the capture and in the replays."""
    rows, here = frame(replay.response_times()), replayed.times()["response"]
    if (later := rows.filter(pl.col("response") > 0)).height >= FEWEST:
        rows = later
    else:
        # A connection for each request: what is compared begins with the answer, so that no handshake is in it.
        here = _by_seed(replayed.responses)
    rows = rows.join(half_rtt, on="connection", how="left").with_columns(pl.col("way").fill_null(0.0))
    return (rows["took_ms"] - rows["way"]).drop_nulls().clip(0.0).sort(), here


def _beyond(what: str, seen: pl.Series, here: Sequence[pl.Series]) -> list[str]:
    """Quantiles of replays that lie further from those of the capture, which is a sample, than chance explains: in words."""
    if len(seen) < FEWEST or not all(len(seed) for seed in here):
        return []
    apart = []
    together = _pooled(here)
    for most, p in zip(MOST.values(), (0.5, _tail(len(seen))), strict=True):
        replays, own = quantile(together, p), [quantile(seed, p) for seed in here]
        low, high = _likely(seen, p)
        if min(own) > high * most or max(own) < low / most:
            apart.append(f"the {NAMES[p]} {what} {duration(replays)} instead of {duration(quantile(seen, p))}")
    return apart


def against_others(
    replay: Replay,
    cc: str,
    replayed: Replayed,
    again: Callable[[Replay | None, Mapping[str, str]], Replayed],
) -> list[str]:
    """The replay of the captured TCP beside replays of what the capture cannot tell from it.

    `again` replays other traffic (None: the same) with other settings, under the same algorithm and seeds.
    """
    told: list[str] = []
    if (other := replay.otherwise()) is not None:
        found = _different(replayed, again(other, {}))
        unsure = frame(replay.response_times())["unsure_ms"].drop_nulls()
        unsure = unsure.filter(unsure != 0).sort()
        if found and len(unsure):
            told.append(
                RunWarning(
                    f"how long servers took is not in the capture for {len(unsure):,} of {replay.responses:,} answers, which waited behind others or lost "
                    f"their first packets before the tap saw them: it is known to within {duration(quantile(unsure, 0.5))} (median). Other times within "
                    f"these bounds give {' and '.join(found)} under {cc}; capture at the switch or at the servers to see them",
                    "server-times-unseen",
                    cc,
                )
            )
    if (other := replay.unwaiting()) is not None:
        found = _different(replayed, again(other, {}))
        if found:
            told.append(
                RunWarning(
                    "requests leave by a timer, and no answer of the capture was late for it: whether the timer waits for a late answer is not in the "
                    f"capture, and it does in the replay. Does it not, there is {' and '.join(found)} under {cc}; regardless = true in the workload "
                    "file says so (fanin trains --workload)",
                    "timer-untested",
                    cc,
                )
            )
    if "trim" in cc.split("+"):
        found = _different(replayed, again(None, {"cc.trim_async": "false"}))
        if found:
            told.append(
                RunWarning(
                    "TRIM holds the first packets of an answer back for a random time, and in a capture that was made under it that time looks like the "
                    f"server's: the replay waits for both. Without its own there would be {' and '.join(found)}; what is true lies between",
                    "held-back",
                    cc,
                )
            )
    return told


def _different(one: Replayed, other: Replayed) -> list[str]:
    """Where two replays differ by more than chance: in words."""
    found = []
    here, there = one.times(), other.times()
    for what in ("round", "response"):
        if not here[what] or not all(len(seed) for seed in [*here[what], *there[what]]):
            continue
        ours, theirs = _pooled(here[what]), _pooled(there[what])
        for p, most in MOST.items():
            a, b, allowed = quantile(ours, p), quantile(theirs, p), _allowed(here[what], p, most)
            if not a / allowed <= b <= a * allowed:
                found.append(f"a {NAMES[p]} {what} of {duration(b)} instead of {duration(a)}")
    for column, name in EVENTS.items():
        counts, others = (runs.runs[column].to_list() for runs in (one, other))
        mean, another = (sum(values) / max(len(values), 1) for values in (counts, others))
        answers = one.responses.height / max(len(counts), 1)
        allowed = max(0.25 * mean, max(counts, default=0) - min(counts, default=0)) + max(2.0, answers / 20)
        if abs(mean - another) > allowed:
            found.append(f"{another:,.0f} {name} a run instead of {mean:,.0f}")
    return found


def quantile(values: pl.Series, p: float) -> float:
    """Of values in order, by nearest rank.

    Examples
    --------
    >>> quantile(pl.Series([1.0, 2.0, 3.0, 4.0]), 0.5), quantile(pl.Series([1.0, 2.0]), 0.99)
    (2.0, 2.0)
    """
    return float(values[max(1, math.ceil(round(p * len(values), 9))) - 1])


def _by_seed(rows: pl.DataFrame) -> list[pl.Series]:
    parts = rows.select("seed", "completion_ms").partition_by("seed", maintain_order=True)
    return [part["completion_ms"].drop_nulls().sort() for part in parts]


def _pooled(seeds: Sequence[pl.Series]) -> pl.Series:
    """All seeds' values in order."""
    return pl.concat(seeds).sort() if seeds else pl.Series(dtype=pl.Float64)


def _allowed(seeds: Sequence[pl.Series], p: float, most: float) -> float:
    """A factor, or what the seeds themselves differ by."""
    own = [quantile(values, p) for values in seeds]
    return max(most, MARGIN * max(own) / min(own)) if min(own) > 0 else math.inf


def _tail(count: int) -> float:
    """The last quantile that so many values bound from above.

    Examples
    --------
    >>> _tail(1000), _tail(100), _tail(40), _tail(20)
    (0.99, 0.95, 0.9, 0.99)
    """
    return next((p for p in TAILS if p + _error(count, p) < 1), TAILS[0])


def _error(count: int, p: float) -> float:
    """Standard errors of a quantile of so many values, in rank."""
    return SIGMAS * math.sqrt(p * (1 - p) / max(count, 1))


def _likely(values: pl.Series, p: float) -> tuple[float, float]:
    """Between what the true quantile lies of which these are a sample: order statistics so many standard errors away; 0 or infinite beyond them."""
    error = _error(len(values), p)
    low, high = p - error, p + error
    return (quantile(values, low) if low > 0 else 0.0), (quantile(values, high) if high < 1 else math.inf)
