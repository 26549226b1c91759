"""Code that a scenario names, in C or Python, runs without rights in a process of its own, and its end is one sentence."""

from __future__ import annotations

import csv
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import fanin as api
import pytest
from fanin.confined import client

from . import faults
from .conftest import Fanin, processes_in

needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has seccomp and Landlock")

SCENARIO = """
[topology]
kind = "dumbbell"
pairs = 2
rate = "1Gbps"
delay = "20us"
bottleneck_rate = "100Mbps"
[stack]
profile = "linux"
[[workload]]
kind = "long"
[run]
duration = "100ms"
"""

RENO = """
#include <linux/module.h>
#include <net/tcp.h>
{top}
static u32 half_ssthresh(struct sock *sk)
{{
	return max(tcp_snd_cwnd(tcp_sk(sk)) / 2, 2U);
}}
static void avoid(struct sock *sk, u32 ack, u32 acked)
{{
	{callback}
	tcp_reno_cong_avoid(sk, ack, acked);
}}
static struct tcp_congestion_ops half = {{
	.ssthresh = half_ssthresh, .cong_avoid = avoid, .undo_cwnd = tcp_reno_undo_cwnd,
	.owner = THIS_MODULE, .name = "half",
}};
static int __init half_register(void) {{ return tcp_register_congestion_control(&half); }}
module_init(half_register);
MODULE_LICENSE("GPL");
"""


