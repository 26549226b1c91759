"""The round-trip law: run a scenario, capture it at a host or port, and replay the capture on the same rack under the same TCP.

python tests/python/round_trip.py 200        # as many random scenarios; one line each, and a summary
python tests/python/round_trip.py 60-80      # those with these numbers
python tests/python/round_trip.py promises 5 # every pair of five TCPs in as many scenarios: is the promised gain the one that is got?
"""

from __future__ import annotations

import itertools
import math
import random
import struct
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import fanin
import polars as pl
from fanin.capture import closing
from fanin.comparison import doubts

ALGORITHMS = (
    "reno",
    "newreno",
    "cubic",
    "bic",
    "dctcp",
    "d2tcp",
    "dcvegas",
    "vegas",
    "bbr",
    "swift",
    "trim",
    "gss+newreno",
)
"""One of each family at least: loss, marks, delay, rate, deadlines, trains, timers."""

FIVE = ("reno", "cubic", "dctcp", "vegas", "bbr")
"""Between these a replay's promise is compared with what is got."""

SEEDS = 5

MORE_SEEDS = 20
"""What breaks the law over :data:`SEEDS` is judged again over so many: one run more lies outside of what five differ by more often than not
where single timeouts decide."""


@dataclass(frozen=True, slots=True)
class Case:
    """One scenario, and where it is captured."""

    number: int
    rack: str
    workload: str
    stack: str
    cc: str
    place: str

    @property
    def scenario(self) -> str:
        lines = [
            "[topology]",
            'kind = "star"',
            self.rack,
            "[stack]",
            f'profile = "{self.stack}"',
            'nagle = "off"',
            "[[workload]]",
            self.workload,
            "[run]",
            'duration = "100s"',
            "",
        ]
        return "\n".join(lines)

    @property
    def rack_file(self) -> str:
        """The same rack for a replay. The capture has the jitter of the run in it."""
        shared = "\n".join(line for line in self.rack.splitlines() if not line.startswith("senders"))
        return f'[rack]\n{shared}\n[stack]\nprofile = "{self.stack}"\n[replay]\njitter = "2us"\n'


def case(number: int) -> Case:
    """A random rack, workload, endpoint, algorithm and vantage point; the same for the same number."""
    rng = random.Random(number)
    senders = rng.randint(2, 32)
    rate = rng.choice((1, 1, 10))
    rack = (
        f'senders = {senders}\nrate = "{rate}Gbps"\ndelay = "{rng.choice((10, 25, 50, 100))}us"\nbuffer = "{rng.choice((40, 100, 200, 400))}p"\n'
        f'mark = "{rng.choice((20, 30))}p"\n'
    )
    size = rng.choice((2, 8, 16, 32, 64, 128))
    jitter, gap = rng.choice((5, 20, 200)), rng.choice((0.5, 2, 5, 20))
    rounds = f'gap = "{gap}ms"\njitter = "{jitter}us"'
    incast = f'kind = "incast"\nbytes = "{size}KB"\nrounds = 20\nrequest = "100B"\n{rounds}'
    pages = f'kind = "http_on_off"\nrequest = "100B"\nclosed_loop = true\ngap = {{ exponential = "{gap}ms" }}'
    search = f'kind = "web_search"\ntotal = "{size * senders}KB"\nqueries = 20\njitter = "{jitter}us"'
    workload = rng.choice(
        (
            incast,
            f"{incast}\nbarrier = false",
            f'{incast}\nopen = "before"',
            f'{search}\ngap = "{gap}ms"',
            f'{search}\ninterval = "{20 * gap}ms"',
            f'kind = "mapreduce"\nunit = "{size}KB"\nrounds = 8\njitter = "{jitter}us"',
            f"{pages}\nresponses = 40",
            f"{pages}\nresponses = 20\nnew_connection = true",
        )
    )
    return Case(
        number,
        rack,
        workload,
        rng.choice(("linux", "linux", "rfc")),
        rng.choice(ALGORITHMS),
        rng.choice(("client", "servers", "switch")),
    )


