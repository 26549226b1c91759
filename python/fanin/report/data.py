"""What the page's figures draw, taken from a comparison and thinned to what they can show."""

from __future__ import annotations

import base64
import itertools
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from fanin.rack.facts import rack_facts
from fanin.report import words
from fanin.settings.declared import stated_packets
from fanin.statistics.frames import fitted, parts, thin
from fanin.statistics.ranking import PREFIX, STATISTICS, RankOf
from fanin.words.explain import events_of, explanations
from fanin.words.verdict import STATISTIC_NAMES

if TYPE_CHECKING:
    from fanin.comparison.result import CompareResult

TRACE_ROWS = 120_000
"""Rows of each of a page's traces (queue, windows), over all algorithms: together some 1.5 MB as they are packed."""

CONNECTIONS = 16
"""Connections whose windows a page can show: those with the slowest responses."""

SCATTER_BINS = 700
"""Slots of time per run of the response figure, at most four responses in each; the slowest of a slot is always one of them."""

STEPS = 400
"""Packet events of one response that can be stepped through."""

CODES = {"accepted": "a", "dropped": "x", "marked": "m", "delivered": "d"}
"""Packet events as the page reads them."""

CURVE_POINTS = 240
"""Points of a distribution's body, and as many of its tail."""

NS_PER_MS = 1e6


def names(result: CompareResult) -> list[str]:
    """Algorithms in the order of their rank: the order of every figure and colour."""
    return [row.cc for row in result.ranking]


def kinds(result: CompareResult) -> list[RankOf]:
    """What has completion times here: what is ranked first, then the others of which there are some."""
    there: dict[RankOf, bool] = {of: any(row.count(of) for row in result.ranking) for of in ("trees", "requests")}
    # Where no request has a second stage, stages are the requests.
    there["stages"] = any(row.stages > row.requests for row in result.ranking)
    return [result.rank_of, *(of for of in PREFIX if of != result.rank_of and there.get(of, True))]


def payload(result: CompareResult) -> dict[str, Any]:
    """All that the page's script reads, ready for JSON."""
    order = names(result)
    shown = words.leaders(result)
    rack = rack_facts(result)
    return {
        "algorithms": [
            {"name": row.cc, "tier": row.tier, "needsEcn": row.needs_ecn, "shown": row.cc in shown}
            for row in result.ranking
        ],
        "baseline": result.verdict.baseline,
        "rankBy": result.rank_by,
        "rankOf": result.rank_of,
        "statistics": STATISTIC_NAMES,
        "estimates": [
            {"cc": row.cc, "of": of, "statistic": name, **row.times(of)[name].to_dict()}
            for row in result.ranking
            for of in kinds(result)
            for name in STATISTICS
        ],
        "curves": completion_curves(result, order),
        "trains": train_curves(result.trains),
        "seeds": list(result.seeds),
        "tracedSeeds": traced_seeds(result),
        "connections": connections(result),
        "endMs": _greatest(result.runs, "end_ms"),
        "bufferPackets": stated_packets(rack.get("receiver_buffer", rack.get("buffer"))),
        "markPackets": stated_packets(rack.get("receiver_mark", rack.get("mark"))),
        "slowest": slowest(result),
        "packed": pack(
            {
                "responses": responses(result),
                "queue": queues(result),
                "window": windows(result),
            }
        ),
    }


