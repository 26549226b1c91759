"""The command starts without loading what `--help` does not need."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import fanin
import pytest

HEAVY = {"polars", "altair", "vl_convert", "fanin._native", "rich.progress", "fanin.comparison"}


def test_help_loads_nothing_heavy() -> None:
    code = "import sys; sys.argv[1:] = ['--help']; from fanin.__main__ import _run; _run(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert HEAVY.isdisjoint(loaded)
    assert "fanin.commands.cli" in loaded


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("compare x.pcap --ra", {"--rack", "--rank-by", "--rank-of"}),
        ("compare x.pcap --rank-by p9", {"p95", "p99", "p99_9"}),
        ("compare x.pcap --cc cubic,dct", {"cubic,dctcp"}),
        ("advise x.pcap --baseline bb", {"bbr"}),
        ("store ver", {"verify"}),
        ("kernel st", {"status"}),
        ("list sta", {"stack"}),
    ],
)
def test_the_shells_completion_knows_options_and_their_values(typed: str, offered: set[str]) -> None:
    words = f"fanin {typed}"
    asking = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1), "_FANIN_COMPLETE": "complete_bash"}
    done = subprocess.run(
        [Path(sys.executable).with_name("fanin")],
        env={**os.environ, **asking},
        capture_output=True,
        text=True,
        check=False,
    )
    assert set(done.stdout.split()) == offered, done.stderr


def test_everything_promised_is_there() -> None:
    for name in fanin.__all__:
        assert getattr(fanin, name) is not None
    assert set(fanin.__all__) <= set(dir(fanin))


def test_every_registered_algorithm_can_be_listed_and_the_alone_ones_checked() -> None:
    from fanin._native import needs_ecn

    entries = fanin.entries("cc")
    assert {"reno", "newreno", "sack", "cubic", "dctcp"} <= {e.name for e in entries}
    for entry in entries:
        if entry.details["stands_alone"]:
            assert needs_ecn(entry.name) == entry.details["needs_ecn"]


@pytest.mark.parametrize(
    "lacks",
    [
        "del native.Rack.from_text; fanin.compare('a.pcap', 'r.toml')",
        "native.no_such_function",
        "from fanin._native import no_such_name",
        "native.needs_ecn('cubic', 'more', 'than', 'it', 'takes')",
        "import os; native.__file__ = 'r.toml'; os.utime('r.toml', (1, 1)); {}['a key of a newer module']",
    ],
)
def test_a_compiled_module_of_another_version_is_said_in_a_sentence(lacks: str, tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text("")
    code = f"""
import sys, fanin, fanin.commands.cli
import fanin._native as native
def stale(**_):
    {lacks}
stale.registered_commands = stale.registered_groups = ()
fanin.commands.cli.app = stale
from fanin.__main__ import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert done.stderr.startswith("fanin: error: the compiled module is of another version than the Python around it (")
    assert "run `make build`" in done.stderr


LAUNCHER = Path(sys.executable).with_name("fanin-python")


@pytest.mark.skipif(not LAUNCHER.exists(), reason="installed without the launcher")
def test_ctrl_c_while_python_starts_is_an_interruption(tmp_path: Path) -> None:
    """A module that Python loads before anything of fanin's sends it, where a traceback would be the answer."""
    (tmp_path / "sitecustomize.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    fanin_ = [Path(sys.executable).with_name("fanin"), "list", "cc"]
    listens = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    done = subprocess.run(
        fanin_, env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False, **listens
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "fanin: interrupted, nothing was written\n")


@pytest.mark.skipif(not LAUNCHER.exists(), reason="installed without the launcher")
def test_the_launcher_is_the_command_also_through_a_link_and_says_what_it_lacks(tmp_path: Path) -> None:
    own = Path(sys.executable).with_name("fanin")
    (tmp_path / "linked").symlink_to(own)
    done = subprocess.run([tmp_path / "linked", "--nonsense"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("fanin: error: command line: no such option: --nonsense")
    (tmp_path / "fanin").write_bytes(own.read_bytes())
    (tmp_path / "fanin").chmod(0o755)
    done = subprocess.run([tmp_path / "fanin"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"fanin: error: {tmp_path}/fanin-python: cannot be started (No such file or directory (os error 2)); "
        "install fanin anew\n"
    )
