"""The current setting, replayed on the racks that a calibration tries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from fanin import _native
from fanin.calibration.observed import Shown
from fanin.calibration.search import MOST_RACKS, Calibration, calibrate
from fanin.errors import FaninError
from fanin.process.progress import Progress, silent
from fanin.runs.job import Settings
from fanin.runs.kept import Keyed, run_kept
from fanin.runs.replay import beside_each_other, rack_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fanin.runs.replay import ReplayJob
    from fanin.runs.store import Store
    from fanin.runs.tables import Frames
    from fanin.statistics.ranking import RankOf

Measure = Callable[["ReplayJob"], Keyed]
"""As :class:`fanin.comparison.replays.MeasuredReplay`."""

FIRST = {"requests": "round", "stages": "stage", "trees": "turn", "responses": "response"}
"""The column whose zero is the first of a connection or of the capture: it waited for handshakes."""

FRAMES = {"requests": "rounds", "stages": "stages", "trees": "trees", "responses": "responses"}
"""Frames of a run that hold them."""


def shown_by(took_ms: Sequence[float | None], retransmissions: int | None) -> Shown:
    """What a capture shows, from its requests in order of their beginning: the first waited for handshakes and is left out."""
    return Shown.of(took_ms[1:], retransmissions)


def calibrated(
    base: ReplayJob,
    cc: str,
    of: RankOf,
    shown: Shown,
    values: Mapping[str, Sequence[str]],
    *,
    measure: Measure,
    most: int = MOST_RACKS,
    told: Mapping[str, str] | None = None,
    store: Store | None = None,
    progress: Callable[[str, int], Progress] = silent,
) -> Calibration:
    """Replay the current setting on the racks that a capture allows, and keep those that reproduce it.

    Parameters
    ----------
    base : ReplayJob
        Rack, traffic and engine.
    cc : str
        The current TCP.
    of : {"trees", "requests", "stages", "responses"}
        The unit of `shown`.
    shown : Shown
        What the capture measured.
    values : mapping
        What is open, by key (:func:`fanin.calibration.open_values`).
    measure : callable
        Makes of a replay the job that runs it and keeps its requests and its one row of counts.
    most : int
        At most so many racks are tried.
    told : mapping, optional
        As :func:`fanin.calibration.calibrate`.
    store : Store, optional
        Where runs are looked up and kept.
    progress : callable, optional
        Makes the progress display.

    Returns
    -------
    Calibration

    Raises
    ------
    KeyboardInterrupt
        When Ctrl-C ended it: a part of the racks says nothing.
    fanin.FaninError
        When no rack can be run.
    """

    def replays(racks: Sequence[Settings], seed: int) -> list[list[Shown]]:
        made = [replace(base, cc=cc, seed=seed, settings=(*base.settings, *rack)) for rack in racks]
        places = [place for place, job in enumerate(made) if _can_be(job)]
        jobs = [measure(made[place]) for place in places]
        found: list[list[Shown]] = [[] for _ in racks]
        # What reading the traffic and making plans took is of no use to the runs.
        _native.give_back()

        def finished(number: int, result: Frames | BaseException) -> None:
            if isinstance(result, BaseException):
                raise result
            found[places[number]].append(_shown(result, of))

        _, whole = run_kept(
            jobs,
            finished,
            store=store,
            progress=progress,
            title="calibrating",
            executor=beside_each_other(base),
            durable=False,
        )
        if not whole:
            raise KeyboardInterrupt
        return found

    return calibrate(shown, values, replays, most, told)


def _can_be(job: ReplayJob) -> bool:
    """False for a rack such as one whose queue marks beyond its limit."""
    try:
        rack_of(job.rack, job.settings).accept(job.cc)
    except FaninError:
        return False
    return True


def _shown(frames: Frames, of: RankOf) -> Shown:
    requests = frames[FRAMES[of]].filter(pl.col(FIRST[of]) > 0)
    return Shown.of(requests["completion_ms"].to_list(), int(frames["runs"]["retransmissions"][0]))