def slowest(result: CompareResult) -> list[dict[str, Any]]:
    """The slowest response of each algorithm, step by step: packets at the port, the sender's window, the queue."""
    told = []
    senders, ports = parts(result.window, "cc"), parts(result.queue, "cc")
    for found in explanations(result):
        row = {"cc": found.cc, "connection": found.connection, "release_ms": found.release_ms}
        until = found.release_ms + found.completion_ms
        events = events_of(result, {**row, "done_ms": until}).filter(pl.col("payload") > 0)
        first = int(events["seq"].min() or 0) if events.height else 0  # type: ignore[arg-type]
        within = pl.col("time_ms").is_between(found.release_ms, until)
        window = senders.get(found.cc, result.window.clear()).filter(
            (pl.col("connection") == found.connection) & within
        )
        queue = ports.get(found.cc, result.queue.clear()).filter(within)
        told.append(
            {
                "cc": found.cc,
                "connection": found.connection,
                "bytes": found.bytes,
                "from": found.release_ms,
                "took": found.completion_ms,
                "why": found.sentence,
                "events": [
                    [round(t - found.release_ms, 6), CODES[kind], seq - first, payload]
                    for t, kind, seq, payload in events.head(STEPS)
                    .select("time_ms", "event", "seq", "payload")
                    .iter_rows()
                ],
                "more": max(0, events.height - STEPS),
                "window": [
                    [round(t - found.release_ms, 6), round(cwnd, 2), round(flight, 2)]
                    for t, cwnd, flight in thin(window, "time_ms", "cwnd", by=["cc"], points=200)
                    .select("time_ms", "cwnd", "in_flight")
                    .iter_rows()
                ],
                "queue": [
                    [round(t - found.release_ms, 6), n]
                    for t, n in thin(queue, "time_ms", "packets", by=["cc"], points=200)
                    .select("time_ms", "packets")
                    .iter_rows()
                ],
            }
        )
    return told


def pack(things: Mapping[str, Iterable[Any]]) -> str:
    """An object of arrays as JSON, deflated, in base64; the page unpacks it with what every browser has.

    Their elements are made one after the other, since as lists they are large.
    """
    deflate = zlib.compressobj(6)
    packed = bytearray()
    for before, (name, elements) in zip(itertools.chain("{", itertools.repeat(",")), things.items(), strict=False):
        packed += deflate.compress(f"{before}{json.dumps(name)}:[".encode())
        for comma, element in zip(itertools.chain([""], itertools.repeat(",")), elements, strict=False):
            text = json.dumps(element, separators=(",", ":"), allow_nan=False)
            packed += deflate.compress(f"{comma}{text}".encode())
        packed += deflate.compress(b"]")
    packed += deflate.compress(b"}") + deflate.flush()
    return base64.b64encode(packed).decode()


def completion_curves(result: CompareResult, order: list[str]) -> list[dict[str, Any]]:
    """Per kind (:func:`kinds`) and algorithm, the distribution of completion times over all seeds.

    ``share`` is the share that took at most ``ms``; ``beyond`` the share that took at least as long. Both count what was not completed
    as longer than anything that was, so a curve with such ends below 1.
    """
    rows = []
    for of in kinds(result):
        frame = {
            "trees": result.trees,
            "requests": result.rounds,
            "stages": result.stages,
            "responses": result.responses,
        }[of]
        by_cc = parts(frame.select("cc", "completion_ms"), "cc")
        for cc in order:
            if cc not in by_cc:
                continue
            mine = by_cc[cc]["completion_ms"]
            total, done = len(mine), mine.drop_nulls().sort()
            rows += [
                {"cc": cc, "of": of, "ms": ms, "share": (i + 1) / total, "beyond": (total - i) / total}
                for i, ms in drawn(done)
                if ms > 0
            ]
    return rows


def curve_indices(count: int) -> list[int]:
    """Which of `count` ordered values to draw: evenly over the body, ever closer towards the greatest, which is always kept.

    Examples
    --------
    >>> curve_indices(5)
    [0, 1, 2, 3, 4]
    >>> kept = curve_indices(100_000)
    >>> len(kept) < 600, kept[0], kept[-3:]
    (True, 0, [99997, 99998, 99999])
    """
    if count <= 2 * CURVE_POINTS:
        return list(range(count))
    body = {round(i * (count - 1) / (CURVE_POINTS - 1)) for i in range(CURVE_POINTS)}
    tail = {count - max(1, round(count ** (i / (CURVE_POINTS - 1)))) for i in range(CURVE_POINTS)}
    return sorted(body | tail)


def drawn(ordered: pl.Series) -> Iterator[tuple[int, float]]:
    """Of ordered values those that a curve draws, each with its place: as a list millions would be gigabytes."""
    indices = curve_indices(len(ordered))
    return zip(indices, ordered.gather(indices).to_list(), strict=True)