@dataclass(slots=True)
class Verdict:
    """How far the replay is from the run."""

    seeds: int
    """Over how many seeds."""

    ratios: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Replay over run, and the factor that is allowed: 10 % at the median and 25 % at p99, or what the run's own seeds differ by."""

    counts: dict[str, tuple[float, float, float]] = field(default_factory=dict)
    """In the run, in the replay, and the difference that is allowed: a quarter, or what the run's own seeds differ by, and one event in twenty answers."""

    def times(self, name: str, mine: list[float], theirs: list[float], seeds: list[list[float]]) -> None:
        """Judge completion times of the captured run and the replay; `seeds` are those of other runs of the scenario."""
        for label, q, most in (("p50", 0.5, 1.10), ("p99", 0.99, 1.25)):
            own = [quantile(values, q) for values in seeds]
            self.ratios[f"{name} {label}"] = (
                quantile(theirs, q) / quantile(mine, q),
                max(most, 1.05 * max(own) / min(own)),
            )

    def events(self, name: str, mine: float, theirs: float, seeds: list[float], answers: int) -> None:
        """Judge a count."""
        self.counts[name] = (mine, theirs, max(0.25 * mine, max(seeds) - min(seeds)) + max(2.0, answers / 20))

    faults: dict[str, int] = field(default_factory=dict)
    """Requests that were read and cannot be what an application did: errors of the inference (:func:`fanin.capture.closing.faults`)."""

    doubts: tuple[str, ...] = ()
    """What the comparison warned of by itself: kinds of :mod:`fanin.comparison.doubts`."""

    @property
    def excused(self) -> bool:
        """The law is broken, and the comparison said of this capture that it may be."""
        return not self.holds and bool(self.doubts) and not self.faults

    @property
    def breaks(self) -> list[str]:
        """What does not hold."""
        far = [name for name, (ratio, most) in self.ratios.items() if not 1 / most <= ratio <= most]
        counts = [name for name, (run, replay, most) in self.counts.items() if abs(run - replay) > most]
        return far + counts + [f"requests {fault}" for fault in self.faults]

    @property
    def holds(self) -> bool:
        return not self.breaks

    def __str__(self) -> str:
        ratios = [f"{name} x{ratio:.2f} (x{most:.2f})" for name, (ratio, most) in self.ratios.items()]
        counts = [f"{name} {run:.0f}/{replay:.1f} (+-{most:.0f})" for name, (run, replay, most) in self.counts.items()]
        return ", ".join(ratios + counts)


def quantile(values: list[float], q: float) -> float:
    return sorted(values)[max(1, math.ceil(round(q * len(values), 9))) - 1]


def merged(files: list[Path], into: Path) -> Path:
    """One capture of several, in order of time, as a switch in front of the servers would see it: what its queue then drops is in it."""
    records = []
    for file in files:
        data, at = file.read_bytes(), 24
        while at < len(data):
            seconds, nanoseconds, stored, _ = struct.unpack_from("<IIII", data, at)
            records.append((seconds, nanoseconds, data[at : at + 16 + stored]))
            at += 16 + stored
    records.sort(key=lambda record: record[:2])
    into.write_bytes(files[0].read_bytes()[:24] + b"".join(record[2] for record in records))
    return into


def check(case: Case) -> Verdict:
    """Judge a case over a few seeds, and over more where it breaks the law over these."""
    return again(lambda folder, seeds: judge(case, folder, seeds))


def again(judged: Callable[[Path, int], Verdict]) -> Verdict:
    """A verdict over a few seeds, and over more where it says that the law is broken."""
    for seeds in (SEEDS, MORE_SEEDS):
        with tempfile.TemporaryDirectory() as folder:
            found = judged(Path(folder), seeds)
        if found.holds:
            break
    return found


