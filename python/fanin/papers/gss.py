"""How the claims of the Gentle Slow Start paper follow from the results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from fanin.papers.drawing import log_y, rows, series
from fanin.papers.numbers import greatest, least, mean, median, number, share
from fanin.papers.verdicts import Checks, Data, Outcome, claim, figure

if TYPE_CHECKING:
    import altair as alt

    from fanin.papers.verdicts import Frames

LINK = 10e9
"""Bits per second of every link of the paper."""

BUFFER, PACKET, RTT = 250 * 1500.0, 1500.0, 100e-6
"""Buffer and packet in bytes, round trip in seconds: what section 4 states; section 3.1 does not restate them."""

CERTAIN = 0.99
"""A probability that a curve on paper shows as 1."""

STATED = "as stated"

# ---- what is kept of the runs


def per_run(frames: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """One row per run: goodput of what ends, when the last of it was complete, timeouts, drops."""
    finite = frames["messages"].filter(pl.col("bytes").is_not_null())
    ends = finite.group_by("seed", maintain_order=True).agg(
        done_ms=pl.when(pl.col("done_ms").is_null().any()).then(None).otherwise(pl.col("done_ms").max()),
        bytes=pl.col("bytes").sum(),
        timeouts=pl.col("timeouts").sum(),
        workers=pl.len().cast(pl.Int64),
    )
    drops = frames["flows"].group_by("seed", maintain_order=True).agg(pl.col("drops").sum(), pl.col("max_cwnd").max())
    # What was not complete when the run ended has no goodput.
    goodput = (pl.col("bytes") * 8e3 / pl.col("done_ms")).fill_null(0.0)
    return {"outcome": ends.join(drops, on="seed", how="left", maintain_order="left").with_columns(goodput_bps=goodput)}


def one_round(frames: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """One row per run, and what the aggregator had received by when."""
    arrivals = frames["throughput"].group_by("seed", "time_ms").agg(pl.col("bytes").sum()).sort("seed", "time_ms")
    total = pl.col("bytes").cum_sum().over("seed")
    return {**per_run(frames), "received": arrivals.with_columns(megabytes=total / 1e6).drop("bytes")}


# ---- Fig. 2 and 3: the model


def incast_probability(rate: float, flows: float, *, gentle: bool) -> float:
    """Equations 1 to 6: probability that at least one of the flows times out in the round trip after they filled pipe and buffer.

    >>> round(incast_probability(1e9, 65, gentle=False), 4), round(incast_probability(1e9, 65, gentle=True), 4)
    (0.9861, 0.1048)
    """
    served = (rate / 8 * RTT + BUFFER) / PACKET
    window = served / flows
    grown = window + 1 if gentle else 2 * window
    loss = max(0.0, 1 - served / (flows * grown))
    return float(1 - (1 - loss**window) ** flows)


def certain_from(rate: float, *, gentle: bool) -> int | None:
    """The least number of flows with which incast is certain; None below 1000."""
    return next((n for n in range(2, 1000) if incast_probability(rate, n, gentle=gentle) >= CERTAIN), None)


@claim("gss.fig2-3.model")
def model(_: Data) -> Outcome:
    """15 % on both numbers of flows."""
    checks = Checks()
    found = {}
    for name, rate, published in (("1 Gbps", 1e9, 65), ("10 Gbps", 10e9, 78)):
        plain, gentle = certain_from(rate, gentle=False), certain_from(rate, gentle=True)
        found[name] = (plain, gentle)
        checks.that(
            plain is not None and abs(plain - published) <= 0.15 * published, f"within 15 % of {published} on {name}"
        )
        checks.that(
            gentle is None or (plain is not None and gentle > 1.3 * plain), f"far more flows with GSS on {name}"
        )
    ours = "; ".join(f"{name}: n = {plain}, with GSS {gentle}" for name, (plain, gentle) in found.items())
    return checks.outcome(
        f"P >= {CERTAIN} from {ours}",
        f"at {incast_probability(10e9, 100, gentle=True):.2f} for 100 flows on 10 Gbps the model itself expects timeouts with GSS",
    )


@figure("gss.fig2-3", caption="Fig. 3: probability of incast against the number of flows, from the model.")
def draw_model(_: Data) -> alt.TopLevelMixin:
    """P against n, for both rates, with and without GSS."""
    points = [
        {
            "flows": n,
            "P": incast_probability(rate, n, gentle=gentle),
            "variant": f"{name}{' with GSS' if gentle else ''}",
        }
        for name, rate in (("1 Gbps", 1e9), ("10 Gbps", 10e9))
        for gentle in (False, True)
        for n in range(5, 161, 5)
    ]
    published = rows({"flows": [65, 78], "P": [1.0, 1.0], "variant": ["published: reaches 1"] * 2})
    return series(pl.DataFrame(points), "flows", "P", "variant", y_title="incast probability", published=published)


# ---- Fig. 4: one round


@claim("gss.fig4.one-round", "fig4")
def fig4(data: Data) -> Outcome:
    """Above 0.2 s without GSS; with it below 0.02 s and no timeout."""
    runs = data["fig4"]["outcome"]
    checks, told, remarks = Checks(), [], []
    for cc in ("newreno", "dctcp", "gss+newreno", "gss+dctcp"):
        part = runs.filter(pl.col("cc") == cc, pl.col("variant") == STATED)
        late = share(part["timeouts"] > 0)
        told.append(f"{cc} {_seconds(part)} s, {late:.0%} of runs with a timeout")
        if cc.startswith("gss"):
            checks.that(
                greatest(part["done_ms"]) < 20 and late == 0, f"{cc} below 0.02 s without a timeout in every run"
            )
        else:
            checks.that(_seconds(part) > 0.2, f"{cc} above 0.2 s")
    for variant in ("without jitter", "initial window 10"):
        others = [
            f"{cc} {_seconds(_pick(runs, variant, cc))} s" for cc in ("newreno", "dctcp", "gss+newreno", "gss+dctcp")
        ]
        remarks.append(f"{variant}: {', '.join(others)}")
    return checks.outcome("; ".join(told) + " (medians)", "; ".join(remarks))


@figure(
    "gss.fig4",
    "fig4",
    caption="Fig. 4: what the aggregator has received by when (first seed); the published end is marked.",
)
def draw_fig4(data: Data) -> alt.TopLevelMixin:
    """Received megabytes against time."""
    received = (
        data["fig4"]["received"].filter(pl.col("variant") == STATED, pl.col("seed") == 1).filter(pl.col("time_ms") > 0)
    )
    published = rows(
        {
            "time_ms": [200.0, 10.0],
            "megabytes": [4.48, 4.48],
            "cc": ["published: NewReno, DCTCP", "published: with GSS"],
        }
    )
    return series(
        received,
        "time_ms",
        "megabytes",
        "cc",
        x_title="ms (log)",
        y_title="received, MB",
        published=published,
        log_x=True,
    )


# ---- Fig. 5: rounds


@claim("gss.fig5.rounds", "fig5", "fig4")
def fig5(data: Data) -> Outcome:
    """Eight rounds at least five times sooner."""
    ends = data["fig5"]["messages"].group_by("cc", "seed").agg(pl.col("done_ms").max())
    took = {
        cc: median(ends.filter(pl.col("cc") == cc)["done_ms"]) / 1e3 for cc in ends["cc"].unique(maintain_order=True)
    }
    checks = Checks()
    ratio = took["newreno"] / took["gss+newreno"]
    checks.that(ratio >= 5, "NewReno's eight rounds at least five times shorter with GSS")
    told = ", ".join(f"{cc} {seconds:.3f} s" for cc, seconds in sorted(took.items()))
    # Rounds over new connections are independent of each other: eight of them are eight times the mean of one.
    alone = data["fig4"]["outcome"].filter(pl.col("variant") == STATED)
    fresh = {cc: 8 * mean(alone.filter(pl.col("cc") == cc)["done_ms"]) / 1e3 for cc in ("newreno", "gss+newreno")}
    return checks.outcome(
        f"eight rounds: {told} (medians); NewReno {ratio:.1f}x shorter with GSS",
        f"with new connections in every round NewReno would take {fresh['newreno']:.2f} s and {fresh['gss+newreno']:.2f} s with GSS, "
        f"{fresh['newreno'] / fresh['gss+newreno']:.1f}x",
    )


@figure("gss.fig5", "fig5", caption="Fig. 5: when each round is complete (first seed).")
def draw_fig5(data: Data) -> alt.TopLevelMixin:
    """End of each round."""
    part = data["fig5"]["messages"].filter(pl.col("seed") == 1).sort("cc", "release_ms")
    rounds = part.group_by("cc", "release_ms", maintain_order=True).agg(pl.col("done_ms").max())
    rounds = rounds.with_columns(round=pl.int_range(1, pl.len() + 1).over("cc"))
    published = rows({"round": [8, 1], "done_ms": [220.0, 220.0], "cc": ["published: with GSS", "published: NewReno"]})
    return series(rounds, "round", "done_ms", "cc", y_title="complete, ms (log)", published=published, scale=log_y())


# ---- Fig. 6 and 9: goodput


def _collapse(part: pl.DataFrame, below: float) -> int | None:
    """The least number of workers from which the median goodput is below a share of the link."""
    medians = part.group_by("workers").agg(pl.col("goodput_bps").median()).sort("workers")
    low = medians.filter(pl.col("goodput_bps") < below * LINK)["workers"]
    return int(low[0]) if len(low) else None


@claim("gss.fig6.goodput", "fig6")
def fig6(data: Data) -> Outcome:
    """NewReno collapses from 15..35 workers, DCTCP from 40..70, both with GSS stay at 60 % or more."""
    runs = data["fig6"]["outcome"]
    checks, remarks = Checks(), []
    at = {cc: _collapse(_pick(runs, STATED, cc), 0.3) for cc in ("newreno", "dctcp", "gss+newreno", "gss+dctcp")}
    checks.that(at["newreno"] is not None and 15 <= at["newreno"] <= 35, "NewReno collapses from 15..35 workers")
    checks.that(at["dctcp"] is not None and 40 <= at["dctcp"] <= 70, "DCTCP collapses from 40..70 workers")
    lowest = {}
    for cc in ("gss+newreno", "gss+dctcp"):
        # With few workers 64 KB each are over before any slow start fills the link: the claim is about collapse.
        many = _pick(runs, STATED, cc).filter(pl.col("workers") >= 15)
        lowest[cc] = least(many.group_by("workers").agg(pl.col("goodput_bps").median())["goodput_bps"]) / LINK
        checks.that(lowest[cc] >= 0.6, f"{cc} stays at 60 % of the link from 15 to 100 workers")
    for variant in ("without jitter", "initial window 10"):
        told = ", ".join(f"{cc} {_from(_collapse(_pick(runs, variant, cc), 0.3))}" for cc in at)
        remarks.append(f"{variant}: {told}")
    low = ", ".join(f"{cc} at least {part:.0%}" for cc, part in lowest.items())
    return checks.outcome(
        f"collapse: {', '.join(f'{cc} {_from(n)}' for cc, n in at.items())}; {low}", "; ".join(remarks)
    )


@figure(
    "gss.fig6",
    "fig6",
    caption="Fig. 6: goodput against the number of workers: as stated, without jitter, from a window of 10.",
)
def draw_fig6(data: Data) -> alt.TopLevelMixin:
    """Goodput against workers, one picture per variant."""
    return _goodput_by_workers(data["fig6"], [(20, "newreno"), (50, "dctcp")])


@claim("gss.fig9.plug-in", "fig9")
def fig9(data: Data) -> Outcome:
    """Degradation from 25..60 workers; GSS ten times better at 100."""
    runs = data["fig9"]["outcome"]
    checks, told, remarks = Checks(), [], []
    for cc in ("dctcp", "d2tcp", "l2dct"):
        at = _collapse(_pick(runs, STATED, cc), 0.3)
        ratio = _at(runs, STATED, f"gss+{cc}", 100) / _at(runs, STATED, cc, 100)
        checks.that(at is not None and 25 <= at <= 60, f"{cc} degrades from 25..60 workers")
        checks.that(ratio >= 10, f"{cc} at least 10x better with GSS at 100 workers")
        told.append(f"{cc} {_from(at)}, {ratio:.1f}x with GSS at 100")
        wide, narrow = _at(runs, "initial window 10", cc, 100), _at(runs, STATED, f"gss+{cc}", 100)
        remarks.append(f"{cc} {_from(_collapse(_pick(runs, 'initial window 10', cc), 0.3))}, {narrow / wide:.0f}x")
    return checks.outcome("; ".join(told), f"where only GSS starts from 2 and the others from 10: {'; '.join(remarks)}")


@figure(
    "gss.fig9",
    "fig9",
    caption="Fig. 9: goodput of three data-center protocols with and without GSS, all from a window of 2, and all from 10.",
)
def draw_fig9(data: Data) -> alt.TopLevelMixin:
    """Goodput against workers."""
    return _goodput_by_workers(data["fig9"], [(35, "dctcp")])


# ---- Fig. 7: web search


def _onset(part: pl.DataFrame) -> int | None:
    """The least number of workers at which at least half of the queries have a timeout."""
    shares = part.group_by("workers").agg(share=(pl.col("timeouts") > 0).mean()).sort("workers")
    late = shares.filter(pl.col("share") >= 0.5)["workers"]
    return int(late[0]) if len(late) else None


@claim("gss.fig7.web-search", "fig7")
def fig7(data: Data) -> Outcome:
    """Timeouts from 13 +- 8 and 20 +- 8 workers; none with GSS."""
    runs = data["fig7"]["outcome"]
    checks, remarks = Checks(), []
    at = {cc: _onset(_pick(runs, STATED, cc)) for cc in ("newreno", "dctcp")}
    for cc, published in (("newreno", 13), ("dctcp", 20)):
        checks.that(
            abs(number(at[cc]) - published) <= 8,
            f"{cc}'s timeouts begin within 8 of {published} workers",
        )
    shares = {}
    for cc in ("gss+newreno", "gss+dctcp"):
        part = _pick(runs, STATED, cc).group_by("workers").agg(share=(pl.col("timeouts") > 0).mean())
        shares[cc] = greatest(part["share"])
        checks.that(shares[cc] == 0, f"{cc} has no timeout at any number of workers")
    for variant in ("initial window 10", "initial window 20"):
        remarks.append(
            f"{variant}: " + ", ".join(f"{cc} {_from(_onset(_pick(runs, variant, cc)))}" for cc in ("newreno", "dctcp"))
        )
    longest = {cc: greatest(_pick(runs, STATED, cc)["done_ms"]) for cc in ("newreno", "dctcp")}
    return checks.outcome(
        f"timeouts: newreno {_from(at['newreno'])}, dctcp {_from(at['dctcp'])}; with GSS in {shares['gss+newreno']:.0%} and "
        f"{shares['gss+dctcp']:.0%} of queries at worst; query time up to {longest['newreno']:.0f} and {longest['dctcp']:.0f} ms",
        "; ".join(remarks),
    )


@figure(
    "gss.fig7",
    "fig7",
    caption="Fig. 7: query time (mean of the seeds) against the number of workers that share 1024 KB.",
)
def draw_fig7(data: Data) -> alt.TopLevelMixin:
    """Query time against workers."""
    mean = (
        data["fig7"]["outcome"].group_by("variant", "workers", "cc", maintain_order=True).agg(pl.col("done_ms").mean())
    )
    published = rows(
        {
            "workers": [13, 20],
            "done_ms": [220.0, 200.0],
            "cc": ["published: newreno from here", "published: dctcp from here"],
        }
    )
    return series(
        mean,
        "workers",
        "done_ms",
        "cc",
        y_title="query time, ms (log)",
        panel="variant",
        published=published,
        scale=log_y(),
    )


# ---- Fig. 8: MapReduce


@claim("gss.fig8.mapreduce", "fig8")
def fig8(data: Data) -> Outcome:
    """GSS variants above the plain ones beyond 20 workers, with 0, 1, 2 background flows; DCTCP alone collapses beyond about 20."""
    runs = data["fig8"]["outcome"]
    medians = runs.group_by("background", "workers", "cc").agg(pl.col("goodput_bps").median())
    checks, told = Checks(), []
    for background in (0, 1, 2):
        part = medians.filter(pl.col("background") == background, pl.col("workers") > 20)
        for cc in ("newreno", "dctcp"):
            pair = part.filter(pl.col("cc") == cc).join(
                part.filter(pl.col("cc") == f"gss+{cc}"), on="workers", suffix="_gss"
            )
            better = (pair["goodput_bps_gss"] > pair["goodput_bps"]).sum()
            told.append(f"{background} background: gss+{cc} above {cc} at {better} of {pair.height}")
            checks.that(better == pair.height, f"gss+{cc} above {cc} at every count with {background} background flows")
    at = _collapse(runs.filter(pl.col("cc") == "dctcp", pl.col("background") == 0), 0.3)
    checks.that(at is not None and at <= 40, "DCTCP alone collapses")
    return checks.outcome("; ".join(told), f"dctcp {_from(at)}")


@figure("gss.fig8", "fig8", caption="Fig. 8: goodput of 256 KB units with 0, 1 and 2 background flows.")
def draw_fig8(data: Data) -> alt.TopLevelMixin:
    """Goodput against workers, one picture per number of background flows."""
    medians = (
        data["fig8"]["outcome"]
        .group_by("background", "workers", "cc", maintain_order=True)
        .agg(gbps=pl.col("goodput_bps").median() / 1e9)
    )
    return series(medians, "workers", "gbps", "cc", y_title="goodput, Gbps", panel="background")


# ---- small helpers


def _pick(runs: pl.DataFrame, variant: str, cc: str) -> pl.DataFrame:
    return runs.filter(pl.col("variant") == variant, pl.col("cc") == cc)


def _seconds(part: pl.DataFrame) -> float:
    return round(median(part["done_ms"]) / 1e3, 4)


def _at(runs: pl.DataFrame, variant: str, cc: str, workers: int) -> float:
    return median(_pick(runs, variant, cc).filter(pl.col("workers") == workers)["goodput_bps"])


def _from(workers: int | None) -> str:
    return "never" if workers is None else f"from {workers}"


def _goodput_by_workers(frames: Frames, published: list[tuple[int, str]]) -> alt.TopLevelMixin:
    medians = (
        frames["outcome"]
        .group_by("variant", "workers", "cc", maintain_order=True)
        .agg(gbps=pl.col("goodput_bps").median() / 1e9)
    )
    marks = rows(
        {
            "workers": [n for n, _ in published],
            "gbps": [9.0] * len(published),
            "cc": [f"published: {cc} collapses" for _, cc in published],
        }
    )
    return series(medians, "workers", "gbps", "cc", y_title="goodput, Gbps", panel="variant", published=marks)