def train_curves(trains: pl.DataFrame) -> dict[str, list[dict[str, float]]]:
    """Distributions of the capture's train sizes (bytes) and of the gaps before trains (ms)."""

    def curve(column: str) -> list[dict[str, float]]:
        ordered = trains[column].drop_nulls().sort()
        return [{"value": float(value), "share": (i + 1) / len(ordered)} for i, value in drawn(ordered) if value > 0]

    return {"sizes": curve("bytes"), "gaps": curve("gap_before_ms")}


def responses(result: CompareResult) -> Iterator[dict[str, Any]]:
    """Per algorithm and seed: when each response was released, how long it took, on which connection, with how many timeouts.

    A response that was not completed has completion null and is drawn at the top.
    """
    columns = {
        "ms": _rounded("release_ms", 3),
        "completion": _rounded("completion_ms", 4),
        **{name: pl.col(name) for name in ("connection", "bytes", "timeouts")},
    }
    span = _span(result.responses)
    # One run after the other: of a long capture there are millions of responses.
    for cc, of_cc in sorted(parts(result.responses, "cc").items()):
        for seed, run in sorted(parts(of_cc, "seed").items()):
            shown = run.select("release_ms", "completion_ms", "connection", "bytes", "timeouts")
            finished = shown.drop_nulls("completion_ms").sort("release_ms", maintain_order=True)
            drawn = thin(finished, "release_ms", "completion_ms", by=[], points=SCATTER_BINS, span=span)
            kept = pl.concat([drawn, shown.filter(pl.col("completion_ms").is_null())]).drop_nulls("release_ms")
            if kept.height:
                ordered = kept.sort("release_ms", maintain_order=True).select(**columns)
                yield {"cc": cc, "seed": seed, **ordered.to_dict(as_series=False)}


def _span(responses: pl.DataFrame) -> tuple[float, float]:
    """When the first and the last response that was completed were released."""
    done = responses.lazy().select("release_ms", "completion_ms").drop_nulls()
    low, high = done.select(low=pl.col("release_ms").min(), high=pl.col("release_ms").max()).collect().row(0)
    return low or 0.0, high or 0.0


def traced_seeds(result: CompareResult) -> list[int]:
    """Seeds whose queue and windows were traced."""
    if "seed" in result.queue.columns:
        return [int(seed) for seed in result.queue["seed"].unique().sort()]
    return [result.trace_seed]


def queues(result: CompareResult) -> Iterator[dict[str, Any]]:
    """Per algorithm and traced seed: the queue of the port to the aggregator, at every change or as an envelope that keeps peaks."""
    keys = _keys(result.queue)
    kept = fitted(result.queue, "time_ms", "packets", by=keys, rows=TRACE_ROWS)
    columns = {"dt": _nanoseconds("time_ms"), "packets": pl.col("packets")}
    for key, lists in _lists(kept, keys, "time_ms", columns):
        yield {"cc": key["cc"], "seed": key.get("seed", result.trace_seed), **lists, "dt": _steps(lists["dt"])}


WITHOUT_SSTHRESH = ("bbr", "swift")
"""Algorithms that no ssthresh steers: BBR keeps one for the kernel's statistics alone, Swift has none."""


def windows(result: CompareResult) -> Iterator[dict[str, Any]]:
    """Per algorithm, traced seed and shown connection: cwnd and ssthresh, and when retransmission timeouts came."""
    shown = [c["connection"] for c in connections(result)]
    keys = [*_keys(result.window), "connection"]
    trace = result.window.select(*keys, "time_ms", "cwnd", "ssthresh", "state")
    others = ~trace["connection"].is_in(shown)
    if others.any():
        trace = trace.filter(~others)
    timeouts = _timeout_times(trace, keys)
    kept = fitted(trace, "time_ms", "cwnd", by=keys, rows=TRACE_ROWS)
    del trace
    columns = {"dt": _nanoseconds("time_ms"), "cwnd": _rounded("cwnd", 2), "ssthresh": _rounded("ssthresh", 1)}
    for key, lists in _lists(kept, keys, "time_ms", columns):
        yield {
            "cc": key["cc"],
            "seed": key.get("seed", result.trace_seed),
            "connection": key["connection"],
            "dt": _steps(lists["dt"]),
            "cwnd": lists["cwnd"],
            "ssthresh": [] if key["cc"].rsplit("+")[-1] in WITHOUT_SSTHRESH else lists["ssthresh"],
            "timeouts": timeouts.get(tuple(key.values()), []),
        }


