"""Which algorithms a comparison runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from fanin import _native
from fanin.capture.restarts import windows_to_keep
from fanin.decision.judge import Case, exposed, on_average
from fanin.errors import AlgorithmError, FaninError, MissingAlgorithmError, ScenarioError
from fanin.registries import entries, stand_alone_algorithms
from fanin.runs.engines import engine
from fanin.runs.replay import rack_of
from fanin.settings.candidates import Candidate, Space, fitting
from fanin.settings.declared import BY_KEY, Cost
from fanin.settings.deployable import around, deployment
from fanin.simulation import chosen_algorithms
from fanin.words.verdict import presumed

if TYPE_CHECKING:
    from fanin._native import Rack
    from fanin.decision import Outcome
    from fanin.decision.judge import Goal
    from fanin.runs.replay import ReplayJob


PAIRED = 2
"""So many other TCPs are tried with a host setting."""


@dataclass(frozen=True, slots=True)
class Unmarked:
    """Algorithms that need marks, on a rack that makes none.

    Attributes
    ----------
    file : str
        The rack file.
    names : tuple of str
        The algorithms.
    become : {"named", "left out", "searched"}
        ``named``: they were asked for, and are run without marks; ``searched``: they are run with a switch that is told to mark (`fanin advise`).
    """

    file: str
    names: tuple[str, ...]
    become: Literal["named", "left out", "searched"]

    def sentence(self) -> str:
        """What becomes of them.

        Examples
        --------
        >>> Unmarked("rack.toml", ("dctcp",), "searched").sentence()
        'rack.toml has no `rack.mark`: dctcp was tried only with a K that your switches would have to be given'
        """
        names = listed(self.names)
        if self.become == "named":
            return f"{self.file} has no `rack.mark`, so the switch marks nothing and {names} cannot act on marks"
        if self.become == "left out":
            return f"left out, since {self.file} has no `rack.mark` and they need a switch that marks: {names}"
        were = "was" if len(self.names) == 1 else "were"
        return f"{self.file} has no `rack.mark`: {names} {were} tried only with a K that your switches would have to be given"


@dataclass(frozen=True, slots=True)
class Choice:
    """What is run, and what of it can be the answer.

    Attributes
    ----------
    names : list of str
        What is run.
    candidates : list of str
        What can be the answer: what hosts can run, or what was asked for by name.
    baseline : str or None
        What every other is compared with.
    notes : list of str
        Remarks on the choice.
    settings : dict of str to Candidate
        What of it is not an algorithm as it is, but the current one with a host's setting, by name.
    unmarked : Unmarked or None
        What needs marks on a rack that makes none.
    """

    names: list[str]
    candidates: list[str]
    baseline: str | None
    notes: list[str]
    settings: dict[str, Candidate] = field(default_factory=dict)
    unmarked: Unmarked | None = None

    @property
    def remarks(self) -> list[str]:
        """All that is to be said of the choice."""
        return [*self.notes, *([self.unmarked.sentence()] if self.unmarked is not None else [])]

    def way(self, name: str) -> Candidate:
        """How a name is run."""
        return self.settings.get(name) or Candidate(name)

    def only(self, names: Collection[str]) -> Choice:
        """These of it."""
        kept = [[name for name in each if name in names] for each in (self.names, self.candidates)]
        return replace(self, names=kept[0], candidates=kept[1])

    def ways(self) -> dict[str, Candidate]:
        """How everything that is run is run, by name."""
        return {name: self.way(name) for name in self.names}


def with_host_settings(choice: Choice, base: ReplayJob) -> Choice:
    """The same and the current algorithm with each setting of a host: what needs neither a switch nor another TCP wins most."""
    now = choice.baseline
    if now is None or now not in choice.candidates or deployment(now) is None:
        return choice
    turned = space_of(base, [now], switch=False).neighbours(Candidate(now))
    return with_candidates(choice, [c for c in turned if c.cost(now)[0] is Cost.HOST_SETTING and _can_be(base, c)])


def space_of(base: ReplayJob, algorithms: Sequence[str], *, switch: bool) -> Space:
    """What can be set on the rack of a replay, of which a floor of the timer leaves ordinary requests as they are."""
    floor_ms, stack = rto_floors_ms(base), _stack_of(base)
    today = floor_ms(Candidate(""))
    floors = {
        floor: floor_ms(Candidate("", ((key, floor),))) for ((key, floor),) in BY_KEY["stack.min_rto"].changes({})
    }
    lower = [ms for ms in floors.values() if ms < today and stack("cwnd_validation") == "linux"]
    kept = windows_to_keep(base.traffic.replay, lower, today, int(stack("mss")), float(stack("initial_window")))
    windows = {floor: str(kept[ms]) for floor, ms in floors.items() if ms in kept}
    return Space(algorithms, table_of(base), switch=switch, windows=windows)


def paired(
    choice: Choice,
    base: ReplayJob,
    outcomes: Sequence[Outcome],
    waits: Collection[str],
    runs: int,
    goal: Goal | None = None,
) -> list[Candidate]:
    """The best other TCPs that wait for their retransmission timer, or may, each with the host setting that does most for the current one.

    A TCP that keeps the queue short still loses the last packet of an answer now and then, and a setting alone leaves the queue as it is: neither
    shows what both are worth. One may wait where so few requests are replayed that timeouts which none of them has could make its mean longer by
    more than a twentieth.

    Parameters
    ----------
    choice : Choice
        What has been run.
    base : ReplayJob
        The replay, for whether it takes the setting.
    outcomes : sequence of Outcome
        What the runs gave so far.
    waits : collection of str
        The candidates that had a retransmission timeout in some run.
    runs : int
        How many there are to be of each.
    goal : str, optional
        One statistic in place of body and tail.
    """
    now = next((outcome for outcome in outcomes if outcome.name == choice.baseline), None)
    if now is None:
        return []
    by = Case(now, goal, runs=runs).by
    average = {outcome.name: on_average(outcome, by) for outcome in outcomes}
    others = sorted((o for o in outcomes if o is not now), key=lambda o: (average[o.name], o.cost, o.name))
    # Alone, as a comparison has it: what a search puts together would leave out the pairs that are compared without it.
    single = [o for o in others if o.cost[0] == Cost.HOST_SETTING and choice.way(o.name).turned == 1]
    gain = [o for o in single if average[o.name] < average[now.name]]
    waiting = [
        choice.way(o.name) for o in others if o.name not in choice.settings and (o.name in waits or exposed(o, runs))
    ]
    setting = choice.way(gain[0].name).settings if gain else ()
    pairs = [Candidate(other.cc, fitting(setting, other.cc)) for other in waiting[:PAIRED]] if setting else []
    return [pair for pair in pairs if _can_be(base, pair)]


def with_candidates(choice: Choice, more: Sequence[Candidate]) -> Choice:
    """The same and these, as far as they are not there."""
    added = {c.label: c for c in more if c.label not in choice.names}
    return replace(
        choice,
        names=[*choice.names, *added],
        candidates=[*choice.candidates, *added],
        settings={**choice.settings, **{label: c for label, c in added.items() if c.settings}},
    )


def table_of(base: ReplayJob) -> dict[str, Any]:
    """The parsed rack file with the settings on top of it."""
    table = base.rack.table()
    for key, value in base.settings:
        section, _, name = key.partition(".")
        table.setdefault(section, {})[name] = value
    return table


def rto_floors_ms(base: ReplayJob) -> Callable[[Candidate], float]:
    """How long a candidate's hosts wait at least for their retransmission timer, ms: by its settings, the rack's, or the profile's.

    Examples
    --------
    >>> from fanin.runs.job import Document
    >>> from fanin.runs.replay import ReplayJob, Traffic
    >>> floor_ms = rto_floors_ms(ReplayJob(Document.of_rack("examples/rack.toml"), Traffic("{}"), "", 0))
    >>> [floor_ms(way) for way in (Candidate("vegas"), Candidate("vegas", (("stack.min_rto", "5ms"),)))]
    [200.0, 5.0]
    """
    today = _stack_of(base)("min_rto")

    def of(candidate: Candidate) -> float:
        said = dict(candidate.settings).get("stack.min_rto", today)
        return 1e3 * _native.quantity("time", said.strip('"'), "stack.min_rto")

    return of


def _stack_of(base: ReplayJob) -> Callable[[str], str]:
    """The values of a rack's stack by key: the file's, or its profile's."""
    stack = table_of(base).get("stack", {})
    profile = next(entry for entry in entries("stack") if entry.name == stack.get("profile", "linux"))
    defaults = {key["name"]: key["default"] for key in profile.details["keys"]}
    return lambda key: str(stack.get(key, defaults[key])).strip('"')


