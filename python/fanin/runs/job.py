"""What is simulated, as plain data."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fanin import _native
from fanin.confined import admitted, apart
from fanin.disk.files import read_text, shown
from fanin.process.progress import may_be_left
from fanin.runs.engines import TESTBED, Captures, engine, product_of, run_frames
from fanin.runs.tables import FRAMES, Frames, tables

if TYPE_CHECKING:
    from fanin._native import Plan, Scenario, Watch


class RunWarning(str):
    """A sentence about a scenario that is allowed and probably not meant, and which one it is.

    Attributes
    ----------
    kind : str
        A stable name, such as ``no-marks``.
    cc : str or None
        The algorithm that it is about, if it is about one.

    Examples
    --------
    >>> warning = RunWarning("`dctcp` needs switches that mark", "no-marks", "dctcp")
    >>> warning, warning.kind
    ('`dctcp` needs switches that mark', 'no-marks')
    """

    __slots__ = ("cc", "kind")
    kind: str
    cc: str | None

    def __new__(cls, message: str, kind: str, cc: str | None = None) -> RunWarning:
        """Make one of the engine's parts."""
        warning = super().__new__(cls, message)
        warning.kind, warning.cc = kind, cc
        return warning

    def __getnewargs__(self) -> tuple[str, str, str | None]:  # type: ignore[override]
        return str(self), self.kind, self.cc


def kind_of(warning: str) -> str | None:
    """Which sentence it is; None of one without a name."""
    return warning.kind if isinstance(warning, RunWarning) else None


def warnings_of(plan: Plan) -> list[RunWarning]:
    """What the engine warns of in a plan."""
    return [RunWarning(message, kind, cc) for kind, cc, message in plan.warnings()]


LARGE_BYTES = 65_536
"""Files above this size are sent to a cluster once, not with each job."""

SHIPPED: dict[str, bytes] = {}
"""Large files that were sent to this process, by digest."""


@dataclass(frozen=True, slots=True)
class Document:
    """A scenario or rack file as text, so that it can travel.

    Attributes
    ----------
    text : str
        The TOML.
    name : str
        The file's name in messages and commands.
    folder : str
        Where relative paths in it start.
    files : tuple of (str, bytes or str)
        Files that it names by a relative path, where it travels to a machine that does not have them; a large one as its digest in
        :data:`SHIPPED`.
    """

    text: str
    name: str
    folder: str = ""
    files: tuple[tuple[str, bytes | str], ...] = ()

    @classmethod
    def read(cls, file: str | Path) -> Document:
        """A file's text.

        Raises
        ------
        fanin.ScenarioError
            When it cannot be read or is not TOML.
        """
        document = cls._of(Path(file), _native.Scenario.from_file)
        _native.Scenario.from_text(document.text, document.name, document.folder)
        return document

    @classmethod
    def of_rack(cls, file: str | Path) -> Document:
        """A rack file's text.

        Raises
        ------
        fanin.ScenarioError
            When it cannot be read or is no rack.
        """
        document = cls._of(Path(file), _native.Rack.from_file)
        _native.Rack.from_text(document.text, document.name, document.folder)
        return document

    @classmethod
    def _of(cls, path: Path, refused: Callable[[Path], object]) -> Document:
        """Read a file; where that fails, the engine says what is wrong with it."""
        try:
            # Once, and here: a pipe has its text once.
            text = read_text(path)
        except (OSError, UnicodeDecodeError):
            refused(path)
            raise
        if path.is_file():
            refused(path)
        return cls(text, shown(path), str(path.parent))

    def table(self) -> dict[str, Any]:
        """The parsed TOML."""
        return tomllib.loads(self.text)

    def with_files(self) -> Document:
        """The same with the files it names, for another machine."""
        if self.files:
            return self
        folder = Path(self.folder)
        named = sorted(set(_relative_files(self.table(), folder)))
        return Document(self.text, self.name, "", tuple((name, (folder / name).read_bytes()) for name in named))

    def shipped(self, taken: dict[str, bytes]) -> Document:
        """The same for another machine, with large files replaced by their digests and put into `taken`."""
        files: list[tuple[str, bytes | str]] = []
        for name, content in self.with_files().files:
            if isinstance(content, bytes) and len(content) > LARGE_BYTES:
                digest = hashlib.sha256(content).hexdigest()
                taken[digest] = content
                files.append((name, digest))
            else:
                files.append((name, content))
        return Document(self.text, self.name, "", tuple(files))

    def place(self) -> str:
        """The folder that relative paths start from; files that travelled with the text are unpacked, once per process."""
        return _unpacked(self.files) if self.files else self.folder


@lru_cache(maxsize=16)
def _unpacked(files: tuple[tuple[str, bytes | str], ...]) -> str:
    import atexit
    import shutil
    import tempfile

    top = Path(tempfile.mkdtemp(prefix="fanin-files-"))
    atexit.register(shutil.rmtree, top, ignore_errors=True)
    # As deep as the names climb, so that `../data/x.csv` stays below `top`.
    climb = max((Path(name).parts.count("..") for name, _ in files), default=0)
    folder = top.joinpath(*["down"] * climb)
    for name, content in files:
        target = Path(os.path.normpath(folder / name))
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(SHIPPED[content] if isinstance(content, str) else content)
    folder.mkdir(parents=True, exist_ok=True)
    return str(folder)


