"""Bad input ends in one clear sentence on standard error, exit code 2, and nothing written."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .conftest import CAPTURES, HTTP, RACK, SMALL, Fanin

VLAN = CAPTURES / "zeek_http_vlan.pcap"
SENTENCES = {
    # captures
    ("compare", "nosuch.pcap", "--rack", RACK): "nosuch.pcap: there is no such file; check the name",
    ("compare", ".", "--rack", RACK): ".: this is a directory, not a capture; name a file in it",
    (
        "compare",
        "empty.pcap",
        "--rack",
        RACK,
    ): "empty.pcap: the file is empty; was the capture stopped before its first packet?",
    ("compare", "text.pcap", "--rack", RACK): (
        'text.pcap: not a packet capture: the file begins with the text "Dear reader,"; give a pcap or pcapng file, plain or gzip'
    ),
    (
        "compare",
        "no_tcp.pcap",
        "--rack",
        RACK,
    ): "no_tcp.pcap: no TCP in its 2 packets; check the capture filter and interface",
    ("compare", "handshake.pcap", "--rack", RACK): (
        "no TCP payload in this capture, so there is nothing to replay; check the capture filter"
    ),
    ("trains", "nosuch.pcap"): "nosuch.pcap: there is no such file; check the name",
    ("trains", "text.pcap"): (
        'text.pcap: not a packet capture: the file begins with the text "Dear reader,"; give a pcap or pcapng file, plain or gzip'
    ),
    # racks
    ("compare", VLAN, "--rack", "nosuch.toml"): "nosuch.toml: it cannot be read: there is no such file",
    ("compare", VLAN, "--rack", "."): ".: this is a folder; name the scenario file in it",
    ("compare", VLAN, "--rack", "zero_rate.toml"): "zero_rate.toml:2:8: rack.rate: `0Gbps` is zero; it must be more",
    ("compare", VLAN, "--rack", "negative_delay.toml"): (
        "negative_delay.toml:3:9: rack.delay: `-25us` is out of range for a time: it must be from 0 to 18446744s"
    ),
    ("compare", VLAN, "--rack", "k_above_buffer.toml"): (
        "k_above_buffer.toml:5:8: rack.mark: the marking threshold of 200p must lie below the buffer of 100p, or nothing is ever marked"
    ),
    (
        "compare",
        VLAN,
        "--rack",
        "typo.toml",
    ): "typo.toml:4:1: rack.bufer: unknown key `bufer`; did you mean `buffer`?",
    (
        "compare",
        VLAN,
        "--rack",
        "not_toml.toml",
    ): "not_toml.toml:1:8: not valid TOML: string values must be quoted, expected literal string",
    ("compare", VLAN, "--rack", RACK, "--set", "buffer"): (
        "command line `--set buffer`: it has no `=`; write KEY=VALUE, as in --set rack.buffer=250p"
    ),
    ("compare", VLAN, "--rack", RACK, "--cc", "cubic", "--set", "cc.cubic_beta=2"): (
        "command line `--set cc.cubic_beta=2`: cc.cubic_beta: it is 2; expected a number from 0.1 to 0.99"
    ),
    ("compare", VLAN, "--rack", RACK, "--cc", "cubic", "--seeds", "1", "--pcap", "seen", "--pcap-at", "nowhere"): (
        "command line `--pcap-at nowhere`: no host, switch or port is named so; ports are named like `switch->client`"
    ),
    ("compare", VLAN, "--rack", RACK, "--pcap-at", "client"): (
        "command line `--pcap-at`: it says where, and `--pcap DIR` into which folder; give both"
    ),
    ("compare", VLAN, "--rack", RACK, "--set", "rack.rate=fast"): (
        "command line `--set rack.rate=fast`: rack.rate: `fast` is not a rate: it should be a number and a unit, such as `10Gbps`"
    ),
    # options
    ("compare", VLAN, "--rack", RACK, "--vary", "bufer=3p"): (
        "command line `--vary bufer=3p`: rack.bufer: unknown key `bufer`; did you mean `buffer`?"
    ),
    ("compare", VLAN, "--rack", RACK, "--vary", "rack.bufer=3p"): (
        "command line `--vary rack.bufer=3p`: rack.bufer: unknown key `bufer`; did you mean `buffer`?"
    ),
    ("compare", VLAN, "--vary", "buffer=5"): (
        'command line `--vary buffer=5`: rack.buffer: `5` has no unit; expected a queue length such as "100p" (packets) or "350KB"'
    ),
    ("compare", VLAN, "--rack", RACK, "--confirm", "1", "--engine", "testbed"): (
        "command line `--confirm 1`: it confirms what the simulation found; with --engine testbed leave it out"
    ),
    ("compare", VLAN, "--vary", "buffer"): (
        "command line `--vary buffer`: write KEY=VALUE,VALUE,..., as in --vary buffer=50p,100p,400p"
    ),
    ("compare", VLAN, "--rack", RACK, "--cc", "dtcp"): (
        "no congestion control named `dtcp`; did you mean `dctcp`?; `fanin list cc` shows all"
    ),
    ("compare", VLAN, "--rack", RACK, "--cc", "newreno,"): (
        "command line `--cc`: there is an empty name in the list; `fanin list cc` shows all names"
    ),
    ("compare", VLAN, "--rack", RACK, "--cc", "newreno,newreno"): "command line `--cc`: `newreno` is named twice",
    (
        "compare",
        VLAN,
        "--rack",
        RACK,
        "--seeds",
        "0",
    ): "command line `--seeds 0`: the number of seeds must be from 1 to 10000",
    (
        "compare",
        VLAN,
        "--rack",
        RACK,
        "--seeds",
        "-3",
    ): "command line `--seeds -3`: the number of seeds must be from 1 to 10000",
    ("compare", VLAN, "--rack", RACK, "--seeds", "99999999"): (
        "command line `--seeds 99999999`: the number of seeds must be from 1 to 10000"
    ),
    ("compare", VLAN, "--rack", RACK, "--trace-seed", "11"): (
        "command line `--trace-seed 11`: only seeds that are run can be traced: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10"
    ),
    ("compare", VLAN, "--rack", RACK, "--aggregator", "me"): (
        "command line `--aggregator me`: not an IP address; give one such as 10.0.0.1"
    ),
    ("compare", VLAN, "--rack", RACK, "--aggregator", "1.2.3.4"): (
        "no host 1.2.3.4 received TCP payload in this capture; choose one of 141.142.228.5, 192.150.187.43"
    ),
    ("trains", VLAN, "--gap", "0ms"): "command line `--gap 0ms`: it must be longer than zero",
    ("trains", VLAN, "--gap", "5"): (
        "command line `--gap 5`: `5` has no unit: a time needs one, such as `50us` (ps, ns, us, µs, ms, s, min)"
    ),
    # where results go
    ("compare", VLAN, "--rack", RACK, "--out", "text.pcap"): (
        "text.pcap: cannot hold results, since a file stands in the way; choose another folder with --out"
    ),
    ("compare", VLAN, "--rack", RACK, "--out", "text.pcap/inside"): (
        "text.pcap/inside: cannot hold results, since a file stands in the way; choose another folder with --out"
    ),
    ("compare", VLAN, "--rack", RACK, "--out", "/proc/fanin"): (
        "/proc/fanin: cannot be written (no such file or directory); choose another folder with --out"
    ),
    ("trains", VLAN, "--out", "/proc/fanin"): (
        "/proc/fanin: cannot be written (no such file or directory); choose another folder with --out"
    ),
    # run and list
    ("run", "nosuch.toml"): "nosuch.toml: it cannot be read: there is no such file",
    ("run", RACK): f"{RACK}: it looks like a rack, not a scenario: `fanin compare CAPTURE --rack FILE` takes it",
    ("run", "incast.toml", "--set", "topology.bufer=9p"): (
        "command line `--set topology.bufer=9p`: topology.bufer: unknown key `bufer`; did you mean `buffer`?"
    ),
    ("run", "incast.toml", "--set", "=9p"): (
        "command line `--set =9p`: it names no key; write KEY=VALUE, as in --set topology.buffer=250p"
    ),
    ("run", "incast.toml", "--cc", "newreno,"): (
        "command line `--cc`: there is an empty name in the list; `fanin list cc` shows all names"
    ),
    ("run", "incast.toml", "--cc", "newreno,newreno"): "command line `--cc`: `newreno` is named twice",
    ("run", "incast.toml", "--set", "topology.rate=10GBps"): (
        "command line `--set topology.rate=10GBps`: topology.rate: `10GBps`: `GBps` reads as bytes per second; rates are in bits: write "
        "Gbps, and eight times the number if bytes were meant"
    ),
    ("draw", "incast.toml", "--out", "text.pcap/x.svg"): (
        "text.pcap/x.svg: cannot be written (file exists); choose another place with --out"
    ),
    ("run", "incast.toml", "--set", "buffer"): (
        "command line `--set buffer`: it has no `=`; write KEY=VALUE, as in --set topology.buffer=250p"
    ),
    ("run", "incast.toml", "--cc", "cubik"): (
        "command line `--cc cubik`: cc.name: no congestion control named `cubik`; did you mean `cubic`?; `fanin list cc` shows all"
    ),
    ("run", "incast.toml", "--seed", "1", "--seeds", "2"): "command line `--seed` and `--seeds`: give one of the two",
    (
        "run",
        "incast.toml",
        "--seed",
        "-1",
    ): "the seeds [-1] must be different whole numbers from 0 to 2^63 - 1, at least one",
    ("list", "cheese"): (
        "command line: invalid value for 'kind': 'cheese' is not one of 'cc', 'queue', 'topology', "
        "'workload', 'stack', 'hosts', 'paper'; see --help"
    ),
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with every kind of bad file."""
    rack = '[rack]\nrate = "1Gbps"\ndelay = "25us"\nbuffer = "100p"\nmark = "20p"\n'
    texts = {
        "empty.pcap": "",
        "text.pcap": "Dear reader, this is no capture.\n",
        "zero_rate.toml": rack.replace("1Gbps", "0Gbps"),
        "negative_delay.toml": rack.replace("25us", "-25us"),
        "k_above_buffer.toml": rack.replace("20p", "200p"),
        "typo.toml": rack.replace("buffer", "bufer"),
        "not_toml.toml": "rate = quick\n",
        "incast.toml": '[topology]\nsenders = 2\n[[workload]]\nkind = "incast"\nbytes = "8KB"\n',
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "no_tcp.pcap").write_bytes((CAPTURES / "arkime_bigendian.pcap").read_bytes())
    (tmp_path / "handshake.pcap").write_bytes((CAPTURES / "tcpdump_tcp_handshake_nsec.pcap").read_bytes())
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    SENTENCES.items(),
    ids=lambda v: " ".join(map(str, v))[-60:] if isinstance(v, tuple) else "",
)
def test_bad_input_ends_in_one_sentence_and_nothing_is_written(
    fanin: Fanin, place: Path, arguments: tuple[object, ...], sentence: str
) -> None:
    before = sorted(place.rglob("*"))
    outcome = fanin(*arguments)
    assert outcome.err == f"fanin: error: {sentence}\n"
    assert outcome.code == 2
    assert outcome.out == ""
    assert sorted(place.rglob("*")) == before


