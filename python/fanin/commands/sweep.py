"""Arguments and printing of ``fanin sweep``, ``query``, ``plot`` and ``store``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer

from fanin.commands.options import JsonOption
from fanin.terminal.answer import print_json

if TYPE_CHECKING:
    import polars as pl

    from fanin.runs.executor import Executor
    from fanin.sweep.perform import SweepResult, Until

StoreOption = Annotated[
    Path | None,
    typer.Option("--store", metavar="DIR", help="Store of results [default: $FANIN_STORE, else the user's cache]."),
]


def sweep(
    file: Annotated[Path, typer.Argument(metavar="SWEEP", help="Sweep file (TOML).", show_default=False)],
    store: StoreOption = None,
    on: Annotated[
        str,
        typer.Option(
            "--on",
            metavar="WHERE",
            help="Where runs happen: `local`, dask://HOST:PORT, or dask:FILE.json (a scheduler file).",
        ),
    ] = "local",
    workers: Annotated[
        int | None, typer.Option("--workers", metavar="N", help="Runs at once on this machine [default: its cores].")
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            "--until",
            metavar="ci=5%",
            help="Add seeds to each cell until the 95% interval of a statistic is that narrow: ci=5%,statistic=p99_ms,max_seeds=200.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write the rows to a .parquet or .csv file too.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say how many runs there would be, and run none.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Run a scenario over many values and seeds; what the store has is not run again.

    Ctrl-C finishes what is under way and stops; the same command goes on. Exit code 1 when a run failed.
    """
    from fanin.errors import ScenarioError
    from fanin.sweep.perform import sweep as perform
    from fanin.sweep.plan import read
    from fanin.terminal import display

    if out is not None and out.suffix not in (".parquet", ".csv"):
        raise ScenarioError(f"command line `--out {out}`: the name must end in .parquet or .csv")
    plan = read(file)
    narrow = _until(until, plan.until)
    if dry_run:
        cells, seeds = len(plan.points), len(plan.seeds)
        display.note(f"{plan.name}: {cells} cells and {seeds} seeds, {cells * seeds} runs")
        return
    began = time.monotonic()
    with _executor(on, workers) as executor:
        result = perform(plan, store=store, executor=executor, until=narrow, progress=Rate)
    if out is not None:
        _write(result.runs, out, [file])
    if as_json:
        print_json(_as_dict(result))
    else:
        _print(result, time.monotonic() - began)
    if result.interrupted:
        raise SystemExit(130)
    if result.failed:
        raise typer.Exit(1)


