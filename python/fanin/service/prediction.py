"""A service under each TCP on real Linux, and beside it what fanin predicts from a capture under one of them."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from fanin import _native
from fanin.comparison import compare
from fanin.disk.files import shown
from fanin.disk.scratch import scratch_folder
from fanin.errors import FaninError, ScenarioError
from fanin.process.progress import Progress, silent
from fanin.registries import entries
from fanin.runs.engines import engine as find_engine
from fanin.runs.job import Document, Job
from fanin.runs.kept import Keyed, run_kept
from fanin.runs.store import Store
from fanin.runs.tables import Frames
from fanin.service.rounds import SERVICE, CaptureJob, ServiceJob, store_of
from fanin.simulation import chosen_algorithms, chosen_seeds, toml
from fanin.statistics.ranking import completion_statistics
from fanin.words.text import toml_string

ALGORITHMS = ("reno", "cubic", "dctcp", "bbr")
"""What is asked about unless it is named."""

CAPTURED = "cubic"
"""What hosts run as the capture is taken."""

SEEDS = 3

CLEAR = 1.1
"""TCPs whose means on the kernel differ by less than this factor have no order to get right."""

CLOSE = 1.5
"""A predicted gain within this factor of the real one is close."""

RACK_KEYS = ("rate", "delay", "buffer", "mark", "receiver_rate", "receiver_delay", "receiver_buffer", "receiver_mark")
"""Keys that a star topology and a rack have in common."""

STATISTICS = ("p50", "p99", "mean")


@dataclass(slots=True, repr=False)
class TruthResult:
    """What real Linux does, and what was predicted.

    Attributes
    ----------
    table : polars.DataFrame
        One row per TCP: ``cc``; ``p50``, ``p99``, ``mean`` (ms) on the kernel and ``predicted_p50``, ``predicted_p99``, ``predicted_mean``
        of the same; ``gain`` and ``predicted_gain``, the mean under `captured` over that under this TCP (above 1: this TCP is faster);
        ``timeouts`` per run; ``count``, what the statistics are over. A statistic that falls on something unfinished is null.
    of : {"rounds", "responses"}
        What the times are of.
    rounds, responses, predicted_rounds, predicted_responses : polars.DataFrame
        ``cc``, ``seed``, ``number``, ``completion_ms``.
    what : str
        The scenario or capture.
    captured : str
        What the prediction was made from.
    engine_label : str
        The kernel.
    seeds : tuple of int
    command, version : str
    notes : list of str
        Such as why there is no prediction.
    """

    table: pl.DataFrame
    of: str
    rounds: pl.DataFrame
    responses: pl.DataFrame
    predicted_rounds: pl.DataFrame
    predicted_responses: pl.DataFrame
    what: str
    captured: str
    engine_label: str
    seeds: tuple[int, ...]
    command: str
    version: str
    notes: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"<TruthResult of {self.what}: {', '.join(self.table['cc'])} on {self.engine_label}, {len(self.seeds)} seeds>"

    def _repr_html_(self) -> str:
        """For notebooks: what each TCP took, and what was predicted."""
        from fanin.pictures.notebook import card

        shown = ("cc", "p50", "predicted_p50", "p99", "predicted_p99", "gain", "predicted_gain", "timeouts")
        return card(repr(self).strip("<>"), shown, self.table.select(shown).rows())

    def to_dict(self) -> dict[str, Any]:
        """The object that ``fanin truth --json`` prints."""
        return {
            "version": self.version,
            "command": self.command,
            "what": self.what,
            "engine": self.engine_label,
            "captured": self.captured,
            "of": self.of,
            "seeds": list(self.seeds),
            "table": self.table.to_dicts(),
            "pairs": pairs(self.table),
            "notes": list(self.notes),
        }


def pairs(table: pl.DataFrame) -> dict[str, int]:
    """How many pairs of TCPs a prediction gets right, by mean times.

    Returns
    -------
    dict
        ``clear``: pairs that differ by more than :data:`CLEAR` on the kernel; ``ordered``: of them in the right order; ``pairs`` that have both
        means on both sides; ``close``: of them with a gain within :data:`CLOSE` of the real one.

    Examples
    --------
    >>> pairs(pl.DataFrame({"mean": [10.0, 5.0, 5.1], "predicted_mean": [9.0, 6.0, 5.0]}))
    {'clear': 2, 'ordered': 2, 'pairs': 3, 'close': 3}
    """
    found = {"clear": 0, "ordered": 0, "pairs": 0, "close": 0}
    rows = table.select("mean", "predicted_mean").drop_nulls().rows()
    for (a, here_a), (b, here_b) in itertools.combinations(rows, 2):
        gain, promised = a / b, here_a / here_b
        found["pairs"] += 1
        found["close"] += 1 / CLOSE <= promised / gain <= CLOSE
        if max(gain, 1 / gain) > CLEAR:
            found["clear"] += 1
            found["ordered"] += (gain > 1) == (promised > 1)
    return found


def truth(
    what: str | Path,
    rack: str | Path | None = None,
    *,
    cc: str | Sequence[str] | None = None,
    captured: str = CAPTURED,
    seeds: int | Sequence[int] = SEEDS,
    settings: Mapping[str, object] | None = None,
    text: str | None = None,
    engine: str = "kernel",
    predict: bool | int | Sequence[int] = True,
    keep: bool = True,
    command: str | None = None,
    tell: Callable[[str], None] = lambda _: None,
    progress: Callable[[str, int], Progress] = silent,
) -> TruthResult:
    """Run a service under each TCP on real Linux, and predict the same from a capture of one of them.

    Parameters
    ----------
    what : path
        A scenario (``.toml``) on a star, whose service runs on the kernel under each TCP: then a capture of its run under `captured` is taken at
        the aggregator and replayed in the simulator under the others. Or a capture, whose traffic is replayed on both.
    rack : path, optional
        With a capture: its rack; proposed from the capture unless given. A scenario says its own.
    cc : str or sequence of str, optional
        TCPs; :data:`ALGORITHMS` unless given.
    captured : str
        What the hosts ran as the capture was taken.
    seeds : int or sequence of int
        How many seeds, counted from 1, or which.
    settings : mapping, optional
        Values by key on top of scenario or rack.
    text : str, optional
        The scenario itself (TOML) instead of a file.
    engine : str
        ``kernel`` or ``kernel-hz1000``.
    predict : bool, int or sequence of int
        Make the prediction, too; over so many seeds of its own where it is a number, or these.
    keep : bool
        Results are kept in the store, and found there the next time.
    command : str, optional
        What to state as the command that does the same.
    tell : callable, optional
        Told what is about to begin, with an estimate where there is one.
    progress : callable, optional
        Makes the progress display; see :mod:`fanin.process.progress`.

    Returns
    -------
    TruthResult

    Raises
    ------
    fanin.ScenarioError, fanin.CaptureError, fanin.AlgorithmError, fanin.EngineError
        When something asked for cannot be run.
    """
    names = chosen_algorithms(cc) if cc is not None else list(ALGORITHMS)
    names = names if captured in names else [captured, *names]
    numbers = chosen_seeds(seeds)
    guesses = numbers if isinstance(predict, bool) else chosen_seeds(predict)
    label = find_engine(engine).label
    store = store_of(engine) if keep else None
    is_scenario = text is not None or str(what).endswith(".toml")
    notes: list[str] = []
    if is_scenario:
        if rack is not None:
            raise ScenarioError("command line `--rack`: a scenario says its own network; leave it out")
        document = Document(text, str(what)) if text is not None else Document.read(what)
        changes = tuple((key, toml(value)) for key, value in (settings or {}).items())
        job = Job(document, numbers[0], captured, changes, engine=engine)
        real = _played(job, names, numbers, store, tell, progress)
        predicted = _nothing()
        if predict:
            try:
                predicted = _predicted(job, names, guesses, store, keep, progress)
            except _NoPredictionError as why:
                notes.append(f"no prediction: {why}")
    else:
        real = _replayed(what, rack, names, captured, numbers, settings, engine, keep, tell, progress)
        predicted = _nothing()
        if predict:
            predicted = _replayed(what, rack, names, captured, guesses, settings, "sim", keep, tell, progress)
    of = "rounds" if real["rounds"].height else "responses"
    if of == "rounds" and predicted["responses"].height and not predicted["rounds"].height:
        notes.append("the capture shows no requests of several messages, so there is no prediction of them")
    return TruthResult(
        table=_table(names, captured, real, predicted, of, len(numbers)),
        of=of,
        rounds=real["rounds"],
        responses=real["responses"],
        predicted_rounds=predicted["rounds"],
        predicted_responses=predicted["responses"],
        what=shown(str(what)),
        captured=captured,
        engine_label=label,
        seeds=tuple(numbers),
        command=shown(command or f"fanin truth {what}"),
        version=_native.VERSION,
        notes=notes,
    )


class _NoPredictionError(Exception):
    """Why none can be made."""


def _nothing() -> Frames:
    empty = pl.DataFrame(schema=SERVICE)
    return {
        "rounds": empty,
        "responses": empty,
        "timeouts": pl.DataFrame(schema={"cc": pl.String, "timeouts": pl.UInt64}),
    }


def _played(
    job: Job,
    names: Sequence[str],
    seeds: Sequence[int],
    store: Store | None,
    tell: Callable[[str], None],
    progress: Callable[[str, int], Progress],
) -> Frames:
    """The service itself on the kernel under each TCP."""
    jobs = [
        ServiceJob(Job(job.scenario, seed, name, job.settings, ("messages",), engine=job.engine))
        for name in names
        for seed in seeds
    ]
    on = find_engine(job.engine)
    for one in jobs[:: len(seeds)]:
        on.check(one.job.plan(), one.job.checked())
    made = all_frames(jobs, store, progress, f"playing the service on {on.label}")
    timeouts = [frames["timeouts"].with_columns(cc=pl.lit(j.job.cc)) for j, frames in zip(jobs, made, strict=True)]
    found = {name: pl.concat([frames[name] for frames in made]) for name in ("rounds", "responses")}
    if not found["responses"].height:
        raise ScenarioError(
            f"{job.scenario.name}: no message of a finite size is sent, so there is nothing to wait for"
        )
    return {**found, "timeouts": pl.concat(timeouts).select("cc", "timeouts")}


def all_frames(
    jobs: Sequence[Keyed], store: Store | None, progress: Callable[[str, int], Progress], title: str
) -> list[Frames]:
    """The frames of every job; an error or an interrupt of one ends all, and what was done is kept."""
    made: dict[int, Frames] = {}

    def finished(number: int, outcome: Frames | BaseException) -> None:
        if isinstance(outcome, BaseException):
            raise outcome
        made[number] = outcome

    _, whole = run_kept(jobs, finished, store=store, progress=progress, title=title)
    if not whole:
        raise KeyboardInterrupt
    return [made[number] for number in range(len(jobs))]


def _predicted(
    job: Job,
    names: Sequence[str],
    seeds: Sequence[int],
    store: Store | None,
    keep: bool,
    progress: Callable[[str, int], Progress],
) -> Frames:
    """Capture the service's run at the aggregator, and replay that in the simulator."""
    rack = rack_text(job)
    captures = all_frames([CaptureJob(job)], store, progress, "taking the capture")
    with scratch_folder(tempfile.gettempdir(), "fanin-truth-") as folder:
        file, rack_file = folder / "captured.pcap", folder / "rack.toml"
        file.write_bytes(captures[0]["capture"]["pcap"][0])
        rack_file.write_text(rack, encoding="utf-8")
        try:
            result = compare(
                file, rack_file, cc=list(names), baseline=job.cc, seeds=list(seeds), keep=keep, progress=progress
            )
        except FaninError as error:
            raise _NoPredictionError(str(error)) from error
    return _service(result.rounds, result.responses, result.runs)