COMPARE = ("compare", VLAN, "--rack", RACK, "--cc", "newreno", "--seeds", "1")


@pytest.mark.parametrize(
    "words",
    [
        ("run", "small.toml", "--cc", "\udcff"),
        ("run", "small.toml", "--set", "run.seeds=\udcff"),
        ("compare", SMALL, "--rack", RACK, "--aggregator", "\udcff"),
        ("trains", SMALL, "--gap", "\udcff"),
    ],
)
def test_a_word_that_is_no_utf_8_and_names_no_file_is_one_sentence(
    fanin: Fanin, place: Path, words: tuple[object, ...]
) -> None:
    place.joinpath("small.toml").write_text('[[workload]]\nkind = "incast"\nbytes = "1KB"\n')
    done = fanin(*words)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done.err
    assert done.err.startswith("fanin: error: command line: `")
    assert "\\udcff` is no text (UTF-8)" in done.err


def test_a_name_that_is_no_utf_8_is_a_name_like_any_other(fanin: Fanin, place: Path) -> None:
    capture, rack = place / "caf\udce9.pcap", place / "rack\udcff.toml"
    capture.write_bytes(VLAN.read_bytes())
    rack.write_bytes(RACK.read_bytes())
    outcome = fanin("compare", capture.name, "--rack", rack.name, "--cc", "newreno", "--seeds", "1")
    assert outcome.code == 0, outcome.err
    assert (place / "fanin-caf\udce9/report.html").exists()
    assert "caf\ufffd.pcap" in (place / "fanin-caf\udce9/report.html").read_text()
    assert fanin("trains", capture.name, "--out", "trains").code == 0
    assert (
        fanin("run", "nosuch\udce9.toml").err
        == "fanin: error: nosuch\ufffd.toml: it cannot be read: there is no such file\n"
    )


