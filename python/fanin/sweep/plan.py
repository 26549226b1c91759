"""``sweep.toml``, from text to the points that are run."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fanin.disk.files import read_text, shown
from fanin.errors import ScenarioError, nearest
from fanin.runs.engines import ENGINES
from fanin.runs.job import Document, Job, Settings
from fanin.runs.summary import COLUMNS
from fanin.runs.tables import FRAMES
from fanin.simulation import chosen_seeds, toml
from fanin.sweep.values import Range, Value, drawn

KEYS = {
    "title": "one line for reports",
    "name": "what queries and plots call it; the file's name unless given",
    "scenario": "base scenario, relative to this file; or a list of them, then `scenario` is an axis",
    "seeds": "how many seeds, counted from 1, or a list of them; 5 unless given",
    "engine": "whose TCP runs, such as `sim`, `kernel` or `testbed`; or a list, then `engine` is an axis",
    "set": "values by key for every run",
    "keep": 'frames to keep beside the row of each run, such as ["flows"]',
    "axis": "tables [axis.NAME]",
    "sample": "draws from the axes it names instead of their grid",
    "until": "seeds are added until an interval is narrow",
}
OTHERS = {
    "topology": ("a scenario", "fanin run FILE"),
    "workload": ("a scenario", "fanin run FILE"),
    "rack": ("a rack", "fanin compare CAPTURE --rack FILE"),
    "replay": ("a rack", "fanin compare CAPTURE --rack FILE"),
}
"""What a file with such a key looks to be, and what takes it."""

OF_PLOTS = ("mean", "low", "high", "runs")
"""Columns that a figure of a sweep makes beside the axes."""

AXIS_KEYS = {
    "key": "scenario key; NAME for `cc`",
    "keys": "several keys that change together (zip)",
    "values": "list of values; of lists for `keys`",
    "from": "first value of a range",
    "to": "last value of a range",
    "points": "how many values of a range",
    "scale": "`log` or `linear`",
}
SAMPLE_KEYS = {
    "method": "`random` or `latin` (Latin hypercube)",
    "n": "how many points",
    "axes": "which axes; all with a range unless given",
    "seed": "of the draw; 1 unless given",
}
UNTIL_KEYS = {"statistic": "column", "ci": 'half-width, such as "5%"', "max_seeds": "most seeds of a cell"}

MAX_RUNS = 10_000_000
"""More runs than this are a mistake."""


@dataclass(frozen=True, slots=True)
class Point:
    """One cell of a sweep: what is the same for all its seeds.

    Attributes
    ----------
    labels : tuple of (str, value)
        Axis and value, as columns of the results.
    scenario : Document
        Base scenario.
    cc : str or None
        Algorithm, where one is an axis.
    settings : tuple of (str, str)
        Values by key.
    engine : str
        Whose TCP runs.
    """

    labels: tuple[tuple[str, Value], ...]
    scenario: Document
    cc: str | None
    settings: Settings
    engine: str = "sim"

    def job(self, seed: int) -> Job:
        """The run of one seed."""
        return Job(self.scenario, seed, self.cc, self.settings, engine=self.engine)


@dataclass(frozen=True, slots=True)
class Sweep:
    """A sweep as its file says.

    Attributes
    ----------
    name, title : str
        How it is found again, and one line about it.
    file : str
        Where it was read.
    axes : tuple of str
        Columns of the results that tell cells apart.
    points : tuple of Point
        Cells, in the order of the axes.
    seeds : tuple of int
        Of each cell.
    keep : tuple of str
        Frames that are kept of each run.
    until : mapping
        The table ``[until]``, checked by :class:`fanin.sweep.Until`.
    """

    name: str
    title: str
    file: str
    axes: tuple[str, ...]
    points: tuple[Point, ...]
    seeds: tuple[int, ...]
    keep: tuple[str, ...]
    until: Mapping[str, object]


def read(file: str | Path) -> Sweep:
    """Read a sweep.

    Raises
    ------
    fanin.ScenarioError
        When something in it is unknown, missing or contradictory.
    """
    path = Path(file)
    where = shown(path)
    table = _read(path, where)
    if "scenario" not in table and table.keys() & OTHERS.keys():
        what, command = next(OTHERS[key] for key in table if key in OTHERS)
        raise ScenarioError(f"{where}: it looks like {what}, not a sweep: `{command}` takes it")
    _known(table, KEYS, where)
    engines = _engines(table.get("engine", "sim"), where)
    seeds = chosen_seeds(table.get("seeds", 5))
    keep = tuple(_texts(table.get("keep", []), f"{where}: keep"))
    for frame in keep:
        if frame not in FRAMES:
            raise ScenarioError(f"{where}: keep: no frame is called {frame!r}; there are {', '.join(FRAMES)}")
    common = {key: toml(value) for key, value in _flat(_table(table.get("set", {}), f"{where}: set")).items()}
    bases = _bases(table, path)
    axes = {
        name: _axis(name, _table(axis, f"{where}: [axis.{name}]"), where)
        for name, axis in _table(table.get("axis", {}), f"{where}: axis").items()
    }
    cells = _cells(axes, table.get("sample"), where)
    asked = len(cells) * len(bases) * len(engines) * len(seeds)
    if asked > MAX_RUNS:
        raise ScenarioError(f"{where}: it asks for {asked} runs; at most {MAX_RUNS} are taken")
    points = []
    for (label, document), engine, cell in itertools.product(bases.items(), engines, cells):
        labels: dict[str, Value] = {"scenario": label} if len(bases) > 1 else {}
        labels |= {"engine": engine} if len(engines) > 1 else {}
        settings, cc = dict(common), None
        for name, change in zip(axes, cell, strict=True):
            labels[name] = change.label
            for key, value in change.settings:
                if key == "cc":
                    cc = value
                else:
                    settings[key] = value
        points.append(Point(tuple(labels.items()), document, cc, tuple(settings.items()), engine))
    names = (*(["scenario"] if len(bases) > 1 else []), *(["engine"] if len(engines) > 1 else []), *axes)
    until = _table(table.get("until", {}), f"{where}: [until]")
    name = str(table.get("name", path.stem))
    if name.lower() == "runs":
        raise ScenarioError(
            f"{where}: a sweep cannot be named `{name}`: to `fanin query` that is all of them; add `name`"
        )
    _known(until, UNTIL_KEYS, f"{where}: [until]")
    return Sweep(
        name=name,
        title=str(table.get("title", "")),
        file=where,
        axes=names,
        points=tuple(points),
        seeds=tuple(seeds),
        keep=keep,
        until=until,
    )


def _read(path: Path, where: str) -> dict[str, Any]:
    """The file as TOML."""
    try:
        table: dict[str, Any] | None = tomllib.loads(read_text(path))
    except OSError as error:
        raise ScenarioError(f"{where}: cannot be read ({(error.strerror or 'unknown reason').lower()})") from error
    except UnicodeDecodeError as error:
        raise ScenarioError(f"{where}: the file is not text (UTF-8); save it as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{where}: it is no TOML: {error}") from error
    except RecursionError:
        raise ScenarioError(f"{where}: it is nested too deeply") from None
    except ScenarioError:
        raise
    except ValueError:
        # The only other one: a whole number of more digits than Python reads.
        table = None
    if table is None or not _fits(table):
        raise ScenarioError(f"{where}: a whole number in it does not fit into 64 bits")
    return table


def _fits(value: object) -> bool:
    """All whole numbers are those of TOML; Python reads any, and cannot write one of many digits."""
    if isinstance(value, dict | list):
        return all(map(_fits, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, int) or -(2**63) <= value < 2**63


@dataclass(frozen=True, slots=True)
class _Change:
    """One value of an axis."""

    label: Value
    settings: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Axis:
    """An axis before its values are chosen."""

    keys: tuple[str, ...]
    values: tuple[Any, ...]
    range: Range | None

    def change(self, value: Any) -> _Change:
        together = tuple(value) if len(self.keys) > 1 else (value,)
        label = value if len(self.keys) == 1 else " ".join(toml(v) for v in together)
        return _Change(label, tuple(zip(self.keys, map(toml, together), strict=True)))


def _axis(name: str, table: dict[str, Any], file: str) -> _Axis:
    where = f"{file}: [axis.{name}]"
    _known(table, AXIS_KEYS, where)
    if name in {*COLUMNS, "engine", *OF_PLOTS} - {"cc"}:
        raise ScenarioError(f"{where}: `{name}` is a column of the results; give the axis another name")
    if ("key" in table) + ("keys" in table) > 1:
        raise ScenarioError(f"{where}: it has `key` and `keys`; give one of the two")
    keys = tuple(_texts(table["keys"], f"{where} keys")) if "keys" in table else (str(table.get("key", name)),)
    if len(keys) == 1 and "." not in keys[0] and keys[0] != "cc":
        raise ScenarioError(f'{where}: `{keys[0]}` is no scenario key; add `key = "topology.{keys[0]}"` or the like')
    if "values" in table:
        if {"from", "to", "points", "scale"} & set(table):
            raise ScenarioError(f"{where}: it has `values` and a range; give one of the two")
        values = table["values"]
        if not isinstance(values, list) or not values:
            raise ScenarioError(f"{where}: `values` must be a list of at least one value")
        if len(keys) > 1 and any(not isinstance(v, list) or len(v) != len(keys) for v in values):
            raise ScenarioError(f"{where}: each of `values` must be a list of {len(keys)}, one for each of `keys`")
        if len(keys) == 1 and any(not isinstance(v, str | int | float) for v in values):
            raise ScenarioError(f"{where}: each of `values` must be text, a number or true/false")
        return _Axis(keys, tuple(tuple(v) if isinstance(v, list) else v for v in values), None)
    if not {"from", "to"} <= set(table):
        raise ScenarioError(f"{where}: it needs `values`, or `from` and `to`")
    scale = table.get("scale", "linear")
    if scale not in ("log", "linear"):
        raise ScenarioError(f'{where}: scale is {scale!r}; it must be "log" or "linear"')
    found = Range.of(table["from"], table["to"], log=scale == "log", where=where)
    points = table.get("points", 0)
    if not isinstance(points, int) or isinstance(points, bool) or points < 0 or ("points" in table and points < 2):
        raise ScenarioError(f"{where}: points is {points!r}; it must be a whole number from 2")
    return _Axis(keys, tuple(found.points(points)) if points else (), found)


def _cells(axes: dict[str, _Axis], sample: object, file: str) -> list[tuple[_Change, ...]]:
    """Every combination of the axes' values; those that are sampled count as one axis of tuples."""
    drawn_names: list[str] = []
    tuples: list[dict[str, Value]] = []
    if sample is not None:
        where = f"{file}: [sample]"
        table = _table(sample, where)
        _known(table, SAMPLE_KEYS, where)
        with_range = [name for name, axis in axes.items() if axis.range is not None]
        drawn_names = _texts(table.get("axes", with_range), f"{where} axes")
        for name in drawn_names:
            if name not in axes:
                raise ScenarioError(f"{where}: there is no [axis.{name}]")
        method, count, seed = table.get("method", "latin"), table.get("n"), table.get("seed", 1)
        if method not in ("random", "latin"):
            raise ScenarioError(f'{where}: method is {method!r}; it must be "random" or "latin"')
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise ScenarioError(f"{where}: n is {count!r}; it must be a whole number from 1: how many points are drawn")
        if not drawn_names:
            raise ScenarioError(f"{where}: there is nothing to draw from; give an axis `from` and `to`, or name `axes`")
        if not isinstance(seed, int):
            raise ScenarioError(f"{where}: seed is {seed!r}; it must be a whole number")
        sources = [axes[name].range or axes[name].values for name in drawn_names]
        tuples = [
            dict(zip(drawn_names, values, strict=True))
            for values in drawn(sources, count, latin=method == "latin", seed=seed)
        ]
    grid = {name: axis for name, axis in axes.items() if name not in drawn_names}
    for name, axis in grid.items():
        if not axis.values:
            raise ScenarioError(f"{file}: [axis.{name}]: it needs `points`: how many values between `from` and `to`")
    cells = []
    for chosen in itertools.product(*(axis.values for axis in grid.values())):
        fixed = dict(zip(grid, chosen, strict=True))
        for some in tuples or [{}]:
            both = {**fixed, **some}
            cells.append(tuple(axes[name].change(both[name]) for name in axes))
    return cells