def _keys(trace: pl.DataFrame) -> list[str]:
    """What tells the runs of a trace apart."""
    return ["cc", "seed"] if "seed" in trace.columns else ["cc"]


def connections(result: CompareResult) -> list[dict[str, Any]]:
    """The connections whose windows the page can show, slowest response first: number, server, slowest completion."""
    traced = result.window.select(pl.col("connection").unique())
    worst = pl.col("slowest").max(), pl.col("timeouts").sum()
    # One algorithm after the other: of a long capture there are millions of responses.
    each = [
        of_cc.select("connection", "server", "timeouts", slowest="completion_ms")
        .join(traced, on="connection", how="semi")
        .group_by("connection", "server")
        .agg(worst)
        for of_cc in parts(result.responses, "cc").values()
    ]
    slowest = (
        pl.concat(each)
        .group_by("connection", "server")
        .agg(worst)
        .sort("timeouts", "slowest", "connection", descending=[True, True, False], nulls_last=True)
        .head(CONNECTIONS)
    )
    return slowest.select("connection", "server", "timeouts").to_dicts()


def fan(result: CompareResult) -> dict[str, Any]:
    """The fan-in of the capture for the drawing at the head of the page: servers with their share of the bytes, in order of share."""
    first = result.responses.filter(
        (pl.col("cc") == result.ranking[0].cc) & (pl.col("seed") == result.ranking[0].seeds[0])
    )
    per_server = first.group_by("server").agg(pl.col("bytes").sum()).sort("bytes", "server", descending=[True, False])
    total = max(1, int(per_server["bytes"].sum()))
    lines = [{"server": row["server"], "share": row["bytes"] / total} for row in per_server.iter_rows(named=True)]
    height, shown = 120.0, lines[:40]
    step = height / max(1, len(shown))
    for i, line in enumerate(shown):
        line["y"] = round((i + 0.5) * step, 2)
        line["width"] = round(max(0.6, min(step * 0.7, 22 * line["share"])), 2)
    return {"lines": shown, "servers": len(lines), "height": height}


def _timeout_times(trace: pl.DataFrame, keys: list[str]) -> dict[tuple[Any, ...], list[float]]:
    """When the sender of each line entered state `loss`, in ms; lines without are missing."""
    times: dict[tuple[Any, ...], list[float]] = {}
    for part in parts(trace, "cc").values():
        slim = part.select(*keys, "time_ms", lost=pl.col("state") == "loss").sort(*keys, maintain_order=True)
        begins = pl.any_horizontal(pl.col(key).ne_missing(pl.col(key).shift(1)) for key in keys)
        entered = slim.filter("lost", begins | ~pl.col("lost").shift(1, fill_value=False))
        for key, lists in _lists(entered, keys, "time_ms", {"times": _rounded("time_ms", 3)}):
            times[tuple(key.values())] = lists["times"]
    return times


def _lists(
    frame: pl.DataFrame, keys: list[str], time: str, columns: dict[str, pl.Expr]
) -> Iterator[tuple[dict[str, Any], dict[str, list[Any]]]]:
    """Lines of a frame in the order of their keys, the columns of each as lists in order of time."""
    ordered = frame.sort(*keys, time, maintain_order=True)
    begin = 0
    for *key, count in ordered.group_by(keys, maintain_order=True).len().iter_rows():
        line = ordered[begin : begin + count].select(**columns)
        yield dict(zip(keys, key, strict=True)), line.to_dict(as_series=False)
        begin += count


def _steps(times: list[int]) -> list[int]:
    """Times as the first of them and steps: short to write."""
    return [*times[:1], *(after - before for before, after in itertools.pairwise(times))]


def _nanoseconds(column: str) -> pl.Expr:
    """Times in ms as whole nanoseconds."""
    return (pl.col(column) * NS_PER_MS).round(0).cast(pl.Int64)


def _rounded(column: str, digits: int) -> pl.Expr:
    return pl.col(column).cast(pl.Float64).round(digits)


def _greatest(frame: pl.DataFrame, column: str) -> float:
    value = frame[column].max()
    return float(value) if isinstance(value, int | float) else 0.0
