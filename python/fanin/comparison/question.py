"""What is asked of a comparison: checked before the capture is read, and unchanged from then on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from fanin import _native
from fanin.comparison.candidates import listed
from fanin.comparison.variations import racks
from fanin.disk.files import read_text, shown
from fanin.errors import ScenarioError, suggest
from fanin.runs.engines import engine
from fanin.simulation import changed, chosen_seeds, toml
from fanin.statistics.ranking import STATISTICS, RankBy, RankOf, known

if TYPE_CHECKING:
    from fanin._native import Rack
    from fanin.decision.judge import Goal

CONFIRMING = "kernel"
"""The engine that confirms."""


@dataclass(frozen=True, slots=True)
class GivenRack:
    """A rack file.

    Attributes
    ----------
    text, path : str
        As read, and its name in messages.
    folder : Path
        Where relative paths in it start.
    """

    text: str
    path: str
    folder: Path

    @classmethod
    def read(cls, rack: str | Path) -> GivenRack:
        """The file; what is wrong with it is said as of any scenario."""
        try:
            text = read_text(Path(rack))
        except (OSError, UnicodeDecodeError):
            _native.Rack.from_file(rack)  # raises, with what to do next
            raise
        return cls(text, shown(str(rack)), Path(rack).parent)

    def under(self, changes: Sequence[tuple[str, str]]) -> Rack:
        """The rack with some values changed; raises where it cannot be."""
        rack = _native.Rack.from_text(self.text, self.path, self.folder, list(changes))
        rack.marks()
        return rack

    def as_it_is(self) -> Rack:
        """The rack that the capture was taken on: a change may say what is to become of it."""
        return _native.Rack.from_text(self.text, self.path, self.folder)


@dataclass(frozen=True)
class Question:
    """The parameters of :func:`fanin.compare` that decide its numbers; it raises where they make no sense, before anything takes long.

    Its attributes are as :func:`fanin.compare`'s.
    """

    capture: str | Path
    rack: str | Path | None
    cc: str | Sequence[str] | None
    seeds: int | Sequence[int]
    rank_by: RankBy
    goal: Goal | None
    baseline: str | None
    rank_of: RankOf | None
    independent: bool
    trace_seed: int | None
    aggregator: str | None
    gap: str | None
    settings: Mapping[str, object] | None
    vary: Mapping[str, Sequence[str]]
    pcap: str | Path | None
    pcap_at: Sequence[str]
    engine: str
    confirm: int
    spans: str | Path | None

    def __post_init__(self) -> None:
        if self.rank_by not in STATISTICS:
            raise ScenarioError(
                f"there is no statistic `{self.rank_by}` to rank by; {suggest(self.rank_by, STATISTICS)}"
            )
        known(self.rank_of)
        if self.traced not in self.numbers:
            raise ScenarioError(
                f"command line `--trace-seed {self.traced}`: only seeds that are run can be traced: {listed(self.numbers)}"
            )
        if self.pcap_at and self.pcap is None:
            raise ScenarioError(
                "command line `--pcap-at`: it says where, and `--pcap DIR` into which folder; give both"
            )
        if self.spans is not None and self.independent:
            raise ScenarioError(
                "command line `--spans`: it says which answers a request waits for, and `--independent` that no connection waits for another; give one"
            )
        if self.file is not None:
            self.file.under(self.changes)
            self.check_others(self.file)
        if self.confirm < 0:
            raise ScenarioError(
                f"command line `--confirm {self.confirm}`: give how many of the best to confirm, or 0 for none"
            )
        if self.confirm and self.engine != "sim":
            raise ScenarioError(
                f"command line `--confirm {self.confirm}`: it confirms what the simulation found; with --engine {self.engine} leave it out"
            )
        for needed in {self.engine, CONFIRMING if self.confirm else "sim"}:
            engine(needed)  # raises when it is not built

    @cached_property
    def numbers(self) -> list[int]:
        """The seeds, one by one."""
        return chosen_seeds(self.seeds)

    @property
    def traced(self) -> int:
        """The seed whose queue and windows are kept."""
        return self.numbers[0] if self.trace_seed is None else self.trace_seed

    @cached_property
    def changes(self) -> list[tuple[str, str]]:
        """`settings` as TOML writes them."""
        return changed(self.settings)

    @cached_property
    def others(self) -> list[dict[str, str]]:
        """Every combination of the values of `vary`, by key."""
        return racks({_rack_key(key): values for key, values in self.vary.items()}) if self.vary else []

    @cached_property
    def file(self) -> GivenRack | None:
        """The rack file."""
        return None if self.rack is None else GivenRack.read(self.rack)

    def check_others(self, rack: GivenRack) -> None:
        """Raise where one of the other racks cannot be, in the words that were typed."""
        for other in self.others:
            try:
                rack.under([*self.changes, *((key, toml(value)) for key, value in other.items())])
            except ScenarioError as error:
                if self.changes:
                    raise
                raise ScenarioError(_as_varied(str(error), self.vary)) from None

    @property
    def fixed(self) -> list[str]:
        """The keys that were set, and are not tried at other values."""
        return [key for key, _ in self.changes] + [_rack_key(key) for key in self.vary]

    @property
    def everything(self) -> bool:
        """No algorithm was named."""
        return self.cc is None or self.cc == "all"


def _rack_key(key: str) -> str:
    """``buffer`` is short for ``rack.buffer``."""
    return key if "." in key else f"rack.{key}"


def _as_varied(message: str, typed: Iterable[str]) -> str:
    """What is said of a changed value, with the option and the key as they were typed."""
    message = message.replace("command line `--set ", "command line `--vary ")
    for key in typed:
        message = message.replace(f"`--vary {_rack_key(key)}=", f"`--vary {key}=")
    return message
