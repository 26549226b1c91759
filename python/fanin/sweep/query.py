"""SQL over the results of sweeps, by DuckDB."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from fanin.disk.files import ROWS, read_parquet, shown
from fanin.disk.scratch import scratch_folder
from fanin.errors import OutputError, ScenarioError
from fanin.process.progress import TICK_S
from fanin.runs.store import Store, default_folder

if TYPE_CHECKING:
    import duckdb


def query(sql: str, *, store: Store | str | Path | None = None, file: str | Path | None = None) -> pl.DataFrame:
    """Run one SQL statement.

    Parameters
    ----------
    sql : str
        DuckDB's SQL. Each sweep in the store is a table of its name, ``runs`` is all of them, with the name in the column ``sweep``.
        Without ``from``, ``from runs`` is meant.
    store : Store or path, optional
        The store; ``$FANIN_STORE`` or the user's cache unless given.
    file : path, optional
        A Parquet file of rows, such as ``fanin sweep --out`` writes; it is ``runs`` then, instead of the store's.

    Returns
    -------
    polars.DataFrame

    Raises
    ------
    fanin.ScenarioError
        When the statement is wrong.
    fanin.OutputError
        When there is nothing to query.
    """
    import duckdb

    # Nothing but those files is read, and nothing is written: a statement may be pasted from another source.
    connection = duckdb.connect(":memory:")
    try:
        with _tables(store, file) as tables:
            for name, path in tables.items():
                _make_table(connection, name, path)
        if file is None:
            parts = [f"select {_text(name)} as sweep, * from {_quoted(name)}" for name in tables]
            connection.execute(f"create view runs as {' union all by name '.join(parts)}")
        connection.execute("set enable_external_access = false")
        names, rows = _answered(connection, _with_from(sql))
    except duckdb.Error as error:
        # Without the marks below the statement, which point nowhere on one line.
        said = " ".join(
            line.strip() for line in str(error).splitlines() if not line.startswith("LINE ") and line.strip(" ^")
        )
        raise ScenarioError(
            f"query: {said}; tables: {', '.join(['runs', *(t for t in tables if t != 'runs')])}; `describe runs` shows the columns"
        ) from error
    finally:
        connection.close()
    return pl.DataFrame(rows, schema=_distinct(names), orient="row", infer_schema_length=None)


def _make_table(connection: duckdb.DuckDBPyConnection, name: str, path: Path) -> None:
    import duckdb

    try:
        connection.execute(f"create table {_quoted(name)} as select * from read_parquet(?)", [str(path)])
    except duckdb.Error as error:
        raise _no_rows(path) from error


def _answered(connection: duckdb.DuckDBPyConnection, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Columns and rows. DuckDB computes on a thread, since it hears of no signal by itself."""

    def ask() -> tuple[list[str], list[tuple[Any, ...]]]:
        found = connection.execute(sql)
        if found is None:
            raise ScenarioError("query: there is no statement; `fanin query 'select * limit 5'` shows some rows")
        return [column[0] for column in found.description or []], found.fetchall()

    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(ask)
        try:
            # The system may give a signal to a thread of DuckDB's: Python acts on it once this thread wakes.
            while not answer.done():
                wait([answer], TICK_S)
            return answer.result()
        except BaseException:
            connection.interrupt()
            raise


def rows_of(name: str, *, store: Store | str | Path | None = None) -> pl.DataFrame:
    """The rows of a sweep, by its name, or of a Parquet file.

    Raises
    ------
    fanin.OutputError
        When there is no such sweep in the store, and no such file, or it holds no rows.
    """
    if name.endswith(".parquet") and Path(name).is_file():
        return _rows(Path(name))
    place = store if isinstance(store, Store) else Store(store or default_folder())
    known = place.sweeps()
    if name not in known:
        there = f"it has {', '.join(known)}" if known else "it has none yet: `fanin sweep sweep.toml` makes one"
        raise OutputError(f"{place.folder}: there is no sweep `{name}` in this store; {there}")
    return _rows(known[name])


def _rows(file: Path) -> pl.DataFrame:
    try:
        return read_parquet(file)[0]
    except ValueError as error:
        raise _no_rows(file) from error


def _no_rows(file: Path) -> OutputError:
    return OutputError(f"{shown(file)}: it holds no rows that can be read; the same `fanin sweep` writes it anew")


@contextmanager
def _tables(store: Store | str | Path | None, file: str | Path | None) -> Iterator[dict[str, Path]]:
    if file is not None:
        path = Path(file)
        if not path.is_file():
            raise OutputError(f"{path}: there is no such file")
        with scratch_folder(tempfile.gettempdir(), ROWS) as folder:
            # DuckDB gets what another process could read.
            copy = folder / "runs.parquet"
            _rows(path).write_parquet(copy)
            yield {"runs": copy}
        return
    place = store if isinstance(store, Store) else Store(store or default_folder())
    known = place.sweeps()
    if not known:
        raise OutputError(f"{place.folder}: no sweep is in this store yet; `fanin sweep sweep.toml` makes one")
    yield known


def _with_from(sql: str) -> str:
    """``select cc, avg(p99_ms) group by cc`` means the table `runs`."""
    import re

    if not re.match(r"\s*select\b", sql, re.IGNORECASE) or re.search(r"\bfrom\b", sql, re.IGNORECASE):
        return sql
    head = re.search(r"\b(where|group\s+by|order\s+by|having|limit)\b", sql, re.IGNORECASE)
    return f"{sql[: head.start()]} from runs {sql[head.start() :]}" if head else f"{sql.rstrip(' ;')} from runs"


def _distinct(names: list[str]) -> list[str]:
    seen: dict[str, int] = {}
    for name in names:
        seen[name] = seen.get(name, 0) + 1
    return names if len(seen) == len(names) else [f"{name}_{number}" for number, name in enumerate(names, 1)]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"