def _can_be(base: ReplayJob, candidate: Candidate) -> bool:
    """The engine and the rack take the setting."""
    try:
        replace(base, cc=candidate.cc, seed=1, settings=(*base.settings, *candidate.settings)).check()
    except FaninError:
        return False
    return True


def chosen(asked: str | Sequence[str] | None, baseline: str | None, base: ReplayJob, seen: str | None = None) -> Choice:
    """What to compare: what hosts can run, everything there is (``all``), or what is named; of the first two what the engine has.

    `seen` is what the capture shows of the current one.
    """
    rack = rack_of(base.rack, base.settings)
    choice = _chosen(asked, baseline, base, rack, seen)
    without = [] if base.engine == "sim" else [name for name in choice.names if not has(base, name)]
    named = asked is not None and not (asked == "all" or list(asked) == ["all"])
    if not without or named or choice.baseline in without:
        return choice
    kept = [name for name in choice.names if name not in without]
    note = f"left out, since {engine(base.engine).label} has no form of them: {listed(without)}"
    candidates = [name for name in choice.candidates if name in kept]
    return replace(choice, names=kept, candidates=candidates, notes=[*choice.notes, note])


def deployable(base: ReplayJob, today: str | None) -> list[str]:
    """What hosts can run, in the order of the registry: what stands alone, then what stands in front of the current one without a setting of its own."""
    alone = [name for name in stand_alone_algorithms() if deployment(name) is not None]
    return [*alone, *(name for name in (around(today) if today else []) if _has_its_settings(base, name))]