def query(
    sql: Annotated[
        str,
        typer.Argument(
            metavar="SQL", help="DuckDB's SQL; tables are the sweeps by name, and `runs`.", show_default=False
        ),
    ],
    store: StoreOption = None,
    file: Annotated[
        Path | None, typer.Option("--file", metavar="FILE", help="A Parquet file of rows instead of the store.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write the answer to a .parquet or .csv file.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Ask the results of sweeps a question in SQL."""
    from fanin.sweep.query import query as ask

    answer = ask(sql, store=store, file=file)
    if out is not None:
        _write(answer, out, [file])
    elif as_json:
        print_json({"columns": answer.columns, "rows": [_plain(row) for row in answer.to_dicts()]})
    else:
        _print_rows(answer)


def plot(
    what: Annotated[
        str, typer.Argument(metavar="SWEEP", help="Name of a sweep, or a Parquet file of rows.", show_default=False)
    ],
    x: Annotated[str, typer.Option("--x", help="Column across.", show_default=False)],
    y: Annotated[str, typer.Option("--y", help="Column up; its mean over the seeds is drawn.")] = "p99_ms",
    colour: Annotated[str | None, typer.Option("--colour", help="Column that has a line for each value.")] = None,
    facet: Annotated[str | None, typer.Option("--facet", help="Column that has a panel for each value.")] = None,
    log: Annotated[bool, typer.Option("--log", help="Logarithmic scale across.")] = False,
    store: StoreOption = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="html, svg, pdf or png [default: SWEEP.svg].")
    ] = None,
) -> None:
    """Draw a column of a sweep over another, with 95% confidence bands."""
    from fanin.pictures.files import save
    from fanin.sweep.plot import plot as draw
    from fanin.sweep.query import rows_of
    from fanin.terminal import display

    file = out or Path(f"{Path(what).stem}.svg")
    save(draw(rows_of(what, store=store), x, y, colour=colour, facet=facet, log=log), file, of=[Path(what)])
    display.note(f"picture: {file}")


store_app = typer.Typer(name="store", no_args_is_help=True, help="List, check, clean or export the store of results.")


@store_app.command("ls")
def store_ls(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """List engines and sweeps of the store."""
    import polars as pl

    from fanin.sweep.upkeep import contents
    from fanin.terminal import display

    place = _store(store)
    found = contents(place)
    if as_json:
        engines = [
            {"engine": name, "entries": count, "bytes": size, "loaded": name == place.engine}
            for name, (count, size) in found.engines.items()
        ]
        sweeps = [{"sweep": name, "rows": rows} for name, rows in found.sweeps.items()]
        print_json({"store": str(place.folder), "engines": engines, "sweeps": sweeps, "scratch": found.scratch})
        return
    display.note(f"store: {place.folder}")
    _print_rows(
        pl.DataFrame(
            [
                {"engine": name, "entries": count, "MB": round(size / 1e6, 1), "loaded": name == place.engine}
                for name, (count, size) in found.engines.items()
            ],
            schema={"engine": pl.String, "entries": pl.Int64, "MB": pl.Float64, "loaded": pl.Boolean},
        )
    )
    _print_rows(
        pl.DataFrame(
            [{"sweep": name, "rows": rows} for name, rows in found.sweeps.items()],
            schema={"sweep": pl.String, "rows": pl.Int64},
        )
    )
    for name in (name for name, rows in found.sweeps.items() if rows is None):
        display.note(f"damaged: the rows of {name}; the same `fanin sweep` writes them anew")
    if found.scratch:
        display.note(f"{found.scratch} folders of killed processes; `fanin store gc` removes them")


@store_app.command("verify")
def store_verify(store: StoreOption = None) -> None:
    """Read every entry against its digests; exit code 1 when one is damaged."""
    from fanin.sweep.upkeep import verify
    from fanin.terminal import display

    count, damaged = verify(_store(store), display.Bar)
    for entry in damaged:
        display.note(f"damaged: {entry.folder}")
    display.note(f"{count} entries, {len(damaged)} damaged")
    if damaged:
        display.note("`fanin store gc` removes the damaged; the next sweep that needs them runs them again")
        raise typer.Exit(1)


@store_app.command("gc")
def store_gc(
    store: StoreOption = None,
    other_engines: Annotated[
        bool, typer.Option("--other-engines", help="Remove results of engines other than the loaded one too.")
    ] = False,
) -> None:
    """Remove damaged entries and what killed processes left."""
    from fanin.sweep.upkeep import clean
    from fanin.terminal import display

    removed, freed = clean(_store(store), other_engines=other_engines)
    display.note(f"removed {removed}, {freed / 1e6:.1f} MB")


@store_app.command("export")
def store_export(
    target: Annotated[Path, typer.Argument(metavar="FILE", help=".parquet or .csv.", show_default=False)],
    store: StoreOption = None,
) -> None:
    """Write the rows of every run of the loaded engine to one file."""
    from fanin.sweep.upkeep import export
    from fanin.terminal import display

    display.note(f"{export(_store(store), target)} rows: {target}")


class Rate:
    """A progress bar with rate, estimate and failures."""

    def __init__(self, title: str, total: int) -> None:
        from fanin.terminal import display

        self._bar = display.Bar(title, total)
        self._title = title
        self._began = time.monotonic()
        self._note = ""

    def __enter__(self) -> Self:
        self._bar.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self._bar.__exit__(kind, error, trace)

    def say(self, note: str) -> None:
        """Add a remark to the bar."""
        self._note = f", {note}"

    def update(self, done: float) -> None:
        """Show that so much is done."""
        spent = time.monotonic() - self._began
        if spent > 1:
            self._bar.retitle(f"{self._title}, {done / spent:.3g}/s{self._note}")
        self._bar.update(done)


def _until(text: str | None, of_file: Any) -> Until | None:
    from fanin.errors import ScenarioError
    from fanin.sweep.perform import Until

    if text is None:
        return None
    said: dict[str, Any] = dict(of_file)
    where = f"command line `--until {text}`"
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if not equals or key.strip() not in ("ci", "statistic", "max_seeds"):
            raise ScenarioError(f"{where}: write ci=5%, and after a comma statistic=COLUMN or max_seeds=N")
        said[key.strip()] = int(value) if key.strip() == "max_seeds" and value.isdigit() else value.strip()
    return Until.of(said.get("ci"), said.get("statistic", "p99_ms"), said.get("max_seeds", 200), where=where)


def _executor(on: str, workers: int | None) -> Any:
    """A context that gives the executor."""
    from contextlib import nullcontext

    from fanin.errors import ScenarioError
    from fanin.runs.executor import Threads

    if workers is not None and not 1 <= workers <= 10_000:
        raise ScenarioError(f"command line `--workers {workers}`: it must be from 1 to 10000")
    if on == "local":
        local: Executor = Threads(workers)
        return nullcontext(local)
    from fanin.runs.cluster import Dask, address_of

    return Dask(address_of(on))


def _store(folder: Path | None) -> Any:
    from fanin.runs.store import Store, default_folder

    return Store(folder or default_folder())


def _print(result: SweepResult, seconds: float) -> None:
    import polars as pl

    from fanin.terminal import display

    plan, runs = result.sweep, result.runs
    done = runs.filter(pl.col("status") == "done")
    shown = [name for name in ("p50_ms", "p99_ms", "goodput_bps", "timeouts", "drops") if name in runs.columns]
    if plan.axes and done.height:
        table = done.group_by(*plan.axes, maintain_order=True).agg(
            pl.len().alias("runs"), *(pl.col(name).mean().alias(f"mean {name}") for name in shown)
        )
        _print_rows(table.head(40))
        if table.height > 40:
            display.note(f"{table.height - 40} more cells; `fanin query` shows all")
    rate = f", {result.ran / seconds:.3g} runs/s" if result.ran and seconds > 0 else ""
    display.note(f"{runs.height} runs of {plan.name}: {result.ran} ran, {result.found} found in the store{rate}")
    if result.unsettled:
        wide = "1 cell has" if result.unsettled == 1 else f"{result.unsettled} cells have"
        display.note(f"{wide} the most seeds (`max_seeds`) and an interval that is still wider than asked for")
    failures = runs.filter(pl.col("status") == "failed")
    for row in failures.head(5).iter_rows(named=True):
        display.note(f"failed: {row['error']}")
        display.note(f"  again: {row['command']}")
    if failures.height > 5:
        display.note(
            f"{failures.height} failed; `fanin query \"select error, command from runs where status = 'failed'\"`"
        )
    if result.interrupted:
        display.note(f"interrupted: {result.missing} runs are left; the same command goes on")


def _print_rows(rows: pl.DataFrame) -> None:
    from rich.table import Table

    from fanin.terminal import display

    table = Table()
    for name, kind in rows.schema.items():
        table.add_column(name, justify="right" if kind.is_numeric() else "left")
    for row in rows.iter_rows():
        table.add_row(*(_cell(value) for value in row))
    display.print_table(table)


def _cell(value: object) -> str:
    from fanin.terminal.markup import escape

    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.5g}" if abs(value) < 1e5 else f"{value:,.0f}"
    return escape(str(value))


def _as_dict(result: SweepResult) -> dict[str, Any]:
    from fanin import __version__

    plan = result.sweep
    return {
        "version": __version__,
        "sweep": {"name": plan.name, "title": plan.title, "file": plan.file, "axes": list(plan.axes)},
        "found": result.found,
        "ran": result.ran,
        "failed": result.failed,
        "missing": result.missing,
        "unsettled": result.unsettled,
        "runs": [_plain(row) for row in result.runs.to_dicts()],
    }


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """Values as JSON has them."""
    return {
        key: value if value is None or isinstance(value, str | int | float | bool) else str(value)
        for key, value in row.items()
    }


def _write(rows: pl.DataFrame, file: Path, read: Sequence[Path | None]) -> None:
    from fanin.disk.files import output_file
    from fanin.errors import ScenarioError

    if file.suffix not in (".parquet", ".csv"):
        raise ScenarioError(f"command line `--out {file}`: the name must end in .parquet or .csv")
    with output_file(file, of=read) as scratch, scratch.open("wb") as handle:
        (rows.write_csv if file.suffix == ".csv" else rows.write_parquet)(handle)
