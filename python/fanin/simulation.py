"""Run scenarios, over algorithms and seeds, on every core."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from fanin import _native
from fanin.disk.files import file_name, made_folder, output_folder, shown, write_parquet
from fanin.errors import AlgorithmError, EngineError, ScenarioError, keywords
from fanin.process.progress import Progress, silent
from fanin.runs.engines import ENGINES, Captures
from fanin.runs.engines import engine as find_engine
from fanin.runs.executor import Threads
from fanin.runs.job import Document, Job, RunWarning, algorithms_of, warnings_of
from fanin.runs.tables import FRAMES, Frames
from fanin.statistics.ranking import STATISTICS, completion_statistics

if TYPE_CHECKING:
    from fanin._native import Watch

TESTBEDS = ("testbed", "testbed-http")
"""Engines in real time, whose jobs are not the run layer's: no two of their runs are the same."""

MAX_SEEDS = 10_000
"""More seeds than this are a mistake."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An algorithm that could not be run, and why; the others are kept."""

    cc: str
    message: str


@dataclass(slots=True)
class RunResult:
    """What one scenario did under each algorithm and seed.

    Every frame begins with the columns ``cc`` (String) and ``seed`` (UInt64). Times are milliseconds from the start of the run (Float64).
    docs/reference/results.md lists every column with its type and unit.

    Attributes
    ----------
    messages, flows, ports, background : polars.DataFrame
        One row per message, per one-way byte stream, per output port, and per source of constant-bit-rate datagrams.
    queue, window, packets, throughput, internals : polars.DataFrame
        Traces of what the scenario's ``[measure]`` names; empty where it names nothing.
    runs : polars.DataFrame
        One row per run: ``end_ms``, ``complete`` (Boolean), ``packet_hops`` (UInt64).
    testbed : polars.DataFrame
        How honest each run in real time was, of the engine ``testbed`` alone: packets ``released`` by the switch, ``achieved_mbps`` from Ethernet
        on, those ``late`` (over 50 us), ``late_mean_us``, ``late_max_us``, ``stalls`` (over 1 ms without its CPU), ``stalled_ms``,
        ``longest_stall_ms``, packets ``misordered`` (seen after later ones had been decided), ``misordered_max_us``, ``ring_drops``, ``strays``
        (of no connection), ``refused`` (by a host's device), ``skipped_callbacks`` of twins, ``switch_cpu`` (share of a CPU).
    missing : list of (str, int)
        (algorithm, seed) that were not run because of an interrupt.
    failures : list of Failure
        Algorithms that raised, when others did not: ``cc`` and ``message``. Nothing else here is about them.
    warnings : list of RunWarning
        What the scenario allows and probably does not mean: text with a ``kind``.
    scenario, title, scenario_hash, command, version : str
        Where the numbers come from; `title` may be None.
    hz : int, optional
        Jiffies per second that the hosts were given (``stack.hz``): drops can differ fourfold between 250 and 1000. None in real time, and where they
        differ.
    """

    messages: pl.DataFrame
    flows: pl.DataFrame
    ports: pl.DataFrame
    background: pl.DataFrame
    queue: pl.DataFrame
    window: pl.DataFrame
    packets: pl.DataFrame
    throughput: pl.DataFrame
    internals: pl.DataFrame
    runs: pl.DataFrame
    scenario: str
    title: str | None
    scenario_hash: str
    command: str
    version: str
    hz: int | None
    testbed: pl.DataFrame = field(default_factory=pl.DataFrame)
    missing: list[tuple[str, int]] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    warnings: list[RunWarning] = field(default_factory=list)

    @property
    def notes(self) -> list[str]:
        """What a reader of the numbers should know."""
        notes = []
        unfinished = self.runs.filter(~self.runs["complete"]).height
        if unfinished and self.messages["bytes"].null_count() == 0:
            notes.append(
                f"{unfinished} of {self.runs.height} runs ended before every message was delivered; raise run.duration to see them finish"
            )
        seeds = self.runs["seed"].n_unique()
        if seeds > 1 and self.flows.drop("seed").unique().height * seeds == self.flows.height:
            notes.append("every seed gave the same results: nothing in this scenario is random")
        for cc in self.runs["cc"].unique(maintain_order=True):
            blind = self.ports.filter(pl.col("cc") == cc)["marks"].sum() == 0
            warned = any(warning.kind == "no-marks" and warning.cc == cc for warning in self.warnings)
            if blind and not warned and "," not in cc and _native.needs_ecn(cc):
                notes.append(f"{cc} acts on marks, and no port marked a packet: no queue was longer than topology.mark")
        return notes

    @property
    def interrupted(self) -> bool:
        """It was stopped before the end."""
        return bool(self.missing)

    def summary(self) -> pl.DataFrame:
        """Completion of messages per run and class.

        Returns
        -------
        polars.DataFrame
            ``cc``, ``seed``, ``class``, ``messages``, ``finished`` (UInt64), ``bytes`` (UInt64, of finite messages), ``mean_ms``, ``p50_ms``, ``p95_ms``,
            ``p99_ms``, ``p99_9_ms`` (Float64; nearest-rank, an unfinished message counting as longer than any finished one),
            ``timeouts`` (UInt64).
        """
        rows = []
        for (cc, seed, group), part in self.messages.group_by("cc", "seed", "class", maintain_order=True):
            finite = part.filter(pl.col("bytes").is_not_null())
            statistics = completion_statistics(finite["completion_ms"].to_list())
            rows.append(
                {
                    "cc": cc,
                    "seed": seed,
                    "class": group,
                    "messages": finite.height,
                    "finished": finite["done_ms"].count(),
                    "bytes": int(finite["bytes"].sum()),
                    **{f"{name}_ms": statistics[name] for name in STATISTICS},
                    "timeouts": int(part["timeouts"].sum()),
                }
            )
        schema = {
            "cc": pl.String,
            "seed": pl.UInt64,
            "class": pl.String,
            "messages": pl.UInt64,
            "finished": pl.UInt64,
            "bytes": pl.UInt64,
            **{f"{name}_ms": pl.Float64 for name in STATISTICS},
            "timeouts": pl.UInt64,
        }
        return pl.DataFrame(rows, schema=schema)

    def __repr__(self) -> str:
        runs, unfinished = self.runs.height, self.runs.filter(~self.runs["complete"]).height
        told = f", {unfinished} not complete" if unfinished else ""
        return f"<RunResult of {self.scenario}: {', '.join(self.runs['cc'].unique(maintain_order=True))}; {runs} run{'s' * (runs != 1)}{told}>"

    def _repr_html_(self) -> str:
        """For notebooks: completion times and timeouts per run."""
        from fanin.pictures.notebook import card

        found = self.summary().select("cc", "seed", "class", "messages", "finished", "p50_ms", "p99_ms", "timeouts")
        return card(self.title or self.scenario, [name.replace("_ms", " ms") for name in found.columns], found.rows())

    def to_dict(self) -> dict[str, Any]:
        """The object that ``fanin run --json`` prints (schema: docs/json/run.schema.json)."""

        def of(rows: pl.DataFrame, cc: str, seed: int) -> list[dict[str, Any]]:
            return rows.filter(pl.col("cc") == cc, pl.col("seed") == seed).drop("cc", "seed").to_dicts()

        summary = self.summary()
        return {
            "version": self.version,
            "command": self.command,
            "scenario": {"file": self.scenario, "title": self.title, "hash": self.scenario_hash, "hz": self.hz},
            "runs": [
                {
                    **run,
                    "messages": of(summary, run["cc"], run["seed"]),
                    "flows": of(self.flows, run["cc"], run["seed"]),
                    "ports": of(self.ports, run["cc"], run["seed"]),
                    "background": of(self.background, run["cc"], run["seed"]),
                    **({"testbed": of(self.testbed, run["cc"], run["seed"])[0]} if self.testbed.height else {}),
                }
                for run in self.runs.to_dicts()
            ],
            "failures": [{"cc": f.cc, "message": f.message} for f in self.failures],
            "missing": [{"cc": cc, "seed": seed} for cc, seed in self.missing],
            "warnings": list(self.warnings),
            "notes": self.notes,
        }

    def write_files(self, folder: str | Path) -> None:
        """Write ``run.json`` and one Parquet file per frame that has rows to a folder, which is made if it is missing."""
        folder = made_folder(folder)
        folder.joinpath("run.json").write_text(json.dumps(self.to_dict(), allow_nan=False) + "\n")
        for name in (*FRAMES, "testbed"):
            rows = getattr(self, name)
            if rows.height:
                write_parquet(rows, folder / f"{name}.parquet")