def _has_its_settings(base: ReplayJob, cc: str) -> bool:
    try:
        rack_of(base.rack, base.settings).accept(cc)
    except (ScenarioError, AlgorithmError):
        return False
    return True


def has(base: ReplayJob, cc: str) -> bool:
    """Whether the engine of a job has an algorithm at all."""
    try:
        replace(base, cc=cc, seed=1).check()
    except MissingAlgorithmError:
        return False
    except (ScenarioError, AlgorithmError):
        return True  # said where it is run
    return True


def _chosen(
    asked: str | Sequence[str] | None, baseline: str | None, base: ReplayJob, rack: Rack, seen: str | None
) -> Choice:
    marks = rack.marks()
    everything = asked == "all" or (not isinstance(asked, str) and asked is not None and list(asked) == ["all"])
    if baseline is not None:
        baseline = chosen_algorithms(baseline)[0]
    if asked is not None and not everything:
        names = chosen_algorithms(asked)
        candidates = list(names)
    else:
        alone = stand_alone_algorithms()
        candidates = deployable(base, baseline or (seen if seen in alone else presumed(alone)))
        names = [*alone, *(name for name in candidates if name not in alone)] if everything else candidates
    if baseline is not None:
        names = names if baseline in names else [baseline, *names]
        candidates = candidates if baseline in candidates else [baseline, *candidates]
    usual = baseline or (seen if seen in names else presumed(names))
    blind = [name for name in names if _native.needs_ecn(name) and not marks and name != usual]
    if not blind:
        return Choice(names, candidates, usual, [])
    if asked is not None and not everything:
        return Choice(names, candidates, usual, [], unmarked=Unmarked(rack.file, tuple(blind), "named"))
    kept = [name for name in names if name not in blind]
    unmarked = Unmarked(rack.file, tuple(blind), "left out")
    return Choice(kept, [name for name in candidates if name in kept], usual, [], unmarked=unmarked)


def quickack_note(rack: Rack, names: Sequence[str]) -> list[str]:
    """Which of the algorithms were simulated with a receiver that acknowledges every packet."""

    def prompted(name: str) -> bool:
        try:
            return rack.acknowledges_every_packet(name)
        except FaninError:
            return False  # it cannot be run: why is said of all that cannot, when they are

    prompt = [name for name in names if prompted(name)]
    if not prompt:
        return []
    verbs = "lives on round-trip times and was" if len(prompt) == 1 else "live on round-trip times and were"
    them = "it" if len(prompt) == 1 else "them"
    return [
        f"{listed(prompt)} {verbs} simulated with receivers that acknowledge every packet, as Linux does "
        f"after `ip route change ... quickack 1`; `stack.route_quickack = false` in the rack shows {them} behind delayed ACKs"
    ]


def listed(things: Sequence[object]) -> str:
    """Things in a sentence."""
    return ", ".join(map(str, things))