def _relative_files(thing: Any, folder: Path) -> list[str]:
    """Files that a scenario names by a relative path."""
    if isinstance(thing, dict):
        return [file for value in thing.values() for file in _relative_files(value, folder)]
    if isinstance(thing, list):
        return [file for value in thing for file in _relative_files(value, folder)]
    if isinstance(thing, str) and ("/" in thing or thing.endswith((".csv", ".json"))):
        return [thing] if not Path(thing).is_absolute() and (folder / thing).is_file() else []
    return []


Settings = tuple[tuple[str, str], ...]
"""Values by key on top of a scenario, as ``--set`` takes them."""


@dataclass(frozen=True, slots=True)
class Job:
    r"""One simulation of a scenario.

    Attributes
    ----------
    scenario : Document
        What is run.
    seed : int
        With which seed.
    cc : str or None
        An algorithm instead of the scenario's.
    settings : tuple of (str, str)
        Values by key on top.
    frames : tuple of str
        Which frames are kept.
    engine : str
        Whose TCP runs: one of :data:`fanin.runs.engines.ENGINES`.

    Examples
    --------
    >>> text = '[topology]\n[[workload]]\nkind = "incast"\nbytes = "64KB"'
    >>> job = Job(Document(text, "incast.toml"), seed=1, cc="dctcp", frames=("runs",))
    >>> job.run()["runs"]["complete"].to_list()
    [True]
    >>> job.key() == Job(Document(f"# the same\n{text}", "other.toml"), seed=1, cc="dctcp", frames=("runs",)).key()
    True
    """

    scenario: Document
    seed: int
    cc: str | None = None
    settings: Settings = ()
    frames: tuple[str, ...] = FRAMES
    engine: str = "sim"

    def checked(self) -> Scenario:
        """The scenario with its changes; errors are those of the engine."""
        return _scenario(self.scenario, self.cc, self.settings)

    def plan(self) -> Plan:
        """Everything resolved for the seed."""
        return self.checked().plan(self.seed)

    def key(self) -> str:
        """Names the results: equal keys, equal bytes."""
        return key_of(self.plan().identity(), product_of(self.engine, sorted(self.frames)))

    def written(self) -> str:
        """Names what was written: the tree without its comments, the files it names, every change, the seed.

        Found without the engine, so faster than :meth:`key`; two ways to write one simulation have two names.
        """
        on = "" if self.engine == "sim" else f"-{engine(self.engine).identity()}"
        return _digest_of_text(self.scenario, self.cc, self.settings) + f"-{self.seed}{on}"

    @apart
    def run(self, watch: Watch | None = None, captures: Captures | None = None, threads: int = 1) -> Frames:
        """Run on this thread, or a simulation on several with the same results; other threads go on meanwhile."""
        if self.engine == TESTBED:
            from fanin.testbed.engine import TestbedJob

            # What stands beside the kernel there is taken out of the algorithm's name before a plan is made.
            made = TestbedJob(self).run(watch)
            return {name: frame for name, frame in made.items() if name in self.frames}
        plan, on = self.plan(), engine(self.engine)
        cc = algorithms_of(plan)
        if threads > 1 and self.engine == "sim" and captures is None:
            ready = admitted(plan)
            with may_be_left():
                ran = ready.run(watch, threads)
            return tables(ran, plan, cc, self.seed, self.frames)
        return run_frames(on, plan, cc, self.seed, watch, wanted=self.frames, captures=captures)

    def command(self) -> str:
        """The command that does the same."""
        words = ["fanin", "run", self.scenario.name]
        if self.cc is not None:
            words += ["--cc", self.cc]
        for key, value in self.settings:
            words += ["--set", f"{key}={value}"]
        if self.engine != "sim":
            words += ["--engine", self.engine]
        return shlex.join([*words, "--seed", str(self.seed)])


def algorithms_of(plan: Plan) -> str:
    """The algorithms of a plan as one name: by comma where they are several."""
    return ", ".join(dict.fromkeys(plan.algorithms))


@lru_cache(maxsize=64)
def _scenario(document: Document, cc: str | None, settings: Settings) -> Scenario:
    return _native.Scenario.from_text(document.text, document.name, document.place()).changed(cc, None, list(settings))


@lru_cache(maxsize=64)
def _digest_of_text(document: Document, cc: str | None, settings: Settings) -> str:
    said = json.dumps([document.table(), cc, sorted(settings)], sort_keys=True, default=str)
    digest = hashlib.sha256(said.encode())
    for _, content in document.with_files().files:
        if isinstance(content, bytes):
            digest.update(hashlib.sha256(content).digest())
    return digest.hexdigest()[:32]


def key_of(identity: str, product: object) -> str:
    """Names what an engine makes of a plan; `product` says which part of it is kept, and how."""
    said = json.dumps([engine_digest(), identity, product], sort_keys=True)
    return hashlib.sha256(said.encode()).hexdigest()[:32]


@cache
def engine_digest() -> str:
    """Names the engine that is loaded, and how its results become frames: a change of either may change any number."""
    from fanin.runs import engines, summary, tables

    digest = hashlib.sha256(Path(str(_native.__file__)).read_bytes())
    for module in (tables, summary, engines):
        digest.update(Path(str(module.__file__)).read_bytes())
    return digest.hexdigest()[:16]