@keywords
def run(
    scenario: str | Path,
    *,
    cc: str | Sequence[str] | None = None,
    seed: int | None = None,
    seeds: int | Sequence[int] | None = None,
    settings: Mapping[str, object] | None = None,
    text: str | None = None,
    pcap: str | Path | None = None,
    pcap_at: Sequence[str] = (),
    engine: str = "sim",
    threads: int = 1,
    command: str | None = None,
    progress: Callable[[str, int], Progress] = silent,
) -> RunResult:
    """Run one scenario under one or more algorithms and seeds.

    Parameters
    ----------
    scenario : path
        A scenario file; with `text`, only the name it goes by in messages.
    cc : str or sequence of str, optional
        Algorithms instead of the scenario's, each with its default parameters.
    seed : int, optional
        This seed alone instead of the scenario's.
    seeds : int or sequence of int, optional
        How many seeds, counted from 1, or which.
    settings : mapping, optional
        Values by key, such as ``{"topology.buffer": "250p"}``, on top of the file.
    text : str, optional
        The scenario itself (TOML) instead of a file.
    pcap : path, optional
        A folder for nanosecond pcap files of what hosts and ports saw; several runs get a folder in it each. See docs/how-to/wireshark.md.
    pcap_at : sequence of str, optional
        Hosts (``client``), ports (``switch->client``) and switches to write files of, with ``*`` for anything; the ports that the scenario's
        ``measure.packets`` names unless given, or where it names none every host and port.
    engine : str
        Whose TCP runs: ``sim``; real Linux TCP in virtual time, ``kernel`` (HZ=250) or ``kernel-hz1000`` (see docs/kernel.md); or the running
        kernel's in real time, ``testbed`` or, over HTTP with nginx, ``testbed-http`` (root; see docs/testbed.md).
    threads : int
        Threads for each run, whose results are the same for any number. A run that cannot be cut into parts takes one and says why.
    command : str, optional
        What to state as the command that does the same.
    progress : callable, optional
        Makes the progress display; see :mod:`fanin.process.progress`.

    Returns
    -------
    RunResult

    Raises
    ------
    fanin.ScenarioError
        When the scenario cannot be read, or something in it is unknown, unused, out of range or contradictory.
    fanin.AlgorithmError
        When there is no such algorithm, or when every one that was asked for fails as it runs. When only some do, the others are kept
        and :attr:`RunResult.failures` says which and why.

    Examples
    --------
    >>> import fanin
    >>> incast = '''
    ... [topology]
    ... senders = 4
    ... [[workload]]
    ... kind = "incast"
    ... bytes = "32KB"
    ... '''
    >>> result = fanin.run("incast.toml", text=incast, cc=["newreno", "dctcp"], seeds=2)
    >>> result.runs.select("cc", "seed", "complete").rows()
    [('newreno', 1, True), ('newreno', 2, True), ('dctcp', 1, True), ('dctcp', 2, True)]
    >>> result.messages.filter(cc="dctcp", seed=1)["bytes"].to_list()
    [32000, 32000, 32000, 32000]
    """
    document = Document(text, str(scenario)) if text is not None else Document.read(scenario)
    if seed is not None:
        if seeds is not None:
            raise ScenarioError("command line `--seed` and `--seeds`: give one of the two")
        chosen_seeds([seed])
    changes = tuple(changed(settings))
    algorithms = None if cc is None else chosen_algorithms(cc)
    variants = [
        Job(document, 0, name, changes, engine="sim" if engine in TESTBEDS else engine)
        for name in (algorithms if algorithms is not None else [None])
    ]
    # First: a kernel has names of its own for the C files that it was built with.
    work_of = _works(engine, threads)
    base = _native.Scenario.from_text(document.text, document.name, document.folder)
    for variant in variants:
        variant.checked()
    idle = (
        in_force(changes, lambda kept: [replace(v, settings=kept).checked().hash() for v in variants])
        if changes
        else []
    )
    own = [seed] if seed is not None else variants[0].checked().seeds()
    numbers = chosen_seeds(seeds) if seeds is not None else own

    in_real_time = engine in TESTBEDS
    variants_are = [_described(variant, numbers[0], engine, threads, pcap) for variant in variants]
    names = [one.name for one in variants_are]
    ticks = {one.hz for one in variants_are}
    work = [(name, s, replace(variant, seed=s)) for name, variant in zip(names, variants, strict=True) for s in numbers]
    done, failed = _all_of(work, work_of, pcap, tuple(pcap_at), progress, one_by_one=in_real_time)
    if not done:
        raise KeyboardInterrupt
    return RunResult(
        **{name: pl.concat([done[i][name] for i in sorted(done)]) for name in FRAMES},
        scenario=document.name,
        title=base.title(),
        scenario_hash=variants[0].checked().hash(),
        command=shown(command or f"fanin run {scenario}"),
        version=_native.VERSION,
        hz=ticks.pop() if len(ticks) == 1 else None,
        testbed=pl.concat([done[i]["testbed"] for i in sorted(done)]) if in_real_time else pl.DataFrame(),
        missing=[(name, s) for i, (name, s, _) in enumerate(work) if i not in done and name not in failed],
        failures=[Failure(name, sentence(name, error)) for name, error in failed.items()],
        warnings=[*idle, *_warnings([one.warnings for one in variants_are])],
    )


