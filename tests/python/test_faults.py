"""Commands where something is missing or breaks: one sentence, no traceback, nothing left. `make faults` runs every command under every fault."""

from __future__ import annotations

import functools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import polars as pl
import pytest
from fanin.disk import scratch
from fanin.disk.files import output_folder, read_parquet
from fanin.disk.scratch import remove_abandoned, scratch_file, scratch_folder
from fanin.errors import OutputError
from fanin.runs.store import Store

from . import faults, spoilt
from .conftest import SMALL, Fanin

LOOPING = """
import fanin

class Looping(fanin.CongestionControl):
    recovery = "newreno"

    def on_ack(self, conn, ack):
        while True:
            pass
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return faults.place(tmp_path)


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a sweep in it, to be copied."""
    return faults.with_store(tmp_path_factory.mktemp("made"))


def with_store(folder: Path, full: Path) -> Path:
    """The copy of that store in a folder with what the commands name."""
    faults.place(folder)
    return Path(shutil.copytree(full, folder / "store"))


# ---- a store that was spoilt ----


@pytest.mark.parametrize("fault", faults.SPOILT)
def test_a_spoilt_entry_is_a_missing_one(fault: str, tmp_path: Path) -> None:
    folder, key = tmp_path / "store", "0f" * 16
    Store(folder).put(key, {"runs": pl.DataFrame({"seed": [1]})}, {"command": "fanin run x"})
    Store(folder).keep_sweep("sweep", pl.DataFrame({"seed": [1]}))
    if fault == "a head that is a number":
        return
    faults.SPOILT[fault](folder)
    store = Store(folder)
    entry = store.entry(key)
    whole = "sweep" in fault
    assert (store.get(key) is not None) == whole
    assert isinstance(entry.about(), dict)
    assert entry.holds("runs") in (True, False)


def test_a_sweep_over_spoilt_entries_runs_them_again(tmp_path: Path, full: Path) -> None:
    store = with_store(tmp_path, full)
    faults.SPOILT["an entry that is a number"](store)
    ended = faults.in_shell(tmp_path, ":", faults.COMMANDS["sweep"])
    assert (ended.code, faults.faults(tmp_path, ended)) == (0, [])
    assert all(isinstance(json.loads(file.read_text()), dict) for file in store.rglob("entry.json"))


def test_rows_that_are_a_pipe_are_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "runs.parquet")
    with pytest.raises(OSError, match="it is no ordinary file"):
        read_parquet(tmp_path / "runs.parquet")
    store = Store(tmp_path / "store")
    store.make()
    store.keep_sweep("sweep", pl.DataFrame({"seed": [1]}))
    (rows,) = store.sweeps().values()
    rows.unlink()
    os.mkfifo(rows)
    assert store.sweeps() == {}


def test_a_head_of_a_store_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "store.json")
    with pytest.raises(OutputError, match="cannot be read as the head of a store"):
        Store(tmp_path)


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [("plot", 2, "it holds no rows that can be read"), ("store", 0, "damaged: the rows of sweep")],
)
def test_a_sweep_whose_rows_are_none_is_said_to_be_damaged(
    command: str, code: int, said: str, tmp_path: Path, full: Path
) -> None:
    faults.SPOILT["rows of a sweep that are none"](with_store(tmp_path, full))
    ended = faults.in_shell(tmp_path, ":", faults.COMMANDS[command])
    assert (ended.code, faults.faults(tmp_path, ended)) == (code, []), ended.err
    assert said in ended.err


# ---- limits ----


