"""The predictions over many racks beside what the kernel did, as Markdown and as rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import polars as pl

from fanin.progress import Progress, silent
from fanin.service.prediction import CAPTURED, CLEAR, CLOSE, SEEDS, pairs, truth
from fanin.service.racks import RackCase

MARKS = ("<!-- fanin truth: begin -->", "<!-- fanin truth: end -->")
"""Around the generated section of a page."""


def measure(
    chosen: Sequence[RackCase],
    *,
    captured: str = CAPTURED,
    seeds: int = SEEDS,
    engine: str = "kernel",
    progress: Callable[[str, int], Progress] = silent,
) -> tuple[pl.DataFrame, bool]:
    """Every rack's table under one another, with ``case`` and ``group`` in front; false when Ctrl-C ended it early.

    Runs are kept in the store as they end, so the same call goes on from there.
    """
    parts: list[pl.DataFrame] = []
    whole = True
    with progress("racks", len(chosen)) as bar:
        for number, case in enumerate(chosen):
            try:
                found = truth(f"{case.name}.toml", text=case.text, captured=captured, seeds=seeds, engine=engine)
            except KeyboardInterrupt:
                whole = False
                break
            label = [pl.lit(case.name).alias("case"), pl.lit(case.group).alias("group")]
            parts.append(found.table.select(*label, pl.lit(found.of).alias("of"), pl.all()))
            bar.update(number + 1)
    return (pl.concat(parts) if parts else pl.DataFrame()), whole


def summary(rows: pl.DataFrame) -> list[str]:
    """How many pairs of TCPs are predicted right, by group."""
    lines = [
        f"| racks | order of two TCPs right, of pairs that differ by more than {CLEAR - 1:.0%} | gain within a factor of {CLOSE:g} |",
        "|---|---|---|",
    ]
    total = dict.fromkeys(("clear", "ordered", "pairs", "close"), 0)
    for (group,), part in rows.group_by("group", maintain_order=True):
        sums = dict.fromkeys(total, 0)
        for _, rack in part.group_by("case", maintain_order=True):
            for name, count in pairs(rack).items():
                sums[name] += count
                total[name] += count
        lines.append(_line(str(group), sums))
    return [*lines, _line("all", total)]


def _line(name: str, sums: dict[str, int]) -> str:
    return f"| {name} | {sums['ordered']} of {sums['clear']} | {sums['close']} of {sums['pairs']} |"


def page(rows: pl.DataFrame, command: str, version: str, kernel: str, captured: str, seeds: int, *, whole: bool) -> str:
    """The generated section."""
    racks = rows["case"].n_unique()
    lines = [
        f"Made by `{command}` with fanin {version} and {kernel}: {racks} racks, {seeds} seeds. A service asks all its servers at once, in rounds. It "
        f"runs on the kernel under each TCP; of its run under {captured} a capture is taken at the aggregator, and `fanin compare` replays that "
        "in the simulator under the others. Times are of rounds, in ms, kernel / predicted; a gain is the mean round under "
        f"{captured} over that under the other TCP. All numbers: [truth.csv](validation/truth.csv).",
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


def write(rows: pl.DataFrame, section: str, docs: Path) -> None:
    """Put the section into the documentation's validation.md, and the rows beside it."""
    from fanin.kernel.validation.page import placed

    target = docs / "validation.md"
    target.write_text(placed(target.read_text(encoding="utf-8"), section, str(target), MARKS), encoding="utf-8")
    (docs / "validation").mkdir(exist_ok=True)
    rows.write_csv(docs / "validation" / "truth.csv", float_precision=4)