class _Described(NamedTuple):
    """What is known of an algorithm's runs before they run."""

    name: str
    hz: int | None
    warnings: list[RunWarning]


def _described(variant: Job, seed: int, engine: str, threads: int, pcap: str | Path | None) -> _Described:
    """Check that the engine can run it, and say what a reader should know."""
    plan = replace(variant, seed=seed).plan()
    if engine in TESTBEDS:
        from fanin.testbed.shims import beside

        inner = replace(beside(variant)[0], seed=seed)
        _native.kernel_check(inner.checked(), inner.plan())
    else:
        find_engine(engine).check(plan, variant.checked())
    hz = None if engine in TESTBEDS else plan.hz()
    return _Described(algorithms_of(plan), hz, [*warnings_of(plan), *_serial(plan, threads, engine, pcap)])


def _all_of(
    work: Sequence[tuple[str, int, Job]],
    work_of: Callable[[Job, Path | None, tuple[str, ...]], Callable[[Watch], Frames]],
    pcap: str | Path | None,
    pcap_at: tuple[str, ...],
    progress: Callable[[str, int], Progress],
    *,
    one_by_one: bool,
) -> tuple[dict[int, Frames], dict[str, BaseException]]:
    """Run everything: the frames of each run by its position, and why an algorithm failed. Once all have failed, the first error is raised."""
    done: dict[int, Frames] = {}
    failed: dict[str, BaseException] = {}
    algorithms = len({name for name, _, _ in work})

    def finished(number: int, outcome: Frames | BaseException) -> None:
        if isinstance(outcome, AlgorithmError | EngineError):
            failed.setdefault(work[number][0], outcome)
            if len(failed) == algorithms:
                raise all_failed(failed)
        elif isinstance(outcome, BaseException):
            raise outcome
        else:
            done[number] = outcome

    if pcap_at and pcap is None:
        raise ScenarioError("command line `--pcap-at`: it says where, and `--pcap DIR` into which folder; give both")
    captures = output_folder(pcap, "--pcap") if pcap is not None else nullcontext(None)
    with captures as scratch, progress("running", len(work)) as bar:
        folders = [None if scratch is None else _capture_folder(scratch, name, s, len(work)) for name, s, _ in work]
        jobs = [work_of(job, folder, pcap_at) for (_, _, job), folder in zip(work, folders, strict=True)]
        # In real time one run after another: two would take each other's CPU.
        Threads(1 if one_by_one else None).map(jobs, bar, finished)
        done = {i: made for i, made in done.items() if work[i][0] not in failed}
        for i, folder in enumerate(folders):
            if folder is not None and i not in done:
                shutil.rmtree(folder)
    return done, failed