def rack_text(job: Job) -> str:
    """The rack file that describes a scenario's star; raises with why when its network is none."""
    table = job.scenario.table()
    for key, value in job.settings:
        section, _, name = key.partition(".")
        table.setdefault(section, {})[name] = value.strip('"')
    topology = table.get("topology", {})
    if topology.get("kind", "star") != "star":
        raise _NoPredictionError(f"the network is a {topology['kind']}, and a rack is a star")
    star = next(entry for entry in entries("topology") if entry.name == "star")
    defaults = {key["name"]: key["default"] for key in star.to_dict()["keys"] if key["default"] is not None}
    network = {key: topology.get(key, defaults.get(key)) for key in RACK_KEYS}
    lines = ["[rack]", *(f"{key} = {_toml(value)}" for key, value in network.items() if value is not None)]
    stack = table.get("stack", {})
    return "\n".join([*lines, "", "[stack]", *(f"{key} = {_toml(value)}" for key, value in stack.items()), ""])


def _toml(value: object) -> str:
    return toml_string(value) if isinstance(value, str) else toml(value)


def _replayed(
    capture: str | Path,
    rack: str | Path | None,
    names: Sequence[str],
    captured: str,
    seeds: Sequence[int],
    settings: Mapping[str, object] | None,
    engine: str,
    keep: bool,
    tell: Callable[[str], None],
    progress: Callable[[str, int], Progress],
) -> Frames:
    """A capture's traffic on one engine."""
    result = compare(
        capture,
        rack,
        cc=list(names),
        baseline=captured,
        seeds=list(seeds),
        settings=settings,
        engine=engine,
        keep=keep,
        tell=tell,
        progress=progress,
    )
    return _service(result.rounds, result.responses, result.runs)