def _engines(named: object, where: str) -> list[str]:
    """Engines of the run layer: runs in real time are never equal, so that they have no place in a store."""
    names = _texts([named] if isinstance(named, str) else named, f"{where}: engine")
    for name in names:
        if name not in ENGINES:
            raise ScenarioError(f"{where}: engine {name!r} cannot be swept; it must be one of {', '.join(ENGINES)}")
    if not names or len(set(names)) < len(names):
        raise ScenarioError(f"{where}: `engine` must name at least one, and none twice")
    return names


def _bases(table: dict[str, Any], file: Path) -> dict[str, Document]:
    where = shown(file)
    if "scenario" not in table:
        raise ScenarioError(f'{where}: there is no `scenario`: write scenario = "incast.toml"')
    named = table["scenario"]
    names = _texts([named] if isinstance(named, str) else named, f"{where}: scenario")
    if not names or len(set(names)) < len(names):
        raise ScenarioError(f"{where}: `scenario` must name at least one file, and none twice")
    return {
        Path(name).stem if len({Path(n).stem for n in names}) == len(names) else name: Document.read(file.parent / name)
        for name in names
    }


def _known(table: Mapping[str, Any], keys: Mapping[str, str], where: str) -> None:
    for key in table:
        if key not in keys:
            near = nearest(key, keys)
            hint = f"did you mean `{near}`?" if near else f"it may be {', '.join(keys)}"
            raise ScenarioError(f"{where}: unknown key `{key[:60]}{'...' if len(key) > 60 else ''}`; {hint}")


def _table(thing: object, where: str) -> dict[str, Any]:
    if not isinstance(thing, dict):
        raise ScenarioError(f"{where}: it is {thing!r}, and must be a table")
    return thing


def _texts(thing: object, where: str) -> list[str]:
    if not isinstance(thing, list) or not all(isinstance(text, str) for text in thing):
        raise ScenarioError(f"{where}: it is {thing!r}, and must be a list of texts")
    return list(thing)


def _flat(table: dict[str, Any], prefix: str = "") -> dict[str, object]:
    """``[set]`` may be written with dotted keys, which TOML reads as tables."""
    flat: dict[str, object] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            flat.update(_flat(value, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = value
    return flat