def _works(engine: str, threads: int) -> Callable[[Job, Path | None, tuple[str, ...]], Callable[[Watch], Frames]]:
    """What makes of a job, a folder for its captures, and their places the work of an engine."""
    if engine not in (*ENGINES, *TESTBEDS):
        raise ScenarioError(f"the engine is {engine!r}; it must be one of {', '.join((*ENGINES, *TESTBEDS))}")
    if engine in TESTBEDS:
        from fanin.testbed.engine import TestbedJob
        from fanin.testbed.host import check

        check()
        http = engine == "testbed-http"
        return lambda job, folder, places: TestbedJob(job, folder, places, http).run
    find_engine(engine)  # raises when it is not there
    return lambda job, folder, places: (
        partial(job.run, threads=threads) if folder is None else partial(job.run, captures=Captures(folder, places))
    )


def _serial(plan: _native.Plan, threads: int, engine: str, pcap: str | Path | None) -> list[RunWarning]:
    """Why a run takes one thread though several were asked for, if it does."""
    if threads < 1:
        raise ScenarioError(f"command line `--threads`: {threads} is no number of threads; give 1 or more")
    if threads == 1:
        return []
    other = f"the engine is {engine}" if engine != "sim" else "captures are written as it goes" if pcap else None
    why = other or plan.why_serial(threads)
    return [RunWarning(f"it runs on one thread, not {threads}: {why}", "serial")] if why else []


