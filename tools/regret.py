"""What advice is worth: capture a service on real Linux TCP, advise, and run every candidate there.

For each drawn service: its run under CUBIC on the virtual kernel is captured at the aggregator; `fanin.compare` answers from the capture alone; then
the service runs on the kernel under every candidate of the comparison. Regret is the mean (and p99) of what is advised over that of the best
candidate; a promise is kept where the gain of the mean got is within 1.5 of that promised.

`python tools/regret.py 12` draws services 0 to 11 and prints a line each, `--from N` begins at N, `--out FILE` puts them among the rows of a CSV file.
Results are kept in the store, so that an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import csv
import math
import random
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import fanin
from fanin.process.progress import silent
from fanin.runs.job import Document, Job
from fanin.runs.tables import Frames
from fanin.service.prediction import all_frames
from fanin.service.rounds import CaptureJob, ServiceJob, store_of
from fanin.settings.candidates import Candidate
from fanin.statistics.ranking import completion_statistics

CURRENT = "cubic"
SEEDS = (1, 2, 3)
CAPTURED_SEED = 101
"""The captured run is none of those that judge."""
CLOSE = 1.5


@dataclass(frozen=True)
class Case:
    """A service on a rack."""

    name: str
    text: str


@dataclass(frozen=True)
class Row:
    """What came of one case; times in ms, `regret` and `harm` as ratios, `harm` against the current setting."""

    case: int
    service: str
    kind: str
    advised: str
    now_mean: float
    now_p99: float
    got_mean: float
    got_p99: float
    best: str
    best_mean: float
    best_p99: float
    regret_mean: float
    regret_p99: float
    regret_both: float
    harm_mean: float
    promised_gain: float
    got_gain: float
    stated_low: float
    stated_high: float

    @property
    def kept(self) -> bool:
        """The gain was got, within a factor."""
        return 1 / CLOSE <= self.got_gain / self.promised_gain <= CLOSE

    @property
    def inside(self) -> bool:
        """The mean that was got lies in the interval that was stated."""
        return self.stated_low <= self.got_mean <= self.stated_high


def drawn(number: int) -> Case:
    """A service that depends on its number alone."""
    draw = random.Random(f"regret {number}")
    servers = draw.choice((6, 8, 12, 16, 24, 32))
    size = draw.choice(("8KB", "16KB", "32KB", "64KB", "128KB"))
    rate = draw.choice(("200Mbps", "500Mbps", "1Gbps", "1Gbps", "10Gbps"))
    buffer = draw.choice((40, 64, 100, 150, 250))
    delay = draw.choice(("5us", "10us", "25us", "50us"))
    offload = draw.random() < 0.5
    text = f"""
