"""The manual's tables, made from the data in ``results/`` and from declarations.

They stand between ``<!-- table: NAME -->`` and ``<!-- end of table -->`` in a page.
"""

from __future__ import annotations

import csv
import math
import re
import statistics
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from fanin.errors import OutputError
from fanin.settings.hosts import HOST_SETTINGS

from lab import parameters, real_time, thresholds, validation
from lab.racks import measured

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
CLAUSE = re.compile(r"(?<=[^.])[.:;] (?=[A-Za-z`])")
"""Where the first clause of a comment ends."""
PLACE = re.compile(r"(<!-- table: (?P<name>[\w ]+) -->\n).*?(<!-- end of table -->)", re.DOTALL)


BUILT = ("thresholds",)
"""Tables that only the built manual has (``docs/nav.py``): long, and made from the sources."""


def filled(text: str, page: str, built: bool = False) -> str:
    """A page with each of its tables made anew; where the manual is `built`, with those that only it has.

    Raises
    ------
    fanin.OutputError
        When the page asks for a table that there is not.
    """

    def made(place: re.Match[str]) -> str:
        name = place["name"]
        if name not in TABLES and name not in index():
            raise OutputError(f"{page}: there is no table `{name}`; results/index.toml and lab/tables.py have them")
        if name in BUILT and not built:
            return place[0]
        lines = TABLES[name]() if name in TABLES else whole(name)
        return place[1] + "\n".join(lines) + "\n" + place[3]

    return PLACE.sub(made, text)


def pages() -> list[Path]:
    """The pages that have such tables."""
    return [page for page in sorted((ROOT / "docs").rglob("*.md")) if PLACE.search(page.read_text(encoding="utf-8"))]


def index() -> dict[str, dict[str, Any]]:
    """What each data file is: ``results/index.toml``."""
    return tomllib.loads((RESULTS / "index.toml").read_text(encoding="utf-8"))