def _warnings(of_variants: Sequence[Sequence[RunWarning]]) -> list[RunWarning]:
    """What is to be said of several algorithms on one network, each thing once."""
    # Beside an algorithm that heeds the marks, one that does not is no mistake.
    heeded = any(all(warning.kind != "marks-ignored" for warning in warnings) for warnings in of_variants)
    told = dict.fromkeys(warning for warnings in of_variants for warning in warnings)
    return [warning for warning in told if not (heeded and warning.kind == "marks-ignored")]


def chosen_algorithms(names: str | Sequence[str]) -> list[str]:
    """A list of algorithms as given, or a single one.

    Raises
    ------
    fanin.AlgorithmError
        When it names none, an empty one, one twice, or has something that is no name.

    Examples
    --------
    >>> chosen_algorithms(["cubic", " dctcp"]), chosen_algorithms("cubic")
    (['cubic', 'dctcp'], ['cubic'])
    """
    several = isinstance(names, Iterable) and not isinstance(names, str)
    listed: list[object] = list(names) if several else [names]
    for name in listed:
        if not isinstance(name, str):
            raise AlgorithmError(
                f"`cc` has {name!r}; it takes names of algorithms as text: `fanin list cc` shows all, and fanin.register(CLASS) gives a class "
                "its own"
            )
    stripped = [str(name).strip() for name in listed]
    if not stripped or "" in stripped:
        raise AlgorithmError("command line `--cc`: there is an empty name in the list; `fanin list cc` shows all names")
    if len(set(stripped)) < len(stripped):
        twice = next(name for name in stripped if stripped.count(name) > 1)
        raise AlgorithmError(f"command line `--cc`: `{twice}` is named twice")
    return stripped


def sentence(cc: str, error: BaseException) -> str:
    """Why an algorithm failed, without its name in front."""
    return str(error).removeprefix(f"`{cc}`: ")


