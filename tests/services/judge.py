"""What fanin reads of a capture, beside what the application logged."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fanin
from fanin.capture import closing
from fanin.capture.traffic import TrainsResult

from . import patterns

AGGREGATOR = "10.9.0.1"

RESPONSES, REQUESTS, TIMES = 0.01, 0.02, 0.1
"""How far numbers of responses and of requests, and p50 and p99 of requests, may be off."""


FIGURES = {"responses": "responses", "requests": "requests", "p50": "p50_ms", "p99": "p99_ms"}
"""What a capture and a log are compared by, and the column of it."""


@dataclass(frozen=True)
class Counted:
    """Responses and requests of one service, and how long its requests took, in ms."""

    responses: int
    requests: int
    p50: float
    p99: float
    mean: float = float("nan")
    p95: float = float("nan")

    @classmethod
    def of(cls, responses: int, took: list[float]) -> Counted:
        """Percentiles are nearest-rank."""
        took = sorted(took)

        def at(share: float) -> float:
            return took[min(len(took) - 1, int(len(took) * share))] if took else float("nan")

        mean = sum(took) / len(took) if took else float("nan")
        return cls(responses, len(took), at(0.5), at(0.99), mean, at(0.95))


@dataclass(frozen=True)
class Row:
    """One capture of one service."""

    name: str
    tap: str
    log: Counted
    read: Counted
    warnings: tuple[str, ...]
    own_time: bool = False
    """It is said that the application's own time, which is in its log alone, matters beside that of its requests."""

    @property
    def counted(self) -> bool:
        """As many responses and requests as there were."""
        a, b = self.log, self.read
        return _near(b.responses, a.responses, RESPONSES) and _near(b.requests, a.requests, REQUESTS)

    @property
    def right(self) -> bool:
        """Within the bounds."""
        a, b = self.log, self.read
        return self.counted and _near(b.p50, a.p50, TIMES) and _near(b.p99, a.p99, TIMES)

    @property
    def explained(self) -> bool:
        """The application's own time, of which a note speaks, makes requests longer in the log, and no more or fewer."""
        a, b = self.log, self.read
        return self.own_time and self.counted and b.p50 <= a.p50 and b.p99 <= (1 + TIMES) * a.p99

    @property
    def verdict(self) -> str:
        """In a word."""
        if self.right:
            return "doubted" if self.warnings else "right"
        return "warned" if self.warnings or self.explained else "WRONG"


def _near(ours: float, theirs: float, share: float) -> bool:
    return abs(ours - theirs) <= share * theirs


def write(rows: Sequence[Row], path: Path) -> None:
    """The data of ``results/services.csv``."""
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        columns = [f"{column}{of}" for column in FIGURES.values() for of in ("", "_log")]
        out.writerow(["service", "what", "tap", "verdict", "warnings", *columns])
        for row in rows:
            figures = [round(getattr(of, f), 3) for f in FIGURES for of in (row.read, row.log)]
            verdict = row.verdict.lower()
            named = [*row.warnings, *(["own-time"] if row.explained and not row.right else [])]
            out.writerow([row.name, patterns.named(row.name).what, row.tap, verdict, " ".join(named), *figures])


def logged(*paths: Path) -> Counted:
    """What the application says, of several runs together."""
    logs: list[dict[str, Any]] = [json.loads(gzip.decompress(path.read_bytes())) for path in paths]
    took = [(end - begin) * 1e3 for log in logs for begin, end in log["rounds"]]
    return Counted.of(sum(len(log["responses"]) for log in logs), took)


def read(path: Path) -> tuple[Counted, tuple[str, ...], bool]:
    """What the capture is read as, what is said against that, and whether the application's own time is said to matter."""
    found = fanin.trains(path)
    workload = json.loads(found.workload(AGGREGATOR).to_json())
    responses = sum(
        m.get("took_ns") is not None and not m.get("given_up") for c in workload["connections"] for m in c["messages"]
    )
    took = found.requests(AGGREGATOR)["completion_ms"].drop_nulls().to_list()
    return Counted.of(responses, took), doubts(found), closing.unseen(found.workload(AGGREGATOR)) is not None


def doubts(found: TrainsResult) -> tuple[str, ...]:
    """Kinds of warnings that speak against the reading."""
    unfit = [reason.kind for reason in found.fitness.reasons if {"sizes", "times"} & set(reason.lacks)]
    replay = found.workload(AGGREGATOR)
    unclear = list(closing.doubts(replay)) + ([] if closing.at_once(replay) is None else ["no-pauses"])
    return tuple(unfit + [warning["kind"] for warning in found.warnings if warning["kind"] in NAMED] + unclear)


NAMED = ("messages-unread", "missing-data", "one-sided")
"""Warnings that say what is read wrongly."""
