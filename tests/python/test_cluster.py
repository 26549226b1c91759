"""Sweeps on a real Dask scheduler and real workers: whatever happens to them, the store is that of one machine."""

from __future__ import annotations

import gc
import os
import pickle
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fanin.advice import advise
from fanin.errors import ScenarioError
from fanin.process.progress import Progress, silent
from fanin.runs.job import Document, Job
from fanin.sweep import SweepResult, sweep
from fanin.sweep.perform import SweepJob

from .conftest import INCAST, RACK, ROOT, SMALL, Fanin, entries
from .test_sweep import SWEEP, contents, written

pytest.importorskip("distributed", reason="the optional dependency group `cluster` is not installed")
# Sockets that a scheduler leaves when it is killed are closed by the collector, with a warning.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

from fanin.runs.cluster import ClusterError, Dask, address_of  # noqa: E402

MANY = SWEEP.replace("[2, 4]", "[20, 21, 22, 23, 24, 25]").replace("seeds = 2", "seeds = 8")
RUNS = 96

# A worker that says nothing for three seconds is given up; five minutes otherwise.
IMPATIENT = {
    "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "3s",
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "3s",
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "12s",
}


class Cluster:
    """A scheduler and workers as processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.host = "127.0.0.1"
        self.port = _free_port()
        self.processes: list[subprocess.Popen[bytes]] = []
        self.scheduler = self._start_scheduler()

    @property
    def address(self) -> str:
        return f"tcp://{self.host}:{self.port}"

    def _start_scheduler(self) -> subprocess.Popen[bytes]:
        return self.start("scheduler", "--host", "0.0.0.0", "--port", str(self.port), "--no-dashboard", "--no-show")

    def restart_scheduler(self) -> None:
        self.scheduler.kill()
        self.scheduler.wait()
        time.sleep(0.5)
        self.scheduler = self._start_scheduler()

    def worker(self, *options: str, prefix: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
        local = self.folder / uuid.uuid4().hex
        return self.start(
            "worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(local),
            *options, prefix=prefix,
        )  # fmt: skip

    def start(self, what: str, *options: str, prefix: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
        log = (self.folder / f"{what}-{len(self.processes)}.log").open("wb")
        process = subprocess.Popen(
            [*prefix, sys.executable, "-m", "dask", what, *options],
            stdout=log,
            stderr=log,
            env={**os.environ, **IMPATIENT},
        )
        log.close()
        self.processes.append(process)
        return process

    def stop(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    # Within the test, where their warnings are expected, and not in whichever test comes next.
    yield
    gc.collect()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    try:
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("alone")
    assert sweep(written(folder, MANY), store=folder / "store").ran == RUNS
    return contents(folder / "store")


def swept(tmp_path: Path, address: str, at: int = 10, meanwhile: Callable[[], object] = lambda: None) -> SweepResult:
    """A sweep on a cluster; `meanwhile` happens when the store has `at` entries."""
    place = tmp_path / "store"

    def watch() -> None:
        while entries(place) < at:
            time.sleep(0.01)
        meanwhile()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    with Dask(address, patience_s=60) as executor:
        result = sweep(written(tmp_path, MANY), store=place, executor=executor)
    watcher.join(timeout=10)
    return result


def test_the_number_of_workers_changes_no_byte(tmp_path: Path, cluster: Cluster, alone: dict[str, bytes]) -> None:
    for workers in (1, 3):
        cluster.worker()
        if workers == 3:
            cluster.worker()
        found = swept(tmp_path / str(workers), cluster.address)
        assert (found.ran, found.failed) == (RUNS, 0)
        assert contents(tmp_path / str(workers) / "store") == alone


def test_a_worker_that_is_killed_loses_no_run(tmp_path: Path, cluster: Cluster, alone: dict[str, bytes]) -> None:
    victim, _ = cluster.worker(), cluster.worker()
    found = swept(tmp_path, cluster.address, meanwhile=victim.kill)
    assert victim.wait(10) == -signal.SIGKILL
    assert (found.ran, found.failed) == (RUNS, 0)
    assert contents(tmp_path / "store") == alone


@pytest.mark.usefixtures("seldom_busy")
def test_advice_from_a_cluster_whose_worker_is_killed_is_that_of_one_machine(cluster: Cluster) -> None:
    options: dict[str, Any] = {"cc": ["cubic", "dctcp"], "budget": 30}
    victim, _ = cluster.worker(), cluster.worker()
    searched: list[str] = []

    def progress(title: str, total: int) -> Progress:
        # The second round of the search: both workers have runs of it.
        searched.append(title)
        if title.startswith("round 2"):
            threading.Timer(0.2, victim.kill).start()
        return silent(title, total)

    with Dask(cluster.address, patience_s=60) as executor:
        found = advise(SMALL, RACK, executor=executor, progress=progress, keep=False, **options)
    assert victim.wait(30) == -signal.SIGKILL
    assert any(title.startswith("round 2") for title in searched)
    assert found.to_dict() == advise(SMALL, RACK, **options).to_dict()


def test_a_scheduler_that_is_restarted_loses_no_run(tmp_path: Path, cluster: Cluster, alone: dict[str, bytes]) -> None:
    cluster.worker()

    def restart() -> None:
        cluster.restart_scheduler()
        # Workers end with their scheduler, or come back to it; one more is there in any case.
        cluster.worker()

    found = swept(tmp_path, cluster.address, meanwhile=restart)
    assert (found.ran, found.failed) == (RUNS, 0)
    assert contents(tmp_path / "store") == alone


def test_a_worker_that_stalls_holds_nothing_up_for_good(
    tmp_path: Path, cluster: Cluster, alone: dict[str, bytes]
) -> None:
    slow, _ = cluster.worker(), cluster.worker()
    found = swept(tmp_path, cluster.address, meanwhile=lambda: slow.send_signal(signal.SIGSTOP))
    assert (found.ran, found.failed) == (RUNS, 0)
    assert contents(tmp_path / "store") == alone


def test_a_network_that_is_cut_loses_no_run(tmp_path: Path, cluster: Cluster, alone: dict[str, bytes]) -> None:
    space, here, there = (f"fn{kind}{os.getpid() % 100000}" for kind in "nab")
    if shutil.which("ip") is None or subprocess.run(["ip", "netns", "add", space], capture_output=True).returncode:
        pytest.skip("a network namespace needs root and ip(8)")
    try:
        for words in (
            f"link add {here} type veth peer name {there} netns {space}",
            f"addr add 10.213.7.1/24 dev {here}",
            f"link set {here} up",
            f"-n {space} addr add 10.213.7.2/24 dev {there}",
            f"-n {space} link set {there} up",
            f"-n {space} link set lo up",
        ):
            subprocess.run(["ip", *words.split()], check=True)
        cluster.worker()
        cluster.host = "10.213.7.1"
        cluster.worker(prefix=("ip", "netns", "exec", space))
        cut = ["ip", "link", "set", here, "down"]
        with Dask(cluster.address) as probe:
            probe._client.wait_for_workers(2, timeout=60)
        cluster.host = "127.0.0.1"
        found = swept(tmp_path, cluster.address, meanwhile=lambda: subprocess.run(cut, check=True))
        assert (found.ran, found.failed) == (RUNS, 0)
        assert contents(tmp_path / "store") == alone
    finally:
        cluster.stop()
        subprocess.run(["ip", "netns", "del", space], check=False)
        subprocess.run(["ip", "link", "del", here], check=False, capture_output=True)


def test_a_worker_with_another_engine_is_refused(tmp_path: Path, cluster: Cluster) -> None:
    preload = tmp_path / "other.py"
    preload.write_text("import fanin.runs.job\nfanin.runs.job.engine_digest = lambda: 'f' * 16\n")
    cluster.worker("--preload", str(preload))
    with pytest.raises(ClusterError, match="the worker has another engine"), Dask(cluster.address):
        pass


def test_the_command_says_what_is_wrong_with_a_cluster(tmp_path: Path, fanin: Fanin) -> None:
    done = fanin("sweep", written(tmp_path), "--on", "dsk://a:1", "--store", tmp_path / "store")
    assert (done.code, done.err.count("\n")) == (2, 1)
    with pytest.raises(ScenarioError):
        address_of("dask://")
    with (
        pytest.raises(ClusterError, match="no scheduler answers"),
        Dask(f"tcp://127.0.0.1:{_free_port()}", patience_s=1),
    ):
        pass
    assert [thread.name for thread in threading.enumerate()] == ["MainThread"]


def test_a_large_file_travels_once_and_not_with_each_job(tmp_path: Path) -> None:
    (tmp_path / "big.csv").write_text((ROOT / "data/distributions/homa_w1.csv").read_text() + "# " + "x" * 500_000)
    text = (ROOT / "examples/http_on_off.toml").read_text()
    (tmp_path / "s.toml").write_text(text.replace('{ uniform = ["2KB", "10KB"] }', '"big.csv"'))
    document = Document.read(tmp_path / "s.toml")
    blobs: dict[str, bytes] = {}
    jobs = [SweepJob(Job(document, seed)).shipped(blobs) for seed in range(1, 4)]
    assert len(blobs) == 1
    assert len(pickle.dumps(jobs[0])) < 10_000
    small: dict[str, bytes] = {}
    (tmp_path / "t.toml").write_text(INCAST)
    SweepJob(Job(Document.read(tmp_path / "t.toml"), 1)).shipped(small)
    assert not small