def test_a_limit_of_file_sizes_met_by_polars_is_the_systems_own_error(tmp_path: Path) -> None:
    code = (
        "import resource, pathlib, polars as pl\n"
        "from fanin.disk.files import write_parquet\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10_240, 10_240))\n"
        "rows = pl.DataFrame({'a': pl.Series(range(200_000)).hash()})\n"
        "try:\n    write_parquet(rows, pathlib.Path('x.parquet'))\n"
        "except OSError as error:\n    print(error.errno, error.filename)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "27 x.parquet\n", done.stderr


@pytest.mark.parametrize(
    ("command", "fault"),
    [
        ("trains", "memory 1000000 KB"),
        ("plot", "memory 1000000 KB"),
        ("run", "memory 450000 KB"),
        ("compare", "memory 700000 KB"),
        ("compare", "files of 10 KB"),
        ("run", "12 open files"),
        ("run", "6 open files"),
        ("run", "9 open files"),
        ("trains", "11 open files"),
        ("draw-svg", "9 open files"),
        ("compare", "4 open files"),
        ("draw", "12 open files"),
        ("draw-svg", "12 open files"),
        ("sweep", "6 open files"),
        ("sweep", "12 open files"),
        ("rack", "files of 0 KB"),
        ("draw", "no home"),
        ("list", "output on a full disk"),
    ],
)
def test_a_command_under_a_limit_does_its_work_or_says_one_sentence(
    command: str, fault: str, place: Path, full: Path
) -> None:
    if command == "plot":
        with_store(place, full)
    ended = faults.in_shell(place, faults.SHELLS[fault], faults.COMMANDS[command])
    assert faults.faults(place, ended) == [], ended.err


def test_a_store_that_is_a_file_is_told_as_one(place: Path) -> None:
    (place / "file").write_text("of the user")
    ended = faults.in_shell(place, "export FANIN_STORE=file", "store ls")
    assert (ended.code, ended.out) == (2, "")
    assert (
        ended.err
        == "fanin: error: file: it is a file, and a store is a folder; choose another with --store or FANIN_STORE\n"
    )
    assert (place / "file").read_text() == "of the user"


@pytest.mark.parametrize("files", [9, 10, 16, 20])
def test_code_under_a_limit_of_files_is_one_sentence_about_the_limit(files: int, place: Path) -> None:
    (place / "looping.py").write_text(LOOPING)
    ended = faults.in_shell(place, f"ulimit -n {files}", "run incast.toml --cc py:looping.Looping")
    said = "the system refused what was asked of it (too many open files); raise the limit (ulimit -a), and run again"
    assert (ended.code, ended.out, ended.err) == (2, "", f"fanin: error: {said}\n")


@pytest.mark.parametrize("command", ["--help", "draw incast.toml --out out.svg", "compare small.pcap.gz"])
def test_a_system_without_threads_is_one_sentence_before_libraries_end_the_process(command: str, place: Path) -> None:
    code = (
        "import _thread, sys\nfrom fanin import __main__\nsys.argv = sys.argv[:1] + sys.argv[1].split()\n"
        "start, left = _thread.start_new_thread, iter(range(9))\n"
        'def one_of_few(*words):\n    if next(left, None) is None:\n        raise RuntimeError("can\'t start new thread")\n'
        "    return start(*words)\n"
        "_thread.start_new_thread = one_of_few\n__main__.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code, command], cwd=place, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"fanin: error: this needs \d+ threads, and .* raise the limit .*\n", done.stderr), done.stderr


GONE = "the folder that this runs in was removed, so there is nothing beside it; change to another (cd), and run again"


@pytest.mark.parametrize(
    "words",
    [
        "run {}/incast.toml --out out",
        "run {}/incast.toml --cc py:mine.Mine",
        "draw {}/incast.toml",
        "draw {}/incast.toml --out out.svg",
        "compare {}/small.pcap.gz --rack {}/rack.toml --cc cubic --seeds 1",
        "trains {}/small.pcap.gz --out out",
        "rack {}/small.pcap.gz --out rack.toml",
        "model gss-incast --rate 1Gbps --rtt 100us --buffer 100p --out out.svg",
    ],
)
def test_in_a_folder_that_was_removed_a_command_says_so(words: str, place: Path) -> None:
    ended = faults.in_shell(place, faults.SHELLS["no folder"], words.replace("{}", str(place)))
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.splitlines()[-1] == f"fanin: error: {GONE}"
    assert ended.err.count("error") == 1


def test_in_a_folder_that_was_removed_a_command_that_needs_none_works(place: Path) -> None:
    ended = faults.in_shell(place, faults.SHELLS["no folder"], f"run {place}/incast.toml --json")
    assert (ended.code, json.loads(ended.out)["scenario"]["title"]) == (0, "four at once")
    ended = faults.in_shell(place, faults.SHELLS["no folder"], "run /nowhere/incast.toml")
    assert (ended.code, GONE in ended.err) == (2, False)


def test_what_native_code_shows_of_an_exception_is_not_shown_under_a_limit(tmp_path: Path) -> None:
    # As pyo3 does where a string finds no memory: it shows the exception (PyErr_Print), and panics.
    code = (
        "import ctypes, resource\nfrom fanin.process.limits import Apart\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 33, 1 << 33))\n{}"
        "ctypes.PyDLL(None).PyRun_SimpleString(b'raise MemoryError')\nprint('after')\n"
    )
    for begins, shown in (("", True), ("Apart().begin()\n", False)):
        done = subprocess.run(
            [sys.executable, "-c", code.format(begins)], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert (done.stdout, "Traceback" in done.stderr) == ("after\n", shown), done.stderr


@pytest.mark.parametrize(
    "meets",
    [
        # The main thread says it; a library's thread that meets the same aborts.
        "__main__._without_memory()\nos.abort()\n",
        # The other thread aborts between what the main thread says and the next that it does.
        "__main__.APART.forget = os.abort\n__main__._without_memory()\n",
    ],
    ids=["afterwards", "at once"],
)
def test_memory_that_runs_out_in_a_second_thread_too_is_said_once(tmp_path: Path, meets: str) -> None:
    code = (
        "import os, resource\nfrom fanin import _native, __main__\n"
        f"resource.setrlimit(resource.RLIMIT_AS, (1 << 33, 1 << 33))\n_native.end_without_memory()\n{meets}"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("out of memory")) == (2, "", 1), done.stderr


def test_what_native_code_said_needs_no_memory_of_its_size(tmp_path: Path) -> None:
    # After `rack` had written its file, it ended with 1: libraries had complained in more bytes than memory was left for.
    code = (
        "import os, pathlib, resource\nfrom fanin.process.limits import Apart\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 33, 1 << 33))\napart = Apart()\napart.begin()\n"
        "os.ftruncate(apart.notes, 1 << 27)\n"
        "taken = int(pathlib.Path('/proc/self/statm').read_text().split()[0]) * resource.getpagesize()\n"
        "limit = taken + (1 << 26)\nresource.setrlimit(resource.RLIMIT_AS, (limit, limit))\napart.end()\n"
    )
    with (tmp_path / "said").open("wb") as said:
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, stderr=said, check=False)
    assert (done.returncode, (tmp_path / "said").stat().st_size) == (0, 1 << 27)


def test_scratch_is_known_before_it_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Memory that runs out in making it ends the process at once; what removes it then must know its name.
    known: list[list[Path]] = []
    monkeypatch.setattr(scratch, "_tell", lambda: known.append(list(scratch._LIVE)))

    def fails(folder: Path, *_: object, **__: object) -> None:
        assert folder in known[-1]
        raise MemoryError

    monkeypatch.setattr(Path, "mkdir", fails)
    with pytest.raises(MemoryError), scratch_folder(tmp_path):
        pass
    with pytest.raises(MemoryError), output_folder(tmp_path / "results"):
        pass
    assert known[-1] == []


def test_what_is_half_written_goes_when_memory_runs_out_in_a_library(tmp_path: Path) -> None:
    for name in (".fanin-a", ".new-b", "empty", "full"):
        (tmp_path / name).mkdir()
    for name in (".fanin-a", ".new-b", "full"):
        (tmp_path / name / "file").write_text("")
    # A library that finds no memory aborts.
    code = (
        "import os, resource, pathlib\nfrom fanin import _native\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 33, 1 << 33))\n_native.end_without_memory()\n"
        "_native.clean_without_memory([pathlib.Path(p).absolute() for p in ('.fanin-a', '.new-b', 'empty', 'full')])\n"
        "os.abort()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("fanin: error: out of memory")
    assert [path.name for path in tmp_path.iterdir()] == ["full"]


def test_what_cannot_be_removed_for_want_of_memory_goes_as_the_process_ends(tmp_path: Path) -> None:
    # Seen in `trains`: a library raised, and then there was no memory to list the folder with.
    code = (
        "import resource, shutil\nfrom fanin import _native, __main__\nfrom fanin.disk.files import output_folder\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 33, 1 << 33))\nshutil.rmtree = lambda *_, **__: None\n"
        "try:\n    with output_folder('new/out') as folder:\n        (folder / 'file').touch()\n        raise MemoryError\n"
        "except MemoryError:\n    __main__._without_memory()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("out of memory"), list(tmp_path.iterdir())) == (2, 1, []), done.stderr


# ---- Ctrl-C ----


def blocked(process: subprocess.Popen[str]) -> None:
    """Wait until a command waits for its input."""
    until = time.monotonic() + 120
    while time.monotonic() < until and process.poll() is None:
        for task in Path(f"/proc/{process.pid}/task").iterdir():
            try:
                waits = (task / "wchan").read_text()
            except OSError:
                continue
            if waits in ("wait_for_partner", "pipe_read", "anon_pipe_read", "fifo_open"):
                return
        time.sleep(0.05)
    time.sleep(3)  # the system does not tell


@pytest.mark.parametrize(
    "words",
    [
        "trains fifo",
        "compare fifo --rack rack.toml --json",
        "compare small.pcap.gz --rack fifo --json",
        "run fifo",
        "draw fifo",
        "sweep fifo",
    ],
)
def test_ctrl_c_ends_a_command_that_waits_for_a_writer(words: str, place: Path) -> None:
    os.mkfifo(place / "fifo")
    with faults.started(place, words) as process:
        blocked(process)
        ended = faults.interrupted(process)
    assert (ended.code, ended.err) == (130, "fanin: interrupted, nothing was written\n")
    assert faults.faults(place, ended, codes=(130,)) == []


def test_ctrl_c_ends_a_command_whose_pipe_is_silent(place: Path) -> None:
    read, write = os.pipe()
    try:
        with faults.started(place, "trains -", stdin=read) as process:
            blocked(process)
            ended = faults.interrupted(process)
    finally:
        os.close(read)
        os.close(write)
    assert (ended.code, ended.err) == (130, "fanin: interrupted, nothing was written\n")


def test_ctrl_c_ends_a_callback_in_python_that_loops(place: Path) -> None:
    (place / "looping.py").write_text(LOOPING)
    with faults.started(place, "run incast.toml --cc py:looping.Looping") as process:
        time.sleep(4)
        assert process.poll() is None, process.communicate()
        ended = faults.interrupted(process)
    assert faults.faults(place, ended, codes=(130,)) == [], ended.err


HANGS = """
import ctypes, os, resource, sys, threading
import fanin.commands.cli
from fanin import __main__
from fanin.disk.scratch import scratch_folder
resource.setrlimit(resource.RLIMIT_AS, (1 << 33, 1 << 33))
library = ctypes.CDLL(None)
lock = ctypes.create_string_buffer(64)
library.pthread_mutex_lock(lock)
names = {{}}
exec(compile("def hangs(library, lock): library.pthread_mutex_lock(lock)", {file!r}, "exec"), names)
def app(**_):
    with scratch_folder("."):
        print("hangs", flush=True)
        names["hangs"](library, lock)
fanin.commands.cli.app = app
os.environ["_FANIN_COMPLETE"] = "in place of a command"
__main__.main()
"""


def test_ctrl_c_ends_a_command_whose_library_never_comes_back(tmp_path: Path) -> None:
    ended = {}
    with ExitStack() as running:
        processes = {
            name: running.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", HANGS.format(file=f"/lib/{name}/frame.py")],
                    cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                )
            )
            for name in ("polars", "other")
        }  # fmt: skip
        for process in processes.values():
            assert process.stdout is not None
            assert process.stdout.readline() == "hangs\n"
        time.sleep(2)  # until they do
        for process in processes.values():
            process.send_signal(signal.SIGINT)
        signalled = time.monotonic()
        for name, process in processes.items():
            try:
                left_s = signalled + (60 if name == "polars" else 8) - time.monotonic()
                ended[name] = faults.Ended(process.wait(max(left_s, 0)), *process.communicate())
            except subprocess.TimeoutExpired:
                process.kill()
    # Elsewhere a command may take its time.
    assert list(ended) == ["polars"]
    assert (ended["polars"].code, ended["polars"].err) == (130, "fanin: interrupted, nothing was written\n")
    assert len([path for path in tmp_path.iterdir() if path.name.startswith(".fanin-")]) == 1, "the killed one's"


NAMED = {
    "workload": ("run", '[[workload]]\nkind = "replay"\nfile = "{}"'),
    "hosts": ("draw", 'hosts = "{}"\n[[workload]]\nkind = "incast"\nbytes = "64KB"'),
    "distribution": ("run", '[[workload]]\nkind = "poisson"\nload = 0.1\nsize = "{}"'),
}


@pytest.mark.parametrize("what", NAMED)
@pytest.mark.parametrize("file", ["fifo.toml", "/dev/zero", "sparse.toml"])
def test_a_file_that_a_scenario_names_is_read_only_if_it_can_be_read_to_its_end(
    what: str, file: str, place: Path, fanin: Fanin, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(place / "fifo.toml")
    with (place / "sparse.toml").open("wb") as sparse:
        sparse.truncate(1 << 40)
    command, text = NAMED[what]
    before, _, after = text.rpartition("[[workload]]")
    (place / "names.toml").write_text(f"{before}[topology]\nsenders = 2\n[[workload]]{after}".format(file))
    monkeypatch.chdir(place)
    done = fanin(command, "names.toml")
    assert done.code == 2
    refusals = ("it is no regular file", "it is no text", "no scenario is", "no hosts are named `/dev/zero`")
    assert any(refusal in done.err for refusal in refusals), done.err


@pytest.mark.parametrize("words", ["run /dev/zero", "compare small.pcap.gz --rack /dev/zero", "sweep /dev/zero"])
def test_a_scenario_without_an_end_is_refused(words: str, place: Path) -> None:
    ended = faults.in_shell(place, "ulimit -v 4000000", words)
    assert ended.code == 2
    assert ended.err == "fanin: error: /dev/zero: it is larger than 16 MB, which no scenario is\n"


def test_a_scenario_comes_through_a_pipe(place: Path, fanin: Fanin) -> None:
    done = faults.in_shell(place, "exec 7< <(cat incast.toml)", "run /dev/fd/7 --json")
    assert done.code == 0, done.err


# ---- signals at any moment ----


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, full: Path) -> Callable[[str], faults.Usual]:
    """How each command ends that nothing stops, run once."""
    return functools.cache(lambda words: faults.usual(fresh(tmp_path_factory.mktemp("whole"), full), words))


def fresh(top: Path, full: Path) -> Path:
    """A folder with what the commands name and a store of its own."""
    return with_store(Path(tempfile.mkdtemp(dir=top)), full).parent


@pytest.mark.parametrize("number", faults.SIGNALS, ids=lambda number: number.name)
@pytest.mark.parametrize("command", ["run", "compare", "plot", "rack"])
def test_a_command_that_a_signal_stopped_works_when_it_is_given_once_more(
    command: str, number: signal.Signals, tmp_path: Path, full: Path, whole: Callable[[str], faults.Usual]
) -> None:
    words, draw = faults.COMMANDS[command], random.Random(command)
    usual = whole(words)
    for part in range(3):
        after_s = usual.took_s * (part + draw.random()) / 3
        assert faults.stopped(fresh(tmp_path, full), words, number, after_s, usual) == [], f"after {after_s:.2f} s"


def test_what_a_killed_command_left_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: Callable[[str], faults.Usual]
) -> None:
    folder, usual = faults.place(tmp_path), whole(faults.COMMANDS["rack"])
    run = faults.in_shell

    def leaves(folder: Path, before: str, words: str) -> faults.Ended:
        ended = run(folder, before, words)
        (folder / ".fanin-left").touch()
        (folder / "tmp" / "left").touch()
        return ended

    monkeypatch.setattr(faults, "in_shell", leaves)
    found = faults.stopped(folder, faults.COMMANDS["rack"], signal.SIGKILL, 0.01, usual)
    assert found == ["then it leaves .fanin-left", "then there is left"]


# ---- what a killed process leaves ----

HOLDING = """
import sys, time
from pathlib import Path
from fanin.disk.scratch import scratch_file, scratch_folder
with scratch_folder(Path("."), ".fanin-"), scratch_file(Path("."), ".svg"):
    print("made", flush=True)
    time.sleep(600)
"""


def test_what_a_killed_process_left_is_removed_by_the_next_and_nothing_of_a_live_one(tmp_path: Path) -> None:
    killed, lives = (
        subprocess.Popen([sys.executable, "-c", HOLDING], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    )
    try:
        for process in (killed, lives):
            assert process.stdout is not None
            assert process.stdout.readline() == "made\n"
        assert len(list(tmp_path.iterdir())) == 4
        killed.kill()
        killed.wait()
        with scratch_folder(tmp_path) as folder, scratch_file(tmp_path, ".html") as file:
            assert len(list(tmp_path.iterdir())) == 4
            assert folder.is_dir()
            assert file.is_file()
        assert len(list(tmp_path.iterdir())) == 2
    finally:
        for process in (killed, lives):
            process.kill()
            process.communicate()


def test_a_folder_that_another_process_takes_before_it_is_locked_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, takes = scratch.locked, iter([True, False])

    def taken(folder: Path, *, wait: bool = True) -> int | None:
        if wait and next(takes):
            remove_abandoned(tmp_path)
            assert not folder.exists()
        return lock(folder, wait=wait)

    monkeypatch.setattr(scratch, "locked", taken)
    with scratch_folder(tmp_path) as folder:
        assert folder.is_dir()
        remove_abandoned(tmp_path)
        assert folder.is_dir()


def test_what_a_killed_writer_left_in_a_store_is_removed_by_the_next_command(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    store.put("0f" * 16, {"runs": pl.DataFrame({"seed": [1]})})
    code = (
        "import os, signal, sys, polars as pl\n"
        "from fanin.runs import store\n"
        "store._write_file = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"store.Store({str(store.folder)!r}).put('0e' * 16, {{'runs': pl.DataFrame({{'seed': [2]}})}})\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGKILL
    assert len(store.scratch()) == 1
    Store(store.folder).make()
    assert [p for p in (store.folder / store.engine).iterdir() if p.name.startswith(".")] == []


# ---- captures that say more than they hold ----


def test_gigabytes_inferred_from_few_packets_are_refused(tmp_path: Path, place: Path, fanin: Fanin) -> None:
    linktype, packets = spoilt.read(SMALL)
    kept = [p for p in packets if not spoilt.bare(p)][:50]
    jumping = []
    for number, (at, original, stored) in enumerate(kept):
        where = spoilt.ETHERNET + (stored[spoilt.ETHERNET] & 15) * 4 + 4
        sequence = (int.from_bytes(stored[where : where + 4], "big") + number * 90_000_000) % 2**32
        jumping.append((at, original, stored[:where] + sequence.to_bytes(4, "big") + stored[where + 4 :]))
    spoilt.write(place / "jumps.pcap", linktype, jumping)
    outcome = fanin("compare", str(place / "jumps.pcap"), "--rack", str(place / "rack.toml"), "--json")
    assert outcome.code == 2
    assert "more bytes would have to be inferred from jumps of sequence numbers" in outcome.err


def test_mutants_of_captures_racks_and_traces_end_in_answers_or_sentences() -> None:
    # A process of its own: a fork of one that has run threads may hang.
    code = "from tests.python.mutants import main; raise SystemExit(main(1e9, 28, 16))"
    done = subprocess.run([sys.executable, "-c", code], cwd=faults.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "16 mutants, 0 ended badly" in done.stdout


# ---- at the same time ----


def test_a_second_run_into_one_folder_is_refused_and_the_first_is_whole(place: Path) -> None:
    code = "from fanin.disk.files import output_folder\nwith output_folder('out'):\n    print('holds', flush=True)\n    input()\n"
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=place, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "holds\n"
        ended = faults.in_shell(place, ":", "run incast.toml --out out")
        first.communicate("\n")
    assert ended.code == 2
    assert ended.err.endswith("out: another fanin is writing there; wait for it, or choose another folder with --out\n")
    assert not (place / "out").exists()


def test_a_capture_that_grows_while_it_is_read_is_used_up_to_some_packet(place: Path, fanin: Fanin) -> None:
    linktype, packets = spoilt.read(SMALL)
    whole = spoilt.write(place / "whole.pcap", linktype, packets).read_bytes()
    os.mkfifo(place / "growing")
    with faults.started(place, "trains growing --json") as process:
        with (place / "growing").open("wb") as file:
            for at in range(0, len(whole) - 7, 100_000):
                file.write(whole[at : min(at + 100_000, len(whole) - 7)])
                file.flush()
        out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    told = json.loads(out)
    assert told["capture"]["packets"] == len(packets) - 1
    assert told["partial"] is not None


def test_a_cache_that_was_cut_short_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fanin.disk import cache

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.kept("text", lambda: "whole") == "whole"
    (file,) = (tmp_path / "fanin").iterdir()
    for length in range(len(file.read_bytes())):
        file.write_bytes(file.read_bytes()[:length])
        assert cache.kept("text", lambda: "whole") == "whole"
        assert cache.recalled("text") == b"whole"
