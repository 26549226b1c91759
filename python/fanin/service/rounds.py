"""Rounds and responses of a service, from the messages of a run."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from fanin.disk.scratch import scratch_folder
from fanin.kernel.engine import KernelEngine
from fanin.kernel.kept import engine_of, handed
from fanin.runs import tables
from fanin.runs.engines import Captures, engine, product_of
from fanin.runs.job import Job, key_of
from fanin.runs.kept import usual_store
from fanin.runs.store import Store
from fanin.runs.tables import Frames

if TYPE_CHECKING:
    from fanin._native import Watch

REQUEST = "request"
"""Class of messages that ask."""

AT = "client"
"""The host that a service's captures are taken at."""

SERVICE: dict[str, type[pl.DataType]] = {
    "cc": pl.String,
    "seed": pl.UInt64,
    "number": pl.UInt32,
    "completion_ms": pl.Float64,
}
"""Columns of rounds and of responses."""


def rounds_of(messages: pl.DataFrame) -> Frames:
    """Rounds and responses of one run.

    A round is the k-th request to each server with its answers, where every server is asked equally often: from the first request to the
    slowest answer. Where servers differ in that, or there is one alone, there are no rounds.

    Parameters
    ----------
    messages : polars.DataFrame
        As :attr:`fanin.RunResult.messages`.

    Returns
    -------
    dict
        ``rounds`` and ``responses`` with the columns of :data:`SERVICE`, and ``timeouts`` (UInt64), one row.

    Examples
    --------
    >>> rows = {"cc": "reno", "seed": 1, "flow": [0, 1, 2, 3], "class": ["request", "request", "incast", "incast"], "bytes": 9}
    >>> times = {"release_ms": [0.0, 0.0, 1.0, 1.0], "done_ms": [1.0, 1.0, 3.0, 4.0], "timeouts": 0}
    >>> found = rounds_of(pl.DataFrame({**rows, **times}))
    >>> found["rounds"]["completion_ms"].to_list(), found["responses"]["completion_ms"].to_list()
    ([4.0], [2.0, 3.0])
    """
    finite = (
        messages.filter(pl.col("bytes").is_not_null() & (pl.col("bytes") > 0) & pl.col("release_ms").is_not_null())
        .sort("flow", "release_ms", maintain_order=True)
        .with_columns(number=pl.int_range(pl.len()).over("flow").cast(pl.UInt32))
    )
    asked, answers = finite.filter(pl.col("class") == REQUEST), finite.filter(pl.col("class") != REQUEST)
    responses = answers.select("cc", "seed", "number", completion_ms=pl.col("done_ms") - pl.col("release_ms"))
    counts = answers.group_by("flow").len()["len"]
    rounds = responses.clear()
    if counts.len() > 1 and counts.n_unique() == 1:
        begin = (
            (asked if asked.height else answers).group_by("number").agg(pl.col("release_ms").min().alias("begin_ms"))
        )
        rounds = (
            answers.group_by("cc", "seed", "number", maintain_order=True)
            .agg(done_ms=pl.when(pl.col("done_ms").null_count() == 0).then(pl.col("done_ms").max()))
            .join(begin, on="number", maintain_order="left")
            .select("cc", "seed", "number", completion_ms=pl.col("done_ms") - pl.col("begin_ms"))
            .sort("number")
        )
    timeouts = pl.DataFrame({"timeouts": [int(answers["timeouts"].sum())]}, schema={"timeouts": pl.UInt64})
    kinds = list(SERVICE.items())
    return {
        "rounds": rounds.select(pl.col(name).cast(kind) for name, kind in kinds),
        "responses": responses.select(pl.col(name).cast(kind) for name, kind in kinds),
        "timeouts": timeouts,
    }


@cache
def _digest() -> str:
    digest = hashlib.sha256()
    for file in (__file__, str(tables.__file__)):
        digest.update(Path(file).read_bytes())
    return digest.hexdigest()[:16]


def store_of(name: str) -> Store | None:
    """The store that every command shares, for an engine; a kernel's results are kept there whatever becomes of the simulator."""
    on = engine(name)
    if not isinstance(on, KernelEngine):
        return usual_store()
    return usual_store(engine_of(on.kernel, "service"))


def _key(job: Job, kept: str) -> str:
    on = engine(job.engine)
    if isinstance(on, KernelEngine):
        return handed(job.plan(), on.kernel, job.seed, on.whose, f"{kept} {_digest()}")
    return key_of(job.plan().identity(), product_of(job.engine, [kept, _digest()]))


@dataclass(frozen=True, slots=True)
class ServiceJob:
    """A run of which rounds and responses are kept."""

    job: Job

    def key(self) -> str:
        """Names them."""
        return _key(self.job, "service")

    def run(self, watch: Watch | None = None) -> Frames:
        """Run and measure."""
        return rounds_of(self.job.run(watch)["messages"])


@dataclass(frozen=True, slots=True)
class CaptureJob:
    """A run of which the capture at the aggregator is kept, as the bytes of a pcap file."""

    job: Job

    def key(self) -> str:
        """Names it."""
        return _key(self.job, f"capture {AT}")

    def run(self, watch: Watch | None = None) -> Frames:
        """Run and record."""
        import tempfile

        with scratch_folder(tempfile.gettempdir(), "fanin-truth-") as folder:
            self.job.run(watch, Captures(folder, (AT,)))
            content = (folder / f"{AT}.pcap").read_bytes()
        return {"capture": pl.DataFrame({"pcap": [content]}, schema={"pcap": pl.Binary})}