def run_in_shell(line: str, place: Path) -> subprocess.CompletedProcess[str]:
    command = f'fanin() {{ "{sys.executable}" -m fanin "$@"; }}\n{line}'
    return subprocess.run(["bash", "-c", command], cwd=place, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        (">&-", "standard output: it is closed; send it somewhere, as in > results.txt"),
        (">/dev/full", "standard output: cannot be used (no space left on device); make room or choose another place"),
    ],
)
@pytest.mark.parametrize("command", ["list cc", "list cc --json", "--help", "model"])
def test_output_that_cannot_be_written_is_one_sentence(place: Path, command: str, output: str, sentence: str) -> None:
    done = run_in_shell(f"fanin {command} {output}", place)
    assert (done.returncode, done.stderr) == (2, f"fanin: error: {sentence}\n")


def test_a_locale_without_arrows_and_signs_is_no_fault(place: Path) -> None:
    for words in (
        "trains handshake.pcap",
        f"compare {shlex.quote(str(VLAN))} --rack {shlex.quote(str(RACK))} --cc newreno --seeds 2",
    ):
        done = run_in_shell(f"export PYTHONIOENCODING=ascii; fanin {words}", place)
        assert done.returncode == 0, done.stderr
        assert "?" in done.stdout


def test_a_reader_that_has_gone_is_no_fault(place: Path) -> None:
    for command in ("list cc --json", "list cc", "trains handshake.pcap"):
        done = run_in_shell(f"fanin {command} | true", place)
        assert "Traceback" not in done.stderr
        assert "Broken" not in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        (*COMPARE, "--out", "full"),
        ("trains", HTTP, "--out", "full"),
        ("run", "incast.toml", "--out", "full"),
        ("run", "incast.toml", "--pcap", "full"),
    ],
    ids=lambda words: f"{words[0]} {words[-2]}",
)
def test_a_full_disk_is_one_sentence_and_leaves_nothing_half_written(place: Path, words: tuple[object, ...]) -> None:
    # A limit on the size of files is to a program what a full disk is, and needs no disk.
    line = " ".join(shlex.quote(str(word)) for word in words)
    done = run_in_shell(f"ulimit -f 1; trap '' XFSZ; fanin {line}", place)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("fanin: error: full"), done.stderr
    assert done.stderr.count("\n") == 1
    assert "; choose another folder with --" in done.stderr
    assert ".fanin-" not in done.stderr
    assert not (place / "full").exists()