def whole(name: str, columns: tuple[str, ...] = ()) -> list[str]:
    """A data file as it is, or some of its columns, and where it comes from."""
    about = index()[name]
    shown = columns or tuple(about["columns"])
    with (RESULTS / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        rows = [[row[column] or "-" for column in shown] for row in csv.DictReader(file)]
    return [*markdown([about["columns"][column] for column in shown], rows), "", origin(name)]


def origin(name: str) -> str:
    """A line that says where a table comes from."""
    about = index()[name]
    return f"`results/{name}.csv`, {about['recorded']} (commit {about['commit']}), {about['machine']}: `{about['command']}`."


def markdown(heads: list[str], rows: list[list[str]]) -> list[str]:
    """A table in Markdown.

    Examples
    --------
    >>> markdown(["TCP", "p50, ms"], [["reno", "2.1"]])
    ['| TCP | p50, ms |', '|---|---|', '| reno | 2.1 |']
    """
    return [f"| {' | '.join(cells)} |" if cells else "|---" * len(heads) + "|" for cells in (heads, [], *rows)]


def _data(name: str) -> pl.DataFrame:
    return pl.read_csv(RESULTS / f"{name}.csv", infer_schema_length=None).with_columns(pl.col(pl.String).fill_null(""))


def _kernel() -> list[str]:
    return [*validation.summary(_data("kernel")), "", origin("kernel")]


def _kernel_timeouts() -> list[str]:
    rows = (
        _data("kernel")
        .group_by("cc", maintain_order=True)
        .agg(pl.sum("timeouts", "drops", "kernel_timeouts", "kernel_drops"))
    )
    cells = [
        [
            row["cc"],
            *(f"{row[name]:.0f}" for name in ("timeouts", "kernel_timeouts")),
            *(f"{row[name] / 1e3:.1f}" for name in ("drops", "kernel_drops")),
        ]
        for row in rows.iter_rows(named=True)
    ]
    return markdown(["TCP", "timeouts, simulator", "kernel", "thousand drops, simulator", "kernel"], cells)


def _kernel_outside() -> list[str]:
    rows = _data("kernel").filter(pl.col("outside") != "")
    columns = {"queue": "mean queue", "drops": "drops", "timeouts": "timeouts"}
    return validation.table(rows, columns, "scenario (simulator / kernel)", "outside by")


SHOWN = {**validation.MEANS, "median": "p50_ms", "p99": "p99_ms"}
"""The measure of each bound."""


def _offload() -> list[str]:
    rows = _data("offload")
    bounds = ("median", "p99", "drops", "timeouts")
    counts = rows.group_by("cc", maintain_order=True).agg(
        pl.len().alias("rows"),
        (pl.col("outside") == "").sum().alias("within"),
        *(pl.col("outside").str.contains(rf"\b{bound}\b").sum().alias(bound) for bound in bounds),
    )
    cells = [[str(row[name]) for name in ("cc", "rows", "within", *bounds)] for row in counts.iter_rows(named=True)]
    heads = ["TCP", "rows", "within the bounds", *(f"outside by {bound}" for bound in bounds)]
    return [*validation.summary(rows), "", *markdown(heads, cells), "", origin("offload")]


def _offload_outside() -> list[str]:
    rows = _data("offload").filter(pl.col("outside") != "")
    cells = []
    for row in rows.iter_rows(named=True):
        first = row["outside"].split(", ")[0]
        measure = SHOWN[first]
        chance = "-" if row["standard_errors"] is None else f"{row['standard_errors']:.1f}"
        values = [
            f"{value:,.0f}" if value >= 1000 else f"{value:.4g}" for value in (row[measure], row["kernel_" + measure])
        ]
        case = row["case"].removesuffix(", offload")
        cells.append([case, row["cc"], row["outside"], first, *values, chance])
    return markdown(["scenario", "TCP", "outside by", "of these", "simulator", "Linux", "standard errors"], cells)


def _random_outside(name: str = "random") -> list[str]:
    rows = _data(name).with_columns(pl.col("case").str.strip_suffix(", offload"))
    outside = rows.filter(pl.col("outside") != "")
    perhaps = outside.filter(pl.col("standard_errors") < validation.CHANCE).height
    by = pl.col("outside") + pl.format(" ({})", pl.col("standard_errors").round(1))
    columns = {"goodput_mbps": "goodput, Mbps", "queue": "mean queue", "p50_ms": "p50, ms", "drops": "drops"}
    return [
        f"{rows.height - outside.height} of {rows.height} within the bounds; {perhaps} of the others differ by less than "
        f"{validation.CHANCE:.0f} standard errors over {validation.MOST_SEEDS} runs:",
        "",
        *validation.table(
            outside.with_columns(pl.coalesce(by, "outside").alias("outside")),
            columns,
            "series/number: scenario (simulator / kernel)",
            "outside by (standard errors of the first)",
        ),
        "",
        origin(name),
    ]


def _truth() -> list[str]:
    return [*measured.summary(_data("truth")), "", origin("truth")]


def _regret(name: str = "regret") -> list[str]:
    """How far what was advised is from the best candidate and from what was stated; each service where it is more than a tenth, or outside of that."""
    rows = _data(name)
    regret = sorted(rows["regret_mean"].to_list())
    changed = rows.filter(pl.col("kind") == "change")
    is_inside = pl.col("got_mean").is_between(pl.col("stated_low"), pl.col("stated_high"))
    inside = changed.filter(is_inside)
    kept = changed.filter((pl.col("got_gain") / pl.col("promised_gain")).is_between(1 / 1.5, 1.5))
    slower, silent = rows.filter(pl.col("harm_mean") > 1.05), rows.filter(pl.col("kind") == "none")
    told = (
        f"{rows.height} services. Regret of the mean: median {statistics.median(regret):.3f}, "
        f"90 % {regret[math.ceil(0.9 * len(regret)) - 1]:.3f}, worst {regret[-1]:.3f}. "
        f"{inside.height} of {changed.height} changes got a mean inside what was stated, {kept.height} a gain within 1.5 of that promised. "
        f"{slower.height} services got slower by more than 5 %, {silent.height} got no advice. Those with a regret above 1.1 or a mean outside:"
    )
    heads = ["service", "advised", "mean now, ms", "got", "best candidate's", "regret", "gain promised", "got"]
    cells = [
        [
            row["service"],
            row["advised"],
            *(f"{row[column]:.3g}" for column in ("now_mean", "got_mean")),
            f"{row['best_mean']:.3g} ({row['best']})",
            *(f"{row[column]:.3g}" for column in ("regret_mean", "promised_gain", "got_gain")),
        ]
        for row in rows.filter((pl.col("regret_mean") > 1.1) | (pl.col("kind") == "change") & ~is_inside).to_dicts()
    ]
    return [told, "", *markdown(heads, cells), "", origin(name)]


def _real_time() -> list[str]:
    rows = [row for row in _data("real_time").to_dicts() if row["kind"] == "change"]
    verdicts = [row["verdict"] for row in rows]
    counts = ", ".join(f"{verdicts.count(word)} {word}" for word in dict.fromkeys(sorted(verdicts)))
    changes = [row["change"] for row in rows]
    usual = max(dict.fromkeys(changes), key=changes.count)
    gains = [row["before_mean_ms"] / row["after_mean_ms"] for row in rows]
    cells = [
        [
            row["rack"] if row["change"] == usual else f"{row['rack']}: {row['change']}",
            *(f"{row[name]:.3g}" for name in ("before_mean_ms", "after_mean_ms")),
            f"{row['stated_low_ms']:.3g} to {row['stated_high_ms']:.3g}",
            *(f"{row[name]:.3g}" for name in ("before_p95_ms", "after_p95_ms")),
            row["verdict"],
        ]
        for row in rows
    ]
    heads = ["rack", "mean before, ms", "after", "stated", "p95 before, ms", "after", "mean"]
    return [
        f"{_data('real_time').height} racks, {len(rows)} with a change: {counts}. Advised unless said: {usual}. "
        f"The mean became {min(gains):.2g} to {max(gains):.2g} times shorter.",
        "",
        *markdown(heads, cells),
        "",
        origin("real_time"),
    ]


def _real_time_racks() -> list[str]:
    rows = _data("real_time_racks")
    settings = rows["setting"].unique(maintain_order=True).to_list()
    cells = [
        [
            str(rack),
            *(
                f"{mean:.3g} ({error:.2g}) / {told:.3g}"
                for mean, error, told in part.select("mean_ms", "standard_error_ms", "predicted_mean_ms").rows()
            ),
        ]
        for (rack,), part in rows.group_by("rack", maintain_order=True)
    ]
    return [real_time.sentence(rows), "", *markdown(["rack", *settings], cells), "", origin("real_time_racks")]


def _rack_queues() -> list[str]:
    data = _data("rack_queues").with_columns(
        pl.when(pl.col("queue").str.ends_with("RED")).then(pl.lit("RED")).otherwise(pl.col("queue")).alias("queue"),
        (~pl.col("buffer_said").str.contains("assumed")).alias("told"),
    )
    rows = [
        [
            str(cell)
            for cell in (queue, tap, group.height, *(group[c].sum() for c in ("rate_within", "told", "buffer_within")))
        ]
        for (queue, tap), group in data.group_by("queue", "tap", maintain_order=True)
    ]
    heads = [
        "queue",
        "tap",
        "racks",
        "rate within its range",
        "buffer stated",
        "buffer within what is stated or assumed",
    ]
    return [*markdown(heads, sorted(rows)), "", origin("rack_queues")]


def _services(name: str = "services") -> list[str]:
    """How many captures are read right; each service that is not right at every tap, with its range over the taps."""
    data = _data(name)
    verdicts = data["verdict"].to_list()
    counts = ", ".join(f"{verdicts.count(word)} {word}" for word in ("right", "doubted", "warned", "wrong"))
    taps = data["tap"].unique(maintain_order=True).to_list()
    other = []
    services = data.partition_by("service", maintain_order=True)
    for part in services:
        if (said := part["verdict"].to_list()) == ["right"] * len(taps):
            continue
        errors = (100 * (part[time] / part[f"{time}_log"] - 1) for time in ("p50_ms", "p99_ms"))
        read = _span([str(count) for count in sorted(part["requests"])])
        verdict = ", ".join(said) if len(set(said)) > 1 else said[0]
        other.append(
            [
                *part.row(0)[:2],
                f"{read} of {part['requests_log'][0]}",
                *(_span([f"{e:+.0f}" for e in each.sort()] if each.is_finite().all() else ["-"]) for each in errors),
                verdict,
            ]
        )
    heads = ["service", "what a request is", "requests", "error of p50, %", "of p99, %", "verdict"]
    return [
        f"{len(verdicts)} captures at {', '.join(taps)}: {counts}. Right at every tap are {len(services) - len(other)} of {len(services)} services. "
        "The others:",
        "",
        *markdown(heads, other),
        "",
        origin(name),
    ]


def _span(texts: list[str]) -> str:
    return texts[0] if texts[0] == texts[-1] else f"{texts[0]} to {texts[-1]}"


def _twins() -> list[str]:
    rows = _data("twins").with_columns(
        pl.col(pl.Float64).map_elements(lambda value: f"{value:g}", return_dtype=pl.String)
    )
    long, incast = (rows.filter(pl.col("case") == case) for case in ("2 long flows", "incast"))
    both = long.join(incast, on="cc", suffix="_incast", maintain_order="left").fill_null("-")
    shown = (
        "goodput_mbps",
        "queue",
        "goodput_mbps_incast",
        "p50_ms_incast",
        "p99_ms_incast",
        "drops_incast",
        "timeouts_incast",
    )
    heads = [
        "algorithm",
        "long flows: goodput, Mbps",
        "mean queue",
        "incast: goodput, Mbps",
        "p50, ms",
        "p99, ms",
        "drops",
        "timeouts",
    ]
    cells = [[f"`{row['cc']}`", *(str(row[name]) for name in shown)] for row in both.iter_rows(named=True)]
    return [*markdown(heads, cells), "", origin("twins")]


def _files() -> list[str]:
    """The data files of which no page has a table."""
    names = {place["name"] for page in pages() for place in PLACE.finditer(page.read_text(encoding="utf-8"))}
    shown = {name.replace(" ", "_") for name in names} | {name.split()[0] for name in names}
    cells = [
        [f"`{name}.csv`", about["about"], about["machine"], f"{about['recorded']}, {about['commit']}"]
        for name, about in index().items()
        if name not in shown
    ]
    return markdown(["`results/`", "what", "on", "recorded, commit"], cells)


def _held(row: dict[str, str]) -> str:
    """Which of the two moves of a constant a test notices."""
    noticed = [
        side for side in ("halved", "doubled") if not row.get(side, thresholds.NOTHING).startswith(thresholds.NOTHING)
    ]
    return "both" if len(noticed) == 2 else noticed[0] if noticed else "none"


def _thresholds() -> list[str]:
    broken = {f"{row['file']}:{row['name']}": row for row in thresholds.data()}
    files: dict[str, list[list[str]]] = {}
    for each in thresholds.declared():
        why = (
            CLAUSE.split(each.why, maxsplit=1)[0]
            .rstrip(".,;:")
            .replace("|", "\\|")
            .replace("[`", "`")
            .replace("`]", "`")
        )
        held = _held(broken.get(each.key, {}))
        files.setdefault(each.file, []).append([f"`{each.name}`", f"`{each.value}`", why, held])
    sides = [_held(row) for row in broken.values()]
    lines = [
        f"{len(broken)} constants: {sides.count('both')} held by tests on both sides, {sides.count('none')} on none.",
        "",
    ]
    for file, rows in files.items():
        lines += [f"## `{file}`", "", *markdown(["constant", "value", "what it is", "held"], rows), ""]
    return [*lines, origin("thresholds")]


def _host_settings() -> list[str]:
    heads = ["setting", "where", "whose", "does", "costs elsewhere", "Linux", "simulated"]
    cells = [
        [
            f"qdisc {each.option}" if each.place == "qdisc" else f"`{each.option}`",
            each.place,
            each.end.value,
            each.does,
            each.costs,
            each.since,
            f"`{each.key}`" if each.key else "no",
        ]
        for each in HOST_SETTINGS
    ]
    return markdown(heads, cells)


def _parameters(algorithm: str) -> list[str]:
    cells = [[cell.replace("|", "\\|") for cell in row] for row in parameters.rows(algorithm)]
    return markdown(parameters.COLUMNS, cells)


TABLES: dict[str, Callable[[], list[str]]] = {
    "kernel": _kernel,
    "kernel timeouts": _kernel_timeouts,
    "kernel outside": _kernel_outside,
    "offload": _offload,
    "offload outside": _offload_outside,
    "random outside": _random_outside,
    "random offload": partial(_random_outside, "random_offload"),
    "truth": _truth,
    "regret": _regret,
    "regret blind": lambda: _regret("regret_blind"),
    "real time": _real_time,
    "real time racks": _real_time_racks,
    "rack queues": _rack_queues,
    "services": _services,
    "services blind": lambda: _services("services_blind"),
    "round trip failures": lambda: whole("round_trip_failures", ("networks", "count", "warned", "cause")),
    "twins": _twins,
    "files": _files,
    "host settings": _host_settings,
    "thresholds": _thresholds,
    **{f"parameters {algorithm}": partial(_parameters, algorithm) for algorithm in parameters.declared()},
}
"""Tables that are more than their data as they are."""