def c_file(path: Path, callback: str = "", top: str = "") -> Path:
    path.write_text(RENO.format(callback=callback, top=top))
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "two.toml").write_text(SCENARIO)
    (tmp_path / "mine.py").write_text(
        textwrap.dedent("""
        import fanin
        class Ten(fanin.CongestionControl):
            "Ten packets."
            parameters = {"extra": 0.1}
            def on_ack(self, conn, ack):
                self.cwnd = 10.0 + self.setup.parameters["extra"]
            def on_congestion(self, conn, cause):
                pass
        """)
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FANIN_CODE_LIMIT_S", "3")
    return tmp_path


DEATHS = [
    ("exit(0);", "void exit(int);", "it ended its process with exit code 0 during a run"),
    ("*(volatile int *)8 = 1;", "", "it ended its process by SIGSEGV during a run"),
    (
        "volatile char *p = malloc(24); for (long i = -16; i < 4096; i++) p[i] = 7; free((void *)p);",
        "void *malloc(unsigned long); void free(void *);",
        "it ended its process by SIG",
    ),
    ('for (;;) asm volatile("");', "", "it was stopped: it used the processor for 1 s without coming back"),
    (
        'for (int i = 0; i < 1024; i++) close(i); for (;;) asm volatile("");',
        "int close(int);",
        "it was stopped: it used the processor for 1 s without coming back",
    ),
    ("for (;;) fork();", "int fork(void);", "it was stopped: it used the processor for 1 s without coming back"),
    (
        "kill(getppid(), 15);",
        "int kill(int, int); int getppid(void);",
        "it was ended: it tried to send a signal to another process, or to reach its memory, during a run",
    ),
    ("ptrace(16, getppid(), 0, 0);", "long ptrace(int, int, long, long); int getppid(void);", "it was ended: it tried"),
    (
        "volatile char *p = malloc(1UL << 60); *p = 1;",
        "void *malloc(unsigned long);",
        "SIGSEGV during a run and said: it has met the limit of memory with an allocation of 1152921504606846976 bytes",
    ),
    (
        "kill(getpid(), 9);",
        "int kill(int, int); int getpid(void);",
        "it was ended by SIGKILL, as the system does when memory runs out, during a run",
    ),
    ("sleep(100000);", "unsigned sleep(unsigned);", "it was stopped: it waited for 6 s without coming back"),
]


@needs_cc
@pytest.mark.parametrize(
    ("callback", "top", "message"),
    DEATHS,
    ids=["exit", "segv", "heap", "loop", "closed", "fork", "kill", "ptrace", "memory", "killed", "sleep"],
)
def test_the_death_of_a_c_file_is_one_sentence_with_its_name(
    fanin: Fanin, folder: Path, monkeypatch: pytest.MonkeyPatch, callback: str, top: str, message: str
) -> None:
    if "it was stopped" in message:  # What does not end is waited for until its limit.
        monkeypatch.setenv("FANIN_CODE_LIMIT_S", "1")
    c_file(folder / "evil.c", callback, top)
    done = fanin("run", "two.toml", "--cc", "./evil.c", "--json")
    assert done.code == 2
    assert done.out == ""
    [line] = done.err.strip().splitlines()
    assert line.startswith("fanin: error: `./evil.c`: ")
    assert message in line


@needs_cc
def test_a_constructor_that_exits_is_one_sentence(fanin: Fanin, folder: Path) -> None:
    c_file(folder / "evil.c", top="void _exit(int); __attribute__((constructor)) static void now(void) { _exit(0); }")
    done = fanin("run", "two.toml", "--cc", "./evil.c")
    assert done.code == 2
    assert "`./evil.c`: it ended its process with exit code 0 while it was loaded" in done.err


@needs_cc
def test_other_runs_of_a_command_go_on(fanin: Fanin, folder: Path) -> None:
    c_file(folder / "evil.c", "exit(0);", "void exit(int);")
    c_file(folder / "good.c")
    done = fanin("run", "two.toml", "--cc", "./good.c,./evil.c,reno", "--json")
    assert [f["cc"] for f in done.json()["failures"]] == ["./evil.c"]
    (folder / "sweep.toml").write_text('scenario = "two.toml"\nseeds = [1]\n[axis.cc]\nvalues = ["./evil.c", "reno"]\n')
    swept = fanin("sweep", "sweep.toml", "--out", "swept.csv", "--json")
    assert swept.code == 1, swept.err
    assert [row["status"] for row in csv.DictReader((folder / "swept.csv").read_text().splitlines())] == [
        "failed",
        "done",
    ]
    assert "`./evil.c`: it ended its process with exit code 0 during a run" in (folder / "swept.csv").read_text()


@needs_cc
def test_a_file_gives_the_same_numbers_as_the_same_algorithm_in_the_process(folder: Path) -> None:
    c_file(folder / "good.c")
    own, engines = (api.run("two.toml", cc=cc, seeds=[1, 2]) for cc in ("./good.c", "reno"))
    for name in ("messages", "flows", "ports"):
        assert getattr(own, name).drop("cc").equals(getattr(engines, name).drop("cc")), name


def test_a_class_gives_the_same_numbers_in_a_worker_as_registered_here(folder: Path) -> None:
    class Ten(api.CongestionControl):
        """Ten packets."""

        def on_ack(self, conn: object, ack: object) -> None:
            self.cwnd = 10.1

        def on_congestion(self, conn: object, cause: object) -> None:
            pass

    here, there = api.run("two.toml", cc=api.register(Ten, "ten-here")), api.run("two.toml", cc="py:mine.Ten")
    assert here.flows.drop("cc").equals(there.flows.drop("cc"))
    assert "mine" not in sys.modules


def test_a_class_has_no_rights(fanin: Fanin, folder: Path) -> None:
    outside = Path.home() / ".fanin-secret-of-a-test"
    attempts = {
        "write": "open('made', 'w')",
        "secret": f"open({str(outside)!r}).read()",
        "process": "__import__('subprocess').run(['true'])",
        "socket": "__import__('socket').socket()",
        "remove": "os.remove('two.toml')",
        "mode": "os.chmod('two.toml', 0o777)",
    }
    outside.write_text("secret")
    try:
        for name, attempt in attempts.items():
            (folder / f"bad_{name}.py").write_text(
                f"import os, fanin\nclass Bad(fanin.CongestionControl):\n"
                f"    def on_ack(self, conn, ack): {attempt}\n    def on_congestion(self, conn, cause): pass\n"
            )
            done = fanin("run", "two.toml", "--cc", f"py:bad_{name}.Bad")
            assert done.code == 2
            assert f"`py:bad_{name}.Bad`: PermissionError: " in done.err, (name, done.err)
    finally:
        outside.unlink()
    assert not (folder / "made").exists()
    assert (folder / "two.toml").read_text() == SCENARIO


def test_a_class_sees_no_secret_of_the_users_environment(
    fanin: Fanin, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_SECRET_ACCESS_KEY", "LDAP_PASSWORD", "PYTHON_TOKEN"):
        monkeypatch.setenv(name, "of-a-test")
    monkeypatch.setenv("LC_NUMERIC", "C.utf8")
    # Also what the process began with, which it may read of itself.
    began = "open('/proc/self/environ').read()"
    (folder / "spy.py").write_text(
        f"import os, fanin\nclass Spy(fanin.CongestionControl):\n    seen = str(sorted(os.environ.items())) + {began}\n"
        "    def on_ack(self, conn, ack):\n        raise Exception(f'secret: {\"of-a-test\" in self.seen}, {sorted(os.environ)}')\n"
        "    def on_congestion(self, conn, cause): pass\n"
    )
    done = fanin("run", "two.toml", "--cc", "py:spy.Spy")
    assert "secret: False" in done.err
    assert all(f"'{name}'" in done.err for name in ("PATH", "LC_NUMERIC", "FANIN_CODE_LIMIT_S"))


HOARDS = {
    "files in memory": "open(os.memfd_create('x'), 'wb')",
    "a pipe's buffer": "fcntl.fcntl(os.pipe()[1], fcntl.F_SETPIPE_SZ, 1 << 20)",
    "messages between sockets": "__import__('socket').socketpair()",
    "descriptors": "self.kept.extend(os.pipe() for _ in range(600))",
    "arrays": "self.kept.append(bytearray(1 << 45))",
}


@pytest.mark.parametrize("hoard", HOARDS)
def test_code_cannot_fill_the_memory(hoard: str, fanin: Fanin, folder: Path) -> None:
    (folder / "hoard.py").write_text(
        f"import fcntl, os, fanin\nclass Hoard(fanin.CongestionControl):\n    kept = []\n"
        f"    def on_ack(self, conn, ack): {HOARDS[hoard]}\n    def on_congestion(self, conn, cause): pass\n"
    )
    done = fanin("run", "two.toml", "--cc", "py:hoard.Hoard")
    assert done.code == 2
    assert re.search(r"`py:hoard.Hoard`: (PermissionError|OSError: \[Errno 24\]|MemoryError)", done.err), done.err


FORGERIES = {
    "the end of a run": ('put(b"D"); os._exit(0)', "it has no results messages, flows"),
    "a frame without end": (
        'put(b"F", length=1 << 62); os.write(5, bytes(1 << 24))',
        "it has 4611686018427387904 bytes, and there is room",
    ),
    "no frames": (
        '[put(b"F", bytes([len(name)]) + name.encode() + b"ARROW1") for name in NAMES]; put(b"D"); os._exit(0)',
        "what came back from its process cannot be read: ",
    ),
    "a description of another file": (
        "pass",
        "what came back from its process cannot be read: it names an object for a class",
    ),
    "progress that is no number": (
        'put(b"P", struct.pack("<d", float("nan")))\n                while True: pass',
        "it was stopped: it used the processor for 1 s",
    ),
    "an interruption": ('put(b"E", b\'{"class": "Interrupted", "message": "Ctrl-C"}\'); os._exit(0)', "error: Ctrl-C"),
    "an error without a word": (
        'put(b"E", b\'{"class": "EngineError", "message": " \\\\u200b\\\\n"}\'); os._exit(0)',
        "`py:forger.Forger`: what came back from its process cannot be read: its error says nothing",
    ),
    "a long error": ('raise Exception("x" * 10**7)', "x ..."),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_what_code_writes_in_the_workers_place_is_one_sentence(
    forgery: str, fanin: Fanin, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    does, said = FORGERIES[forgery]
    loaded = ""
    if "description" in forgery:
        told = {"said": client._look("py:mine.Ten")["said"], "object": ["/etc/passwd", "1"], "files": []}
        loaded = f'put(b"S", {json.dumps(told).encode()!r}); put(b"D"); os._exit(0)'
    if "was stopped" in said:
        monkeypatch.setenv("FANIN_CODE_LIMIT_S", "1")
    (folder / "forger.py").write_text(forger(does, loaded))
    done = fanin("run", "two.toml", "--cc", "py:forger.Forger")
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert len(done.err) < 2_000
    assert len(done.err.strip().splitlines()) == 1


@pytest.mark.parametrize("told", [b"5", b"[]", b'{"said": {"params": 5}, "files": 7}', None])
def test_a_description_that_is_none_is_one_sentence(told: bytes | None, fanin: Fanin, folder: Path) -> None:
    does = f'put(b"S", {told!r}); ' if told is not None else ""
    (folder / "forger.py").write_text(forger("pass", f'{does}put(b"D"); os._exit(0)'))
    done = fanin("run", "two.toml", "--cc", "py:forger.Forger")
    assert done.code == 2
    assert "`py:forger.Forger`: what came back from its process cannot be read: it is no description" in done.err
    assert len(done.err.strip().splitlines()) == 1


@pytest.mark.parametrize("name", ["mine", ".Ten", "mine.", "../mine.Ten", "mine..Ten", "mine:Ten", "mine.T en"])
def test_a_class_that_is_not_named_by_module_and_class_is_told_how(name: str, fanin: Fanin, folder: Path) -> None:
    done = fanin("run", "two.toml", "--cc", f"py:{name}")
    assert (done.code, done.out) == (2, "")
    assert done.err.endswith("ImportError: a class is named by its module and itself, as in py:module.Class\n"), (
        done.err
    )


def test_a_module_in_the_folder_that_is_named_as_one_of_pythons_runs_without_rights(folder: Path) -> None:
    (folder / "json.py").write_text("open('escaped', 'w').close()\n")
    words = [sys.executable, "-P", "-m", "fanin", "run", "two.toml", "--cc", "py:mine.Ten"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, "Ten" in done.stdout or "mine" in done.stdout) == (0, True), done.stderr
    assert not (folder / "escaped").exists()


def test_a_run_has_nothing_by_which_its_worker_hears_of_others(fanin: Fanin, folder: Path) -> None:
    (folder / "spy.py").write_text(
        "import os, fanin\nclass Spy(fanin.CongestionControl):\n"
        "    def on_ack(self, conn, ack):\n"
        "        names = [os.readlink(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd') if os.path.islink(f'/proc/self/fd/{n}')]\n"
        "        raise Exception(str(sorted(n.split(':')[0] for n in names if 'pipe' not in n and '/' not in n)))\n"
        "    def on_congestion(self, conn, cause): pass\n"
    )
    assert "Exception: [] (in" in fanin("run", "two.toml", "--cc", "py:spy.Spy").err


SPOILT = {
    "frame.with_columns(-pl.col('goodput_bps'))": "`flows` has a `goodput_bps` below zero",
    "frame.with_columns(pl.col('goodput_bps') * float('nan'))": "`flows` has a `goodput_bps` that is no number",
    "frame.with_columns(pl.col('timeouts').cast(pl.String))": "`flows` has a `timeouts` of type String",
    "frame.with_columns(pl.lit(None, pl.UInt64).alias('timeouts'))": "`flows` has a `timeouts` without a value",
}


@pytest.mark.parametrize("change", SPOILT)
def test_results_that_no_run_leaves_are_refused(change: str, fanin: Fanin, folder: Path) -> None:
    (folder / "spoiler.py").write_text(
        textwrap.dedent(f"""
        import fanin, polars as pl
        from fanin.confined import wire
        whole = wire.Writer.frames
        def spoilt(self, frames):
            if "flows" in frames:
                frame = frames["flows"]
                frames = {{**frames, "flows": {change}}}
            whole(self, frames)
        wire.Writer.frames = spoilt
        class Spoiler(fanin.CongestionControl):
            def on_ack(self, conn, ack): pass
            def on_congestion(self, conn, cause): pass
        """)
    )
    done = fanin("run", "two.toml", "--cc", "py:spoiler.Spoiler")
    assert (done.code, done.out) == (2, "")
    assert f"`py:spoiler.Spoiler`: what came back from its process cannot be read: {SPOILT[change]}" in done.err


def test_a_class_is_another_version_where_its_module_or_what_that_imports_has_changed(folder: Path) -> None:
    module = (folder / "mine.py").read_text()
    versions = []
    for number, (before, gain) in enumerate(
        [("G = 1", "A = 1"), ("G = 2", "A = 1"), ("G = 1", "A = 2"), ("G = 1", "A = 1")]
    ):
        (folder / "gain.py").write_text(f"{gain}\n")
        (folder / "mine.py").write_text(f"from gain import A\n{before}\n{module}")
        for file in ("gain.py", "mine.py"):
            os.utime(folder / file, (number, number))
        versions.append(client.describe("py:mine.Ten")["version"])
    assert len(set(versions)) == 3
    assert versions[0] == versions[3]


@needs_cc
def test_only_what_was_compiled_is_loaded(folder: Path) -> None:
    source = c_file(folder / "half.c")
    told = client._look("./half.c")
    made = Path(told["object"][0])
    client._check_object("./half.c", told["object"])
    spoilt = made.with_name("link.so")
    spoilt.symlink_to("/etc/passwd")
    try:
        for other in (source, Path("/etc/passwd"), Path("/dev/zero"), spoilt, made.parent):
            with pytest.raises(ValueError, match="its object is none that was compiled"):
                client._check_object("./half.c", [str(other), "1"])
        with pytest.raises(ValueError, match="or none for a C file"):
            client._check_object("./half.c", None)
    finally:
        spoilt.unlink()


REFUSED = {
    "mount_setattr": 442, "move_mount": 429, "open_tree": 428, "fsopen": 430, "fspick": 433, "shmctl": 31, "semctl": 66, "msgctl": 71,
    "semop": 65, "msgsnd": 69, "vhangup": 153, "kexec_file_load": 320, "quotactl_fd": 443, "migrate_pages": 256, "sched_setparam": 142,
    "capset": 126,
}  # fmt: skip
"""System calls of x86-64 by which code could change what is not its own."""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="numbers of system calls are an architecture's own")
def test_code_reaches_neither_mounts_nor_what_programs_share(fanin: Fanin, folder: Path) -> None:
    asks = f"left = [name for name, number in {REFUSED!r}.items() if libc.syscall(number, -1, 0, 0, 0, 0) != -1 or ctypes.get_errno() != 1]"
    (folder / "spy.py").write_text(
        textwrap.dedent(f"""
        import ctypes, os, fanin
        libc = ctypes.CDLL(None, use_errno=True)
        class Spy(fanin.CongestionControl):
            def on_ack(self, conn, ack):
                {asks}
                rights = [line.split()[1] for line in open("/proc/self/status") if line.startswith("CapEff")]
                bound = libc.sched_setaffinity(os.getppid(), 8, b"1" * 8)
                raise Exception(f"open to it: {{left}} {{int(rights[0], 16) & ~4}} {{bound}}")
            def on_congestion(self, conn, cause):
                pass
        """)
    )
    assert "open to it: [] 0 -1" in fanin("run", "two.toml", "--cc", "py:spy.Spy").err


def forger(does: str, loaded: str = "") -> str:
    """A class that writes on the pipe of its worker's results, whichever it is."""
    return textwrap.dedent(f"""
        import os, struct, fanin
        from fanin.runs import FRAMES as NAMES
        def put(kind, body=b"", length=None):
            for pipe in range(3, 12):
                try:
                    os.write(pipe, struct.pack("<cQ", kind, len(body) if length is None else length) + body)
                except OSError:
                    pass
        {loaded}
        class Forger(fanin.CongestionControl):
            def on_ack(self, conn, ack):
                {does}
            def on_congestion(self, conn, cause):
                pass
    """)


def test_code_reads_nothing_of_other_processes(fanin: Fanin, folder: Path) -> None:
    (folder / "spy.py").write_text(
        "import os, fanin\nclass Spy(fanin.CongestionControl):\n"
        "    def on_ack(self, conn, ack): open(f'/proc/{os.getppid()}/environ').read()\n"
        "    def on_congestion(self, conn, cause): pass\n"
    )
    done = fanin("run", "two.toml", "--cc", "py:spy.Spy")
    assert done.code == 2
    assert "`py:spy.Spy`: PermissionError: " in done.err


@needs_cc
def test_a_run_has_as_many_sets_of_parameters_of_a_file_as_copies_are_kept(fanin: Fanin, folder: Path) -> None:
    c_file(folder / "some.c", top="static int many = 1;\nmodule_param(many, int, 0644);")
    workloads = '[[workload]]\nkind = "long"\n[workload.cc]\nname = "./some.c"\nmany = {}\n'
    scenario = SCENARIO.replace('[[workload]]\nkind = "long"\n', "")
    for sets, code in ((64, 0), (65, 2)):
        (folder / "many.toml").write_text(scenario + "".join(workloads.format(2 + n) for n in range(sets)))
        done = fanin("run", "many.toml")
        assert done.code == code, done.err
    assert "`./some.c`: it has more than 64 sets of parameters, which is the most in one run" in done.err


def test_an_endless_loop_in_python_is_stopped(fanin: Fanin, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FANIN_CODE_LIMIT_S", "1")
    (folder / "loop.py").write_text(
        "import fanin\nclass Loop(fanin.CongestionControl):\n"
        "    def on_ack(self, conn, ack):\n        while True: pass\n    def on_congestion(self, conn, cause): pass\n"
    )
    done = fanin("run", "two.toml", "--cc", "py:loop.Loop")
    assert done.code == 2
    assert "`py:loop.Loop`: it was stopped: it used the processor for 1 s without coming back" in done.err


@needs_cc
def test_drawing_neither_compiles_nor_loads(fanin: Fanin, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marker = folder / "ran"
    c_file(folder / "evil.c", top="void _exit(int); __attribute__((constructor)) static void now(void) { _exit(0); }")
    (folder / "evil.py").write_text(f"open({str(marker)!r}, 'w')\n")
    monkeypatch.setenv("CC", "no-such-compiler")
    for name in ("./evil.c", "py:evil.Evil"):
        (folder / "named.toml").write_text(f'{SCENARIO}[cc]\nname = "{name}"\nfactor = 3\n')
        done = fanin("draw", "named.toml", "--out", "drawn.html")
        assert done.code == 0, done.err
    assert not marker.exists()


@needs_cc
def test_no_code_refuses_code_and_nothing_else(fanin: Fanin, folder: Path) -> None:
    c_file(folder / "good.c")
    (folder / "named.toml").write_text(f'{SCENARIO}[cc]\nname = "./good.c"\n')
    for words in (("run", "named.toml"), ("run", "two.toml", "--cc", "py:mine.Ten")):
        done = fanin("--no-code", *words)
        assert done.code == 2
        assert "it is code, and --no-code (or FANIN_NO_CODE) refuses scenarios that name code" in done.err
        assert len(done.err.strip().splitlines()) == 1 or "named.toml" in done.err
    os.environ.pop("FANIN_NO_CODE", None)
    assert fanin("--no-code", "run", "two.toml", "--cc", "reno").code == 0
    os.environ.pop("FANIN_NO_CODE", None)


@needs_cc
def test_captures_are_written_where_they_were_asked_for(fanin: Fanin, folder: Path) -> None:
    c_file(folder / "good.c")
    done = fanin("run", "two.toml", "--cc", "./good.c", "--pcap", "files")
    assert done.code == 0, done.err
    assert list((folder / "files").rglob("*.pcap"))


@needs_cc
def test_a_file_that_changes_is_read_again(folder: Path) -> None:
    c_file(folder / "good.c")
    first = api.run("two.toml", cc="./good.c").flows
    c_file(folder / "good.c", "if (tcp_snd_cwnd(tcp_sk(sk)) > 4) return;")
    assert not first.equals(api.run("two.toml", cc="./good.c").flows)


def test_what_code_prints_goes_to_stderr_without_control_characters(fanin: Fanin, folder: Path) -> None:
    (folder / "loud.py").write_text(
        "import fanin\nclass Loud(fanin.CongestionControl):\n"
        "    def __init__(self, setup):\n        super().__init__(setup); print('\\x1b[2Jhello')\n"
        "    def on_ack(self, conn, ack): pass\n    def on_congestion(self, conn, cause): pass\n"
    )
    done = fanin("run", "two.toml", "--cc", "py:loud.Loud", "--json")
    assert done.code == 0
    json.loads(done.out)
    assert "`py:loud.Loud` says: [2Jhello\n" in done.err
    assert all(line.startswith("`py:loud.Loud` says: ") for line in done.err.splitlines() if "hello" in line)
    assert "\x1b" not in done.err


@needs_cc
def test_a_compiler_reads_nothing_of_the_user_but_what_is_beside_the_file(fanin: Fanin, folder: Path) -> None:
    here = folder / "here"
    here.mkdir()
    (here / "own.h").write_text("#define OWN 1\n")
    (folder / "secret.h").write_text("secret words\n")
    c_file(here / "good.c", top='#include "own.h"\n#if OWN\nint own_is_read;\n#endif')
    assert fanin("run", "two.toml", "--cc", "here/good.c").code == 0
    c_file(here / "evil.c", top='#include "../secret.h"')
    done = fanin("run", "two.toml", "--cc", "here/evil.c")
    assert done.code == 2
    assert "Permission denied" in done.err
    assert "secret words" not in done.err


@needs_cc
@pytest.mark.parametrize("while_", ["compiled", "compiled by many that write", "loaded"])
@pytest.mark.parametrize(
    "command", ["run two.toml --cc ./slow.c", "compare small.pcap.gz --rack rack.toml --cc ./slow.c"]
)
def test_ctrl_c_ends_the_compiler_and_code_that_is_looked_at(
    folder: Path, monkeypatch: pytest.MonkeyPatch, command: str, while_: str
) -> None:
    faults.place(folder)
    loops = '__attribute__((constructor)) static void now(void) { for (;;) asm volatile(""); }'
    c_file(folder / "slow.c", top=loops if while_ == "loaded" else "")
    if while_ != "loaded":
        compiler = folder / "slow-cc"
        # Killed, each of many may be about to make one file more in the folder that is then removed.
        works = (
            "exec sleep 600"
            if while_ == "compiled"
            else "for i in 1 2 3 4 5 6 7 8; do (n=0; while :; do n=$((n+1)); : > $TMPDIR/$i-$n; done) & done; wait"
        )
        compiler.write_text(f'#!/bin/sh\ncase "$*" in *--version*) exec cc "$@";; esac\n{works}\n')
        compiler.chmod(0o755)
        monkeypatch.setenv("CC", str(compiler))
    monkeypatch.setenv("FANIN_CODE_LIMIT_S", "100")
    with faults.started(folder, command, start_new_session=True) as process:
        until = time.monotonic() + 120
        # This process, the command, the worker, and what it started.
        busy = {"compiled": 5, "loaded": 4}.get(while_, 13)
        while process.poll() is None and time.monotonic() < until:
            made = list((folder / "cache" / "fanin" / "cc").glob("slow-*.so"))
            if len(processes_in(folder)) >= busy and (while_ != "loaded" or made):
                break
            time.sleep(0.05)
        assert process.poll() is None, process.communicate()
        # As a terminal does: to all that are in the foreground.
        ended = faults.interrupted(process, group=True)
    assert (ended.code, ended.err) == (130, "fanin: interrupted, nothing was written\n")
    assert faults.faults(folder, ended, codes=(130,)) == []
    assert processes_in(folder) == [os.getpid()]


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@needs_cc
@pytest.mark.parametrize(
    ("sent", "to", "code"),
    [
        (signal.SIGTERM, "the command", 143),
        (signal.SIGTERM, "all", 143),
        (signal.SIGHUP, "all", 129),
        (signal.SIGKILL, "the command", -9),
        (signal.SIGKILL, "all", -9),
        (signal.SIGKILL, "its worker", 2),
    ],
)
def test_a_compiler_that_waits_ends_with_the_command(folder: Path, sent: signal.Signals, to: str, code: int) -> None:
    faults.place(folder)
    os.mkfifo(folder / "fifo")
    c_file(folder / "slow.c", top='#include "fifo"')
    with faults.started(folder, "run two.toml --cc ./slow.c", start_new_session=True) as process:
        until = time.monotonic() + 120
        # This process, the command, the worker, its child, the compiler's driver and the compiler.
        while len(processes_in(folder)) < 6 and time.monotonic() < until:
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        others = set(processes_in(folder)) - {os.getpid()}
        if to == "all":
            os.killpg(process.pid, sent)
        else:
            os.kill(process.pid if to == "the command" else next(p for p in others if _parent(p) == process.pid), sent)
        _, err = process.communicate(timeout=60)
        assert process.returncode == code, err
        while processes_in(folder) != [os.getpid()] and time.monotonic() < until:
            time.sleep(0.05)
        left = set(processes_in(folder)) - {os.getpid()}
        for pid in left & others:
            os.kill(pid, signal.SIGKILL)
    assert not left
    if code == 2:
        [line] = err.strip().splitlines()
        assert "`./slow.c`: it was ended by SIGKILL" in line
