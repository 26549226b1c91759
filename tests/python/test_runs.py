"""Jobs are plain data: they travel, and are named by what they are."""

from __future__ import annotations

import os
import pickle
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from fanin.capture.traffic import trains
from fanin.process.progress import Silent
from fanin.runs import executor
from fanin.runs.job import Document, Job
from fanin.runs.replay import ReplayJob, Traffic, Unmoved

from .conftest import INCAST, RACK, SMALL


@pytest.fixture(scope="module")
def replay() -> ReplayJob:
    rack = RACK.read_text()
    return ReplayJob(Document(rack, "rack.toml"), Traffic(trains(SMALL).workload(None)), "cubic", 1)


def test_a_replay_travels_and_gives_the_same_there(replay: ReplayJob) -> None:
    there = pickle.loads(pickle.dumps(replay))
    assert there.key("all") == replay.key("all")
    here, again = replay.run(), there.run()
    assert here.keys() == again.keys()
    for name, rows in here.items():
        assert rows.equals(again[name]), name


def test_each_part_of_a_job_is_part_of_its_name(replay: ReplayJob) -> None:
    changed = [
        replace(replay, seed=2),
        replace(replay, cc="reno"),
        replace(replay, settings=(("rack.buffer", "50p"),)),
        replace(replay, trace=True),
        replace(replay, beside=Unmoved("reno", (), tuple(replay.traffic.replay.servers[:1]))),
    ]
    assert len({job.key("all") for job in [replay, *changed]}) == 6
    assert replay.key("all") != replay.key("runs")
    job = Job(Document(INCAST, "a.toml"), 1, "cubic")
    assert job.key() == Job(Document(INCAST, "b.toml"), 1, "cubic").key()
    assert job.key() != replace(job, frames=("runs",)).key()


def test_servers_that_stay_are_as_if_all_stayed_where_nothing_is_shared(replay: ReplayJob) -> None:
    servers = tuple(replay.traffic.replay.servers)
    everyone = replace(replay, cc="dctcp", beside=Unmoved("cubic", (), servers)).run()
    before = replay.run()
    # The network is the same, so with every server unmoved the results are today's, whatever the others would have run.
    assert everyone["messages"].drop("cc").equals(before["messages"].drop("cc"))


def test_no_more_goes_on_at_once_than_there_is_memory_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "cores", lambda: 8)
    monkeypatch.setattr(executor, "memory_left", lambda: 1000)
    assert [executor.at_once(each) for each in (0, 10, 125, 300, 999, 5000)] == [8, 8, 8, 3, 1, 1]
    monkeypatch.setattr(executor, "memory_left", lambda: None)
    assert executor.at_once(5000) == 8
    # However much there is.
    monkeypatch.setattr(executor, "memory_left", lambda: 1 << 40)
    assert [executor.at_once(executor.TOGETHER // part) for part in (1, 3, 100)] == [1, 3, 8]


def test_a_limit_of_memory_counts_as_what_is_left() -> None:
    resource = pytest.importorskip("resource")
    limits, more = resource.getrlimit(resource.RLIMIT_AS), 1 << 28
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    try:
        resource.setrlimit(resource.RLIMIT_AS, (taken + more, limits[1]))
        left = executor.memory_left()
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
    assert left is not None
    assert left <= more


@pytest.mark.parametrize("finish_running", [False, True])
def test_ctrl_c_during_the_last_of_several_works_is_no_less_heard(finish_running: bool) -> None:
    told: list[int | BaseException] = []

    def interrupted(_: object) -> int:
        os.kill(os.getpid(), signal.SIGINT)
        return 7

    work = executor.Threads().map
    assert not work([interrupted], Silent(), lambda _, outcome: told.append(outcome), finish_running=finish_running)
    assert work([lambda _: 7], Silent(), lambda _, outcome: told.append(outcome))
    with pytest.raises(KeyboardInterrupt):
        executor.watched(interrupted, Silent())