[topology]
senders = {servers}
rate = "{rate}"
delay = "{delay}"
buffer = "{buffer}p"
[stack]
profile = "linux"
tso = {str(offload).lower()}
[[workload]]
kind = "incast"
bytes = "{size}"
rounds = 60
gap = "{draw.choice((2, 5, 10))}ms"
request = "300B"
jitter = "50us"
[run]
duration = "120s"
"""
    name = f"{servers} x {size}, {rate}, {buffer}p, {delay} per link, offload {'on' if offload else 'off'}"
    return Case(name, text)


def job_of(case: Case, way: Candidate, seed: int) -> Job:
    """The service on the kernel, run in one way."""
    settings = tuple(
        (key, value if value in ("true", "false") or value.isdigit() else f'"{value}"') for key, value in way.settings
    )
    return Job(Document(case.text, case.name), seed, way.cc, settings, ("messages",), engine="kernel")


def every(jobs: list[ServiceJob] | list[CaptureJob]) -> list[Frames]:
    """The frames of every job."""
    return all_frames(jobs, store_of("kernel"), silent, "on the kernel")


def measured(case: Case, way: Candidate) -> tuple[float, float] | None:
    """Mean and p99 of the rounds on the kernel, ms; infinite where a round was not complete, None where the kernel has no form of it."""
    try:
        runs = every([ServiceJob(job_of(case, way, seed)) for seed in SEEDS])
    except fanin.FaninError:
        return None
    took = [ms for run in runs for ms in run["rounds"]["completion_ms"].to_list()]
    if not took or None in took:
        return math.inf, math.inf
    found = completion_statistics(took)
    return float(found["mean"] or math.inf), float(found["p99"] or math.inf)


def judged(number: int) -> Row:
    """Capture, advise, and measure every candidate."""
    case = drawn(number)
    captured = every([CaptureJob(job_of(case, Candidate(CURRENT), CAPTURED_SEED))])[0]["capture"]["pcap"][0]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "captured.pcap"
        file.write_bytes(captured)
        result = fanin.compare(file, baseline=CURRENT)
    verdict = result.verdict
    advised = result.way(verdict.best) if verdict.kind == "change" and verdict.best else Candidate(CURRENT)
    ways = {Candidate(CURRENT): CURRENT, advised: advised.label}
    # Candidates whose every number is the same share a row.
    ways |= {result.way(name): name for row in result.ranking if row.candidate for name in (row.cc, *row.alike)}
    times = {way: found for way in ways if (found := measured(case, way)) is not None}
    now, got = times[Candidate(CURRENT)], times.get(advised, times[Candidate(CURRENT)])
    best = min(times, key=lambda way: times[way][0])
    rows = {name: row.completion_ms["mean"].value for row in result.ranking for name in (row.cc, *row.alike)}
    here = (rows.get(CURRENT), rows.get(verdict.best or CURRENT))
    promised = here[0] / here[1] if here[0] and here[1] and verdict.kind == "change" else 1.0
    both = {way: math.sqrt(mean * p99) for way, (mean, p99) in times.items()}
    low, high = result.expected(verdict.best or CURRENT, "mean") or (0.0, math.inf)
    return Row(
        number, case.name, verdict.kind, advised.label, *now, *got, best.label, *times[best],
        got[0] / times[best][0], got[1] / min(p99 for _, p99 in times.values()),
        math.sqrt(got[0] * got[1]) / min(both.values()), got[0] / now[0], promised, now[0] / got[0], low, high,
    )  # fmt: skip


def summary(rows: list[Row]) -> Iterator[str]:
    """The measures over all rows."""
    means = sorted(row.regret_mean for row in rows)
    answered = [row for row in rows if row.kind in ("change", "keep")]
    changed = [row for row in rows if row.kind == "change"]
    yield f"{len(rows)} services: {len(answered)} answered, {len(changed)} of them with a change"
    yield f"regret of the mean: median {median(means):.3f}, 90 % {means[math.ceil(0.9 * len(means)) - 1]:.3f}, worst {means[-1]:.3f}"
    both = sorted(row.regret_both for row in rows)
    yield f"regret of mean and p99 together: median {median(both):.3f}, 90 % {both[math.ceil(0.9 * len(both)) - 1]:.3f}, worst {both[-1]:.3f}"
    yield f"worse than the current setting by more than 5 %: {sum(row.harm_mean > 1.05 for row in rows)}"
    if changed:
        yield f"means inside the stated interval: {sum(row.inside for row in changed)} of {len(changed)}"
        yield f"promises kept within {CLOSE}: {sum(row.kept for row in changed)} of {len(changed)}"


def written(row: Row, path: Path) -> None:
    """Put a row among those of a CSV file, in place of an earlier one of its case."""
    rows: dict[int, dict[str, object]] = {}
    if path.exists():
        with path.open(newline="", encoding="utf-8") as file:
            rows = {int(each["case"]): dict(each) for each in csv.DictReader(file)}
    rows[row.case] = {k: round(v, 4) if isinstance(v, float) else v for k, v in asdict(row).items()}
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, fieldnames=list(asdict(row)))
        table.writeheader()
        table.writerows(rows[case] for case in sorted(rows))


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("services", type=int, help="how many")
    parser.add_argument("--from", dest="first", type=int, default=0, help="the first one's number")
    parser.add_argument("--out", type=Path, help="put the rows among those of this CSV file")
    asked = parser.parse_args()
    rows = []
    for number in range(asked.first, asked.first + asked.services):
        row = judged(number)
        rows.append(row)
        print(
            f"{number:3} {row.service}: {row.kind} {row.advised}; mean {row.now_mean:.2f} to {row.got_mean:.2f} ms, "
            f"p99 {row.now_p99:.1f} to {row.got_p99:.1f}; best {row.best} {row.best_mean:.2f}; "
            f"regret {row.regret_mean:.3f} (with p99 {row.regret_both:.3f}), stated {row.stated_low:.2f} to {row.stated_high:.2f}, "
            f"promised {row.promised_gain:.2f}, got {row.got_gain:.2f}",
            flush=True,
        )
        if asked.out:
            written(row, asked.out)
    for line in summary(rows):
        print(line)


if __name__ == "__main__":
    sys.exit(main())