def judge(case: Case, folder: Path, seed_count: int) -> Verdict:
    """Run, capture, replay, compare."""
    scenario, rack = folder / "scenario.toml", folder / "rack.toml"
    scenario.write_text(case.scenario)
    rack.write_text(case.rack_file)
    senders = [f"s{n + 1}" for n in range(int(case.rack.split("senders = ")[1].split()[0]))]
    links = [f"{sender}->switch" for sender in senders] + [f"switch->{sender}" for sender in senders]
    at = {"client": ["client"], "servers": senders, "switch": links}[case.place]
    runs = fanin.run(scenario, cc=case.cc, seeds=seed_count)
    captured = fanin.run(scenario, cc=case.cc, seed=1, pcap=folder / "pcap", pcap_at=at)
    capture = merged(sorted((folder / "pcap").rglob("*.pcap")), folder / "capture.pcap")
    replayed = fanin.compare(capture, rack, cc=case.cc, baseline=case.cc, seeds=seed_count)

    faults = closing.faults(closing.closings(fanin.trains(capture).workload()))
    verdict = Verdict(seed_count, faults=faults, doubts=doubted(replayed.warnings))
    each = [runs.messages.filter(seed=seed) for seed in range(1, seed_count + 1)]
    mine = answers(captured.messages)
    verdict.times("responses", mine, known(replayed.responses), [answers(messages) for messages in each])
    if replayed.rank_of == "requests" and "barrier = false" not in case.workload:
        own = [rounds(messages, len(senders)) for messages in each]
        later = replayed.rounds.filter(pl.col("release_ms").rank("ordinal").over("seed") > 1)
        verdict.times("rounds", rounds(captured.messages, len(senders)), known(later), own)
    timeouts = [events(runs.flows.filter(seed=seed), "timeouts") for seed in range(1, seed_count + 1)]
    drops = [events(runs.ports.filter(seed=seed), "drops") for seed in range(1, seed_count + 1)]
    verdict.events("timeouts", timeouts[0], float(replayed.runs["timeouts"].mean() or 0.0), timeouts, len(mine))  # type: ignore[arg-type]
    verdict.events("drops", drops[0], float(replayed.runs["drops"].mean() or 0.0), drops, len(mine))  # type: ignore[arg-type]
    return verdict


def doubted(warnings: Sequence[str]) -> tuple[str, ...]:
    """Kinds of those warnings that say why a replay need not be what was captured."""
    return tuple(kind for warning in warnings if (kind := getattr(warning, "kind", None)) in doubts.KINDS)


def known(frame: pl.DataFrame) -> list[float]:
    return [float(value) for value in frame["completion_ms"].drop_nulls()]


def answers(messages: pl.DataFrame) -> list[float]:
    """Completion times of a run's answers."""
    return known(messages.filter(pl.col("class") != "request"))


def rounds(messages: pl.DataFrame, size: int) -> list[float]:
    """Completion times of a run's rounds but the first: the n-th answers of all servers, from the first request to the last answer.

    In the first round of a run the requests wait for handshakes; in the capture, and so in the replay, they leave after these.
    """
    order = pl.col("message").rank("ordinal").over("flow")
    # A message without bytes opens a connection before the first round.
    numbered = messages.filter(pl.col("done_ms").is_not_null(), pl.col("bytes") > 0).with_columns(round=order)
    whole = numbered.group_by("round").agg(
        answers=(pl.col("class") != "request").sum(), took=pl.col("done_ms").max() - pl.col("release_ms").min()
    )
    return [float(value) for value in whole.filter(pl.col("answers") == size, pl.col("round") > 1)["took"]]


def events(frame: pl.DataFrame, column: str) -> float:
    kept = frame.filter(pl.col("class") != "request") if "class" in frame.columns else frame
    return float(kept[column].sum())


@dataclass(frozen=True, slots=True)
class Promise:
    """What a replay says that another TCP gains, and what it gains: mean responses under the captured one over those under the other."""

    promised: float
    got: float
    spread: float

    @property
    def holds(self) -> bool:
        return max(self.promised / self.got, self.got / self.promised) <= max(1.25, self.spread)


def promise(case: Case, other: str, folder: Path) -> Promise:
    """Judge a promise over a few seeds, and over more where it is not kept over these."""
    found = promised(case, other, folder / "few", SEEDS)
    return found if found.holds else promised(case, other, folder / "more", MORE_SEEDS)


