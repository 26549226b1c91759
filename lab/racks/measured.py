"""The predictions over many racks beside what the kernel did, as rows and as Markdown."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import polars as pl
from fanin.process.progress import Progress, silent
from fanin.service.prediction import CAPTURED, CLEAR, CLOSE, SEEDS, pairs, truth

from lab.racks.cases import RackCase

SIMULATED = 20
"""Seeds of what is simulated, unless the kernel has more: a mean over rounds rests on a few timeouts, and simulated runs are cheap."""


def measure(
    chosen: Sequence[RackCase],
    *,
    captured: str = CAPTURED,
    seeds: int = SEEDS,
    engine: str = "kernel",
    progress: Callable[[str, int], Progress] = silent,
) -> tuple[pl.DataFrame, bool]:
    """Every rack's table under one another, with ``case`` and ``group`` in front; false when Ctrl-C ended it early.

    Two kinds of means are added, which tell what a wrong gain is due to: ``simulated_mean``, of the service itself in the simulator instead of a replay
    of its capture, and ``half_1_mean`` and ``half_2_mean``, of the kernel's odd and even seeds.
    Runs are kept in the store as they end, so the same call goes on from there.
    """
    parts: list[pl.DataFrame] = []
    whole = True
    with progress("racks", len(chosen)) as bar:
        for done, case in enumerate(chosen, 1):
            try:
                name, simulated = f"{case.name}.toml", max(seeds, SIMULATED)
                found = truth(name, text=case.text, captured=captured, seeds=seeds, engine=engine, predict=simulated)
                itself = truth(name, text=case.text, captured=captured, seeds=simulated, engine="sim", predict=False)
            except KeyboardInterrupt:
                whole = False
                break
            label = [pl.lit(case.name).alias("case"), pl.lit(case.group).alias("group")]
            table = found.table.join(
                itself.table.select("cc", pl.col("mean").alias("simulated_mean")), on="cc", maintain_order="left"
            )
            times = found.rounds if found.of == "rounds" else found.responses
            for number, half in enumerate(
                (times.filter(pl.col("seed") % 2 == 1), times.filter(pl.col("seed") % 2 == 0)), 1
            ):
                means = half.group_by("cc").agg(pl.col("completion_ms").mean().alias(f"half_{number}_mean"))
                table = table.join(means, on="cc", how="left", maintain_order="left")
            parts.append(table.select(*label, pl.lit(found.of).alias("of"), pl.all()))
            bar.update(done)
    return (pl.concat(parts) if parts else pl.DataFrame()), whole


def summary(rows: pl.DataFrame) -> list[str]:
    """How many pairs of TCPs are predicted right, by group; by the replay, by the service itself in the simulator, and by half of the kernel's seeds."""
    lines = [
        f"| racks | order of two TCPs right, of pairs that differ by more than {CLEAR - 1:.0%} | gain within a factor of {CLOSE:g} "
        "| the same of the service itself in the simulator | the same of one half of the kernel's seeds by the other "
        "| where these halves agree: by the replay, by the service itself |",
        "|---|---|---|---|---|---|",
    ]
    sides = (
        ("mean", "predicted_mean"),
        ("mean", "simulated_mean"),
        ("half_1_mean", "half_2_mean"),
    )
    total = [dict.fromkeys(("clear", "ordered", "pairs", "close"), 0) for _ in sides]
    all_told = [0] * len(sides)
    for (group,), part in rows.group_by("group", maintain_order=True):
        sums = [dict.fromkeys(each, 0) for each in total]
        told = [0] * len(sides)
        for _, rack in part.group_by("case", maintain_order=True):
            for place, (real, guess) in enumerate(sides):
                for name, count in pairs(rack.select(mean=real, predicted_mean=guess)).items():
                    sums[place][name] += count
                    total[place][name] += count
            for pair in itertools.combinations(range(rack.height), 2):
                two = rack[list(pair)]
                close = [pairs(two.select(mean=real, predicted_mean=guess))["close"] for real, guess in sides]
                for known in (told, all_told):
                    for place, is_close in enumerate(close):
                        known[place] += is_close * close[-1]
        lines.append(_line(str(group), sums, told))
    return [*lines, _line("all", total, all_told)]


def _line(name: str, sides: list[dict[str, int]], told: list[int]) -> str:
    gains = " | ".join(f"{sums['close']} of {sums['pairs']}" for sums in sides)
    replay, itself, agree = told
    return f"| {name} | {sides[0]['ordered']} of {sides[0]['clear']} | {gains} | {replay} and {itself} of {agree} |"


def page(rows: pl.DataFrame, command: str, version: str, kernel: str, captured: str, seeds: int, *, whole: bool) -> str:
    """The whole table."""
    racks = rows["case"].n_unique()
    lines = [
        f"Made by `{command}` with fanin {version} and {kernel}: {racks} racks, {seeds} seeds on the kernel and "
        f"{max(seeds, SIMULATED)} of what is simulated. A service asks all its servers at once, in rounds. It "
        f"runs on the kernel under each TCP; of its run under {captured} a capture is taken at the aggregator, and `fanin compare` replays that "
        "in the simulator under the others. Times are of rounds, in ms, kernel / predicted; a gain is the mean round under "
        f"{captured} over that under the other TCP.",
        "",
    ]
    if not whole:
        lines += ["The runs were interrupted: some racks are missing.", ""]
    lines += [*summary(rows), ""]
    others = [cc for cc in rows["cc"].unique(maintain_order=True) if cc != captured]
    head = [f"{captured} p50", f"{captured} p99", *(f"gain of {cc}" for cc in others), "timeouts per run"]
    lines += [f"| rack | {' | '.join(head)} |", "|---" * (len(head) + 1) + "|"]
    for (case,), part in rows.group_by("case", maintain_order=True):
        by = {row["cc"]: row for row in part.iter_rows(named=True)}
        base = by[captured]
        cells = [_pair(base["p50"], base["predicted_p50"]), _pair(base["p99"], base["predicted_p99"])]
        cells += [_pair(by[cc]["gain"], by[cc]["predicted_gain"]) for cc in others]
        lines.append(f"| {case} | {' | '.join(cells)} | {base['timeouts']:.3g} |")
    return "\n".join(lines) + "\n"


def _pair(kernel: float | None, predicted: float | None) -> str:
    return f"{_number(kernel)} / {_number(predicted)}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"