def all_failed(failed: Mapping[str, BaseException]) -> BaseException:
    """What to raise when nothing is left: of one algorithm its own error, of several one that says each."""
    if len(failed) == 1:
        return next(iter(failed.values()))
    return AlgorithmError(
        "no algorithm could be run: " + "; ".join(f"`{cc}`: {sentence(cc, e)}" for cc, e in failed.items())
    )


def chosen_seeds(seeds: int | Sequence[int]) -> list[int]:
    """Seeds from a count or a list.

    Raises
    ------
    fanin.ScenarioError
        When there are none, too many, or one twice.

    Examples
    --------
    >>> chosen_seeds(3)
    [1, 2, 3]
    """
    if isinstance(seeds, bool | str) or not isinstance(seeds, int | Iterable):
        raise ScenarioError(f"the seeds are {seeds!r}; they must be a number of seeds, or a list of whole numbers")
    if isinstance(seeds, int):
        if not 1 <= seeds <= MAX_SEEDS:
            raise ScenarioError(f"command line `--seeds {seeds}`: the number of seeds must be from 1 to {MAX_SEEDS}")
        return list(range(1, seeds + 1))
    numbers = list(seeds)
    whole = all(isinstance(s, int) and not isinstance(s, bool) for s in numbers)
    if not numbers or not whole or len(set(numbers)) < len(numbers) or not all(0 <= s < 2**63 for s in numbers):
        raise ScenarioError(f"the seeds {numbers} must be different whole numbers from 0 to 2^63 - 1, at least one")
    return numbers


def changed(settings: Mapping[str, object] | None) -> list[tuple[str, str]]:
    """Settings by key as they would be written in a scenario.

    Raises
    ------
    fanin.ScenarioError
        When one would change no number.
    """
    for key, value in (settings or {}).items():
        if key == "title":
            raise ScenarioError(
                f"command line `--set {key}={value}`: a title changes no number; write it into the file"
            )
    return [(key, toml(value)) for key, value in (settings or {}).items()]


def in_force(
    changes: Sequence[tuple[str, str]],
    hash_of: Callable[[tuple[tuple[str, str], ...]], object],
) -> list[RunWarning]:
    """A warning for each change to the value that is in force without it; `hash_of` says what decides the results under some changes.

    It is no error, so that a loop over values may pass over the file's own.
    """
    told = []
    whole = hash_of(tuple(changes))
    for key, value in changes:
        if key.startswith(("measure.", "run.seeds")):
            continue  # they change what is looked at, and how often
        try:
            same = hash_of(tuple(change for change in changes if change[0] != key)) == whole
        except (ScenarioError, AlgorithmError):
            continue  # without it, another change makes no sense
        if same:
            told.append(
                RunWarning(
                    f"command line `--set {key}={value}`: it changes nothing, that is the value without it", "in-force"
                )
            )
    return told


def owned(changes: Sequence[tuple[str, str]], algorithms: Sequence[str]) -> None:
    """Raise where a parameter is changed that none of some algorithms has: whatever its value, it would change nothing.

    Raises
    ------
    fanin.ScenarioError
    """
    from fanin.registries import entries

    compared = {part for name in algorithms for part in name.split("+")}
    for key, value in changes:
        if not key.startswith("cc."):
            continue
        parameter = key.removeprefix("cc.")
        owners = [e.name for e in entries("cc") if any(k["name"] == parameter for k in e.details["keys"])]
        if owners and not compared & set(owners):
            have = "has" if len(owners) == 1 else "have"
            raise ScenarioError(
                f"command line `--set {key}={value}`: it changes nothing, since none of the algorithms compared has that parameter "
                f"({', '.join(owners[:4])} {have} it)"
            )


def toml(value: object) -> str:
    """A Python value as it would be written in a scenario."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _capture_folder(parent: Path, cc: str, seed: int, runs: int) -> Path:
    """Where a run's captures go: the folder itself if it is the only run."""
    if runs == 1:
        return parent
    folder = parent / f"{file_name(cc)}-{seed}"
    folder.mkdir(exist_ok=True)
    return folder