def _service(rounds: pl.DataFrame, responses: pl.DataFrame, runs: pl.DataFrame) -> Frames:
    return {
        "rounds": rounds.select("cc", "seed", pl.col("round").alias("number"), "completion_ms"),
        "responses": responses.select("cc", "seed", pl.col("response").alias("number"), "completion_ms"),
        "timeouts": runs.select("cc", "timeouts"),
    }


def _table(names: Sequence[str], captured: str, real: Frames, predicted: Frames, of: str, seeds: int) -> pl.DataFrame:
    """One row per TCP."""
    rows = []
    for cc in names:
        mine, theirs = (frames[of].filter(pl.col("cc") == cc)["completion_ms"] for frames in (real, predicted))
        row: dict[str, Any] = {"cc": cc, "count": mine.len()}
        for prefix, times in (("", mine), ("predicted_", theirs)):
            found = completion_statistics(times.to_list()) if times.len() else dict.fromkeys(STATISTICS)
            unfinished = times.null_count() > 0
            row |= {f"{prefix}{name}": None if name == "mean" and unfinished else found[name] for name in STATISTICS}
        row["timeouts"] = int(real["timeouts"].filter(pl.col("cc") == cc)["timeouts"].sum()) / seeds
        rows.append(row)
    base = next(row for row in rows if row["cc"] == captured)
    for row in rows:
        for prefix in ("", "predicted_"):
            mine_mean, base_mean = row[f"{prefix}mean"], base[f"{prefix}mean"]
            row[f"{prefix}gain"] = None if not mine_mean or not base_mean else base_mean / mine_mean
    schema = {
        "cc": pl.String,
        **{f"{prefix}{name}": pl.Float64 for name in STATISTICS for prefix in ("", "predicted_")},
        "gain": pl.Float64,
        "predicted_gain": pl.Float64,
        "timeouts": pl.Float64,
        "count": pl.UInt64,
    }
    return pl.DataFrame(rows, schema=schema)
