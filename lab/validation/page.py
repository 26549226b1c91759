"""The comparison as Markdown."""

from __future__ import annotations

import polars as pl

from lab.validation.judge import (
    DROP_FLOOR,
    GOODPUT_BOUND,
    IDEAL,
    QUEUE_BOUND,
    QUEUE_FLOOR,
    TIMEOUT_BOUND,
    TIMEOUT_FLOOR,
    Bounds,
    orders,
)

COLUMNS = {
    "goodput_mbps": "goodput, Mbps",
    "queue": "mean queue",
    "queue_p99": "p99 queue",
    "p50_ms": "p50, ms",
    "p99_ms": "p99, ms",
    "drops": "drops",
    "marks": "marks",
    "timeouts": "timeouts",
}


def summary(rows: pl.DataFrame) -> list[str]:
    """How many rows lie within the bounds, by group, and the order of the algorithms."""
    taus = orders(rows)
    lines = ["| scenarios | rows | within the bounds | Kendall's tau, mean |", "|---|---|---|---|"]
    for (group,), part in rows.group_by("group", maintain_order=True):
        tau = _mean(taus.filter(pl.col("group") == group)["tau"])
        inside = part.filter(pl.col("outside") == "").height
        lines.append(f"| {group} | {part.height} | {inside} | {tau} |")
    inside = rows.filter(pl.col("outside") == "").height
    overall = _mean(taus["tau"])
    lines.append(f"| all | {rows.height} | {inside} | {overall} |")
    without = rows.filter((pl.col("timeouts") == 0) & (pl.col("kernel_timeouts") == 0))
    agreeing = without.filter(pl.col("outside") == "").height
    lines += ["", f"Without a timeout on either side: {agreeing} of {without.height} rows within the bounds."]
    return lines


def _mean(values: pl.Series) -> str:
    mean = values.mean()
    return f"{mean:.2f}" if isinstance(mean, float) else "-"


def page(rows: pl.DataFrame, command: str, version: str, kernel: str, complete: bool, bounds: Bounds = IDEAL) -> str:
    """The whole table.

    Parameters
    ----------
    rows : polars.DataFrame
        From :func:`lab.validation.judge.judged`.
    command, version, kernel : str
        What made it, on which kernel.
    complete : bool
        All runs were made; else the section says so.
    bounds : Bounds
        What counts as agreement.
    """
    tail = f", the 99th percentile {bounds.tail:.0%}" if bounds.tail is not None else ""
    drops = f"drops {bounds.drops:.0%} or {DROP_FLOOR:g} in a run; " if bounds.drops is not None else ""
    lines = [
        f"Made by `{command}` with fanin {version} and {kernel}: simulator (profile `linux`) / kernel, {seeds(rows)} for each row.",
        "",
        f"Bounds: without timeouts goodput {GOODPUT_BOUND:.0%} and mean queue {QUEUE_BOUND:.0%} or {QUEUE_FLOOR:g} packet; of messages the "
        f"median completion {bounds.median:.0%}{tail}; {drops}timeouts in a run {TIMEOUT_BOUND:.0%} or {TIMEOUT_FLOOR:g}. The order of the "
        "algorithms is that "
        "of their median completions, or of their mean queues.",
        "",
    ]
    if not complete:
        lines += ["The runs were interrupted: some rows have fewer seeds than the bounds ask for.", ""]
    lines += [*summary(rows), "", *table(rows, COLUMNS, "scenario", "outside")]
    return "\n".join(lines) + "\n"


def seeds(rows: pl.DataFrame) -> str:
    """Over how many seeds of the kernel each row is, in words."""
    counts = rows["kernel_seeds"].to_list()
    low, high = min(counts), max(counts)
    return f"{low} to {high} seeds" if low != high else f"{low} seeds" if low != 1 else "1 seed"


def table(rows: pl.DataFrame, columns: dict[str, str], first: str, last: str) -> list[str]:
    """A line for each row, the model's measures beside the kernel's; `columns` names them, `first` and `last` head the scenario and what is outside."""
    lines = [f"| {first} | TCP | {' | '.join(columns.values())} | {last} |", "|---" * (len(columns) + 3) + "|"]
    for row in rows.iter_rows(named=True):
        cells = [_pair(row[name], row[f"kernel_{name}"]) for name in columns]
        lines.append(f"| {row['case']} | {row['cc']} | {' | '.join(cells)} | {row['outside']} |")
    return lines


def _pair(model: float | None, kernel: float | None) -> str:
    if model is None or kernel is None:
        return "-"
    return "0" if model == kernel == 0 else f"{model:.4g} / {kernel:.4g}"