def test_ctrl_c_while_the_command_loads_is_an_interruption_like_any_other(place: Path) -> None:
    code = (
        "import sys\n"
        "class Slow:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name == 'typer':\n            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Slow())\n"
        "from fanin.__main__ import main\nmain()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=place)
    assert (done.returncode, done.stderr) == (130, "fanin: interrupted, nothing was written\n")


ENDS_WHILE_IT_LOADS = """
import signal
class Named:
    def __set_name__(self, owner, name):
        signal.raise_signal({number})
class Owner:
    named = Named()
"""
"""What an exception in `__set_name__` becomes: another one, RuntimeError."""

RAISES_WHERE_IT_IS_LOST = """
import signal, time, weakref
from fanin.process.ending import listen
listen({signal.SIGINT: signal.default_int_handler})
class Thing: pass
thing = Thing()
kept = weakref.ref(thing, lambda _: signal.raise_signal(signal.SIGINT))
try:
    del thing
    time.sleep(60)
except KeyboardInterrupt:
    print('heard')
"""
"""What a function raises that Python calls as it takes an object away is printed, and no more."""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_a_module_loads_ends_the_command_after_it(
    place: Path, number: signal.Signals, code: int
) -> None:
    (place / "loaded.py").write_text(ENDS_WHILE_IT_LOADS.format(number=int(number)))
    program = (
        "import sys\n"
        "class Loads:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name == 'typer':\n            import loaded\n"
        "sys.meta_path.insert(0, Loads())\n"
        "sys.argv = ['fanin', 'list', 'cc']\n"
        "from fanin.__main__ import main\nmain()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=place)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr


def test_signals_that_a_program_answers_or_ignores_stay_as_they_are(place: Path) -> None:
    program = (
        "import signal, sys\n"
        "sys.argv = ['fanin', 'list', 'cc']\n"
        "def own(number, where): pass\n"
        "signal.signal(signal.SIGTERM, own)\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "from fanin.__main__ import main\n"
        "try:\n    main()\n"
        "finally:\n"
        "    assert signal.getsignal(signal.SIGTERM) is own\n"
        "    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=place)
    assert done.returncode == 0, done.stderr


def test_ctrl_c_that_python_loses_is_asked_again(place: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RAISES_WHERE_IT_IS_LOST], capture_output=True, text=True, check=False, cwd=place
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "heard\n", "")


def test_ctrl_c_while_the_package_itself_loads_is_no_traceback(place: Path) -> None:
    code = (
        "import os, signal, sys\n"
        "sys.argv = ['/usr/bin/fanin', '--version']\n"
        "class Early:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name == 'fanin.errors':\n            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Early())\n"
        "from fanin.__main__ import main\nmain()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=place)
    assert (done.returncode, done.stderr) == (130, "fanin: interrupted, nothing was written\n")
    # In a program that uses the package, Ctrl-C is that program's.
    asked = "import signal, fanin; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=False, cwd=place)
    assert done.stdout == "True\n"


def test_a_command_that_is_terminated_leaves_nothing_behind(place: Path) -> None:
    words = ["compare", HTTP, "--rack", RACK, "--seeds", "5000", "--out", "results"]
    command = [sys.executable, "-m", "fanin", *map(str, words)]
    process = subprocess.Popen(command, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (place / "results").exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.terminate()
    out, err = process.communicate()
    assert (process.returncode, out, err) == (143, "", "")
    assert not (place / "results").exists()


def test_results_of_an_earlier_run_survive_a_run_that_fails(fanin: Fanin, place: Path) -> None:
    kept = place / "results" / "report.html"
    kept.parent.mkdir()
    kept.write_text("of last week")
    outcome = fanin("compare", "text.pcap", "--rack", RACK, "--out", "results")
    assert outcome.code == 2
    assert [p.name for p in kept.parent.iterdir()] == ["report.html"]
    assert kept.read_text() == "of last week"


@pytest.mark.parametrize("capture", sorted((CAPTURES / "bad").iterdir()), ids=lambda p: p.name)
def test_a_damaged_capture_ends_in_a_sentence_or_in_results_marked_as_partial(fanin: Fanin, capture: Path) -> None:
    outcome = fanin("trains", capture, "--json")
    assert "Traceback" not in outcome.err
    if outcome.code == 0:
        found = outcome.json()
        assert found["capture"]["packets"] > 0
    else:
        assert outcome.code == 2
        assert outcome.out == ""
        assert outcome.err.startswith("fanin: error: ")
        assert outcome.err.count("\n") == 1


def test_a_capture_of_one_direction_is_compared_and_says_so(fanin: Fanin) -> None:
    capture = CAPTURES / "formats/one_direction.pcap"
    outcome = fanin("compare", capture, "--rack", RACK, "--cc", "newreno", "--seeds", "1", "--json")
    assert outcome.code == 0
    assert outcome.json()["ranking"][0]["responses"] > 0
    assert any("one direction only" in warning for warning in outcome.json()["capture"]["warnings"])


def test_without_memory_a_command_ends_in_one_sentence(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "fanin",
        "compare",
        HTTP,
        "--rack",
        RACK,
        "--cc",
        "cubic",
        "--seeds",
        "2",
        "--json",
    ]
    limited = ["sh", "-c", "ulimit -v 230000; exec " + shlex.join(map(str, command))]
    # So many threads as the machine has cores would need more memory on some machines before anything is read.
    # What another test has kept would be looked up, in less memory.
    environment = os.environ | {"POLARS_MAX_THREADS": "2", "FANIN_STORE": str(tmp_path / "store")}
    done = subprocess.run(limited, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    # Polars' allocator may have something to say beside it.
    told = [line for line in done.stderr.splitlines() if line.startswith("fanin:")]
    assert len(told) == 1
    assert told[0].startswith("fanin: error: out of memory: this needs more than the machine")


STEERING = "\x1b[2J\x1b]0;pwned\x07\u202e\x9b31m"


def test_nothing_that_a_file_says_steers_the_terminal(fanin: Fanin, tmp_path: Path) -> None:
    named = json.dumps(STEERING)
    scenario = (
        f'title = {named}\n[topology]\nsenders = 2\n[[workload]]\nkind = "incast"\nbytes = "64KB"\nclass = {named}\n'
    )
    (tmp_path / "steering.toml").write_text(scenario)
    (tmp_path / f"a{STEERING}.toml").write_text("")
    (tmp_path / "key.toml").write_text(f"{named} = 1\n")
    (tmp_path / "long.toml").write_text(f"{'x' * 100_000} = 1\n")
    (tmp_path / f"a{STEERING}.pcap.gz").write_bytes(SMALL.read_bytes())
    for words in (
        ["run", "steering.toml"],
        ["run", "key.toml"],
        ["run", "long.toml"],
        ["run", f"a{STEERING}.toml"],
        ["run", "steering.toml", f"--{STEERING}"],
        ["trains", f"a{STEERING}.pcap.gz"],
        ["rack", f"a{STEERING}.pcap.gz"],
    ):
        done = fanin(*(str(tmp_path / word) if (tmp_path / word).exists() else word for word in words))
        for said in (done.out, done.err):
            assert not set(said) & set("\x1b\x07\u202e\x9b"), (words, said)
        assert len(done.err) < 5000


WITHOUT_RENDERER = (
    "import sys; sys.modules['vl_convert'] = None; sys.argv[0] = 'fanin'; from fanin.__main__ import main; main()"
)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("trains", str(SMALL), "--out", "out"), 0, ""),
        (("draw", "incast.toml", "--out", "x.html"), 0, ""),
        (
            ("draw", "incast.toml", "--out", "x.svg"),
            2,
            "this needs vl_convert, which is not installed: pip install 'fanin[docs]'",
        ),
    ],
)
def test_pictures_without_the_renderer_are_pages_or_name_the_extra(
    place: Path, words: tuple[str, ...], code: int, said: str
) -> None:
    # As where the wheel alone is installed.
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_RENDERER, *words], cwd=place, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    if "trains" in words:
        assert (place / "out/trains.html").exists()
        assert not list(place.rglob("*.svg"))