def promised(case: Case, other: str, folder: Path, seeds: int) -> Promise:
    """Capture under the case's algorithm, replay under `other`, and run the scenario under `other`.

    Means are geometric over responses, so that one timeout of 200 ms does not decide. What is got is taken over seeds under both algorithms: one run is
    one draw of who times out.
    """
    folder.mkdir()
    scenario, rack = folder / "scenario.toml", folder / "rack.toml"
    scenario.write_text(case.scenario)
    rack.write_text(case.rack_file)
    fanin.run(scenario, cc=case.cc, seed=1, pcap=folder / "pcap", pcap_at=["client"])
    capture = merged(sorted((folder / "pcap").rglob("*.pcap")), folder / "capture.pcap")
    replayed = fanin.compare(capture, rack, cc=[case.cc, other], seeds=seeds)
    mine, theirs = (
        [geometric(answers(truth.messages.filter(seed=seed))) for seed in range(1, seeds + 1)]
        for truth in (fanin.run(scenario, cc=cc, seeds=seeds) for cc in (case.cc, other))
    )
    of = {cc: geometric(known(replayed.responses.filter(cc=cc))) for cc in (case.cc, other)}
    return Promise(
        promised=of[case.cc] / of[other],
        got=geometric(mine) / geometric(theirs),
        spread=1.05 * max(theirs) / min(theirs),
    )


def geometric(values: list[float]) -> float:
    return math.exp(sum(math.log(value) for value in values) / len(values))


def promises(count: int) -> None:
    """Every pair of five algorithms, `count` scenarios each."""
    held = tried = 0
    for number in range(count):
        for cc, other in itertools.permutations(FIVE, 2):
            made = replace(case(1000 + number), cc=cc, place="client")
            with tempfile.TemporaryDirectory() as folder:
                found = promise(made, other, Path(folder))
            held, tried = held + found.holds, tried + 1
            says = f"promised x{found.promised:.2f} got x{found.got:.2f} (seeds x{found.spread:.2f})"
            print(f"{1000 + number} {'holds' if found.holds else 'BREAKS'} {cc} -> {other}: {says}", flush=True)
    print(f"{held} of {tried} hold")


def main(numbers: range) -> None:
    tally = Tally()
    for number in numbers:
        made = case(number)
        found = check(made)
        what = " ".join((made.rack + made.workload).replace('"', "").split("\n"))
        where = f"{made.cc} {made.stack} at {made.place}: {what}"
        print(f"{number:4} {tally.add(found)} over {found.seeds} seeds: {found} | {where}", flush=True)
    print(tally)


@dataclass(slots=True)
class Tally:
    """Counts of verdicts."""

    tried: int = 0
    held: int = 0
    over_more: int = 0
    excused: int = 0
    false_alarms: int = 0

    def add(self, found: Verdict) -> str:
        """Count a verdict, and say it."""
        self.tried += 1
        self.held += found.holds
        self.over_more += found.holds and found.seeds > SEEDS
        self.excused += found.excused
        self.false_alarms += found.holds and bool(found.doubts)
        warned = f" (warned: {', '.join(found.doubts)})" if found.doubts else ""
        if found.holds:
            return f"holds{warned}"
        return f"{'EXCUSED' if found.excused else 'BREAKS'} {' and '.join(found.breaks)}{warned}"

    @property
    def broken(self) -> int:
        """Scenarios in which the law is broken and nothing was said."""
        return self.tried - self.held - self.excused

    def __str__(self) -> str:
        return (
            f"{self.held} of {self.tried} hold, {self.over_more} of them over {MORE_SEEDS} seeds only; of the others {self.excused} were warned of and "
            f"{self.broken} were not; {self.false_alarms} of those that hold were warned of"
        )


def chosen(text: str) -> range:
    """`200`: the first so many; `60-80`: those from 60 to 79."""
    first, dash, end = text.partition("-")
    return range(int(first), int(end)) if dash else range(int(first))


if __name__ == "__main__":
    if sys.argv[1:2] == ["promises"]:
        promises(int(sys.argv[2]))
    else:
        main(chosen(sys.argv[1] if len(sys.argv) > 1 else "200"))
