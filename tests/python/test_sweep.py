"""Sweeps: what is run, what is kept, and what is found again."""

from __future__ import annotations

import itertools
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
from fanin.errors import OutputError, ScenarioError
from fanin.runs.job import Document, Job, RunWarning
from fanin.runs.store import Store
from fanin.simulation import run
from fanin.sweep import Until, read, sweep
from fanin.sweep.plot import bands, plot
from fanin.sweep.query import query, rows_of

from .conftest import INCAST, ROOT, Fanin

SWEEP = """
scenario = "incast.toml"
seeds = 2
[axis.cc]
values = ["cubic", "dctcp"]
[axis.n]
key = "topology.senders"
values = [2, 4]
"""


def written(folder: Path, text: str = SWEEP) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "incast.toml").write_text(INCAST)
    file = folder / "small.toml"
    file.write_text(text)
    return file


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a store but what killed processes left; rows of sweeps without the commands, which name the scenario's folder."""
    files = [file for file in sorted(folder.rglob("*")) if file.is_file() and "/.new-" not in str(file)]
    return {
        str(file.relative_to(folder)): pl.read_parquet(file).drop("command").write_csv().encode()
        if file.parent.name == "sweeps"
        else file.read_bytes()
        for file in files
    }


def test_a_sweep_is_the_runs_of_its_grid(tmp_path: Path) -> None:
    found = sweep(written(tmp_path), store=tmp_path / "store")
    assert found.runs.select("cc", "n", "seed").rows() == [
        (cc, n, seed) for cc in ("cubic", "dctcp") for n in (2, 4) for seed in (1, 2)
    ]
    alone = run(tmp_path / "incast.toml", cc="dctcp", seed=2, settings={"topology.senders": 2})
    row = found.runs.row(
        by_predicate=(pl.col("cc") == "dctcp") & (pl.col("n") == 2) & (pl.col("seed") == 2), named=True
    )
    assert row["p99_ms"] == alone.summary()["p99_ms"][0]
    assert row["packet_hops"] == alone.runs["packet_hops"][0]
    assert row["drops"] == alone.ports["drops"].sum()


def test_what_was_run_is_not_run_again_and_another_sweep_finds_it(tmp_path: Path) -> None:
    first = sweep(written(tmp_path), store=tmp_path / "store")
    assert (first.ran, first.found) == (8, 0)
    again = sweep(tmp_path / "small.toml", store=tmp_path / "store")
    assert (again.ran, again.found) == (0, 8)
    assert again.runs.equals(first.runs)
    # Written otherwise: the algorithm in the scenario, comments, the values of the other axis listed backwards.
    (tmp_path / "incast.toml").write_text("# four\n" + INCAST + '\n[cc]\nname = "cubic"\n')
    other = written(
        tmp_path / "b", SWEEP.replace('[axis.cc]\nvalues = ["cubic", "dctcp"]', "").replace("[2, 4]", "[4, 3, 2]")
    )
    other.write_text(other.read_text().replace('"incast.toml"', '"../incast.toml"'))
    third = sweep(other, store=tmp_path / "store")
    assert (third.ran, third.found) == (2, 4)


def test_a_failed_run_is_a_row_with_the_command_that_repeats_it(tmp_path: Path, fanin: Fanin) -> None:
    file = written(tmp_path, SWEEP.replace("[2, 4]", "[2, 0]"))
    done = fanin("sweep", file, "--store", tmp_path / "store", "--json")
    assert done.code == 1
    rows = done.json()["runs"]
    assert [row["status"] for row in rows].count("failed") == 4
    failed = next(row for row in rows if row["status"] == "failed")
    assert "senders" in failed["error"]
    again = fanin(*failed["command"].split()[1:])
    assert again.code == 2
    assert failed["error"] in again.err


def test_axes_are_lists_ranges_zips_and_draws(tmp_path: Path) -> None:
    text = SWEEP + (
        '[axis.link]\nkeys = ["topology.rate", "topology.delay"]\nvalues = [["1Gbps", "25us"], ["10Gbps", "5us"]]\n'
        '[axis.buffer]\nkey = "topology.buffer"\nfrom = "10p"\nto = "1000p"\npoints = 3\nscale = "log"\n'
    )
    plan = read(written(tmp_path, text))
    assert len(plan.points) == 2 * 2 * 2 * 3
    assert dict(plan.points[0].labels) == {"cc": "cubic", "n": 2, "link": "1Gbps 25us", "buffer": "10p"}
    assert dict(plan.points[-1].settings) == {
        "topology.senders": "4", "topology.rate": "10Gbps", "topology.delay": "5us", "topology.buffer": "1000p",
    }  # fmt: skip
    drawn = read(
        written(
            tmp_path, text.replace("points = 3\n", "") + '[sample]\nmethod = "latin"\nn = 5\naxes = ["buffer", "n"]\n'
        )
    )
    assert len(drawn.points) == 2 * 2 * 5
    buffers = [int(dict(p.labels)["buffer"][:-1]) for p in drawn.points[:5]]  # type: ignore[index]
    # One in each fifth of the logarithm from 10 to 1000.
    edges = [10 * 100 ** (i / 5) for i in range(6)]
    assert [sum(lo <= b <= hi for b in buffers) for lo, hi in itertools.pairwise(edges)] == [1] * 5


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("[axis.n]", "[axsi.n]"), "unknown key `axsi`; did you mean `axis`?"),
        (("[axis.n]", f"[{'k' * 4_000}]"), f"unknown key `{'k' * 60}...`; it may be title"),
        (("values = [2, 4]", "vales = [2, 4]"), "unknown key `vales`; did you mean `values`?"),
        (("[2, 4]", "[]"), "`values` must be a list of at least one value"),
        (('scenario = "incast.toml"', ""), "there is no `scenario`"),
        (
            ('scenario = "incast.toml"', 'rack = { rate = "1Gbps" }'),
            "it looks like a rack, not a sweep: `fanin compare CAPTURE --rack FILE` takes it",
        ),
        (("seeds = 2", "seeds = 0"), "seeds"),
        (
            ("seeds = 2", 'seeds = 2\nname = "Runs"'),
            "a sweep cannot be named `Runs`: to `fanin query` that is all of them",
        ),
        (("seeds = 2", f"seeds = {'9' * 5_000}"), "a whole number in it does not fit into 64 bits"),
        (("seeds = 2", f"seeds = 0x{'f' * 17}"), "a whole number in it does not fit into 64 bits"),
        (("[2, 4]", f"{'[' * 3_000}{']' * 3_000}"), "it is nested too deeply"),
        (('key = "topology.senders"', ""), "`n` is no scenario key"),
        (("values = [2, 4]", 'from = "1ms"\nto = "2us"\npoints = 2'), "two units"),
    ],
)
def test_what_is_wrong_in_a_sweep_is_said_in_a_sentence(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    with pytest.raises(ScenarioError) as error:
        read(written(tmp_path, SWEEP.replace(*change)))
    assert said in str(error.value)


def test_seeds_are_added_until_the_interval_is_narrow(tmp_path: Path) -> None:
    found = sweep(
        written(tmp_path), store=tmp_path / "store", until=Until.of("3%", "p50_ms", 64)
    )  # fmt: skip
    assert found.unsettled == 0
    for (_, _), part in found.runs.group_by("cc", "n"):
        assert 2 <= part.height <= 64
        mean, spread = part["p50_ms"].mean(), part["p50_ms"].std()
        assert isinstance(mean, float)
        assert isinstance(spread, float)
        assert 1.95 * spread / part.height**0.5 <= 0.03 * mean


def test_a_query_sees_each_sweep_by_name_and_all_as_runs(tmp_path: Path) -> None:
    found = sweep(written(tmp_path), store=tmp_path / "store")
    answer = query("select cc, n, avg(p99_ms) as p99 group by all order by cc, n", store=tmp_path / "store")
    means = found.runs.group_by("cc", "n", maintain_order=True).agg(pl.col("p99_ms").mean())["p99_ms"]
    assert answer["p99"].to_list() == pytest.approx(means.to_list())
    assert query("select count(*) from small", store=tmp_path / "store").row(0) == (8,)
    with pytest.raises(ScenarioError, match="no_such") as error:
        query("select no_such from runs", store=tmp_path / "store")
    assert "LINE 1" not in str(error.value)
    assert "^" not in str(error.value)
    for wicked in ("copy runs to '/tmp/x.csv'", "select * from read_csv('/etc/passwd')"):
        with pytest.raises(ScenarioError):
            query(wicked, store=tmp_path / "store")


def test_rows_of_a_store_that_are_spoilt_are_named_and_an_empty_statement_is_said(tmp_path: Path) -> None:
    sweep(written(tmp_path), store=tmp_path / "store")
    with pytest.raises(ScenarioError, match="query: there is no statement"):
        query(" ", store=tmp_path / "store")
    [rows] = (tmp_path / "store/sweeps").glob("*.parquet")
    rows.write_bytes(rows.read_bytes()[:300])
    with pytest.raises(OutputError, match=r"small.parquet: it holds no rows that can be read; the same `fanin sweep`"):
        query("select 1", store=tmp_path / "store")


def test_ctrl_c_ends_a_query_that_computes(tmp_path: Path) -> None:
    sweep(written(tmp_path), store=tmp_path / "store")
    long = "select count(*) from range(100000000) a, range(1000000) b where a.range * b.range % 7 = 3"
    words = [sys.executable, "-m", "fanin", "query", long, "--store", str(tmp_path / "store")]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        try:
            # It computes: what it takes to start is over.
            while sum(map(int, Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13])) < 300:
                time.sleep(0.1)
            process.send_signal(signal.SIGINT)
            assert "interrupted" in process.communicate(timeout=60)[1]
        finally:
            process.kill()
    assert process.returncode == 130


@pytest.mark.parametrize("spoil", ["no rows", "text", "one column"])
def test_an_entry_that_holds_no_summary_is_run_again(spoil: str, tmp_path: Path) -> None:
    first, store = sweep(written(tmp_path), store=tmp_path / "store"), Store(tmp_path / "store")
    key = first.runs["key"][0]
    frames = store.get(key)
    assert frames is not None
    whole = frames["summary"]
    change = {"no rows": whole.head(0), "text": whole.cast(pl.String), "one column": whole.select("cc")}
    shutil.rmtree(store.entry(key).folder)
    store.put(key, {**frames, "summary": change[spoil]})
    again = sweep(written(tmp_path), store=tmp_path / "store")
    assert (again.found, again.ran) == (7, 1)
    assert again.runs.equals(first.runs)


def test_a_spoilt_file_of_rows_is_refused_in_a_sentence(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "rows.parquet"
    pl.DataFrame({"cc": ["a", "b"] * 50, "seed": list(range(100)), "p50_ms": [1.5] * 100}).write_parquet(file)
    whole, draw = file.read_bytes(), random.Random(1)
    assert query("select count(*), sum(seed)", file=file).row(0) == (100, 4950)
    assert rows_of(str(file)).height == 100
    refused: list[str] = []
    for _ in range(10):
        made = bytearray(whole)
        for _ in range(10):
            made[draw.randrange(len(made))] = draw.randrange(256)
        file.write_bytes(made)
        for ask in (lambda: query("select *", file=file), lambda: rows_of(str(file))):
            try:
                ask()
            except OutputError as error:
                refused.append(str(error))
    assert len(refused) > 10
    assert set(refused) == {f"{file}: it holds no rows that can be read; the same `fanin sweep` writes it anew"}
    # Where Polars panics it says so on the standard error of its process.
    assert capfd.readouterr().err == ""


def test_a_band_of_what_is_nowhere_negative_does_not_go_below_zero() -> None:
    rows = pl.DataFrame(
        {"n": [4, 4, 4, 8, 8], "p99_ms": [4.0, 5.0, 210.0, 5.0, 6.0], "gain": [-4.0, 5.0, 210.0, 5.0, 6.0]}
    )
    found = bands(rows, "n", "p99_ms")
    assert found["low"].to_list()[0] == 0.0
    assert found["low"].to_list()[1] < found["mean"].to_list()[1] < found["high"].to_list()[1]
    assert (bands(rows, "n", "gain")["low"] < 0).any()


@pytest.mark.parametrize("kind", ["svg", "html", "pdf"])
def test_a_plot_shows_means_with_bands(tmp_path: Path, kind: str, fanin: Fanin) -> None:
    found = sweep(written(tmp_path), store=tmp_path / "store")
    rows = bands(found.runs, "n", "p50_ms", colour="cc")
    assert rows.height == 4
    assert all(low <= mean <= high for low, mean, high in rows.select("low", "mean", "high").rows())
    done = fanin(
        "plot",
        "small",
        "--x",
        "n",
        "--y",
        "p50_ms",
        "--colour",
        "cc",
        "--store",
        tmp_path / "store",
        "--out",
        f"a.{kind}",
    )
    assert done.code == 0, done.err
    assert (tmp_path / f"a.{kind}").stat().st_size > 1000
    with pytest.raises(ScenarioError, match="no column `m`"):
        plot(found.runs, "m", "p99_ms")


def test_a_store_is_listed_verified_cleaned_and_exported(tmp_path: Path, fanin: Fanin) -> None:
    sweep(written(tmp_path), store=tmp_path / "store")
    option = ("--store", tmp_path / "store")
    listed = fanin("store", "ls", *option, "--json").json()
    assert [engine["entries"] for engine in listed["engines"]] == [8]
    assert listed["sweeps"] == [{"sweep": "small", "rows": 8}]
    assert fanin("store", "verify", *option).code == 0
    assert fanin("store", "export", "rows.csv", *option).code == 0
    assert len((tmp_path / "rows.csv").read_text().splitlines()) == 9
    before = contents(tmp_path / "store")
    damaged = next((tmp_path / "store").rglob("summary.arrow"))
    content = damaged.read_bytes()
    damaged.write_bytes(content[:100] + bytes([content[100] ^ 1]) + content[101:])
    assert fanin("store", "verify", *option).code == 1
    assert fanin("store", "gc", *option).code == 0
    assert sweep(tmp_path / "small.toml", store=tmp_path / "store").ran == 1
    assert contents(tmp_path / "store") == before


def test_a_store_of_another_format_or_something_else_is_refused_in_a_sentence(tmp_path: Path, fanin: Fanin) -> None:
    sweep(written(tmp_path), store=tmp_path / "store")
    (tmp_path / "store" / "store.json").write_text('{"format": 2}\n')
    done = fanin("sweep", tmp_path / "small.toml", "--store", tmp_path / "store")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "the store has format 2" in done.err
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("x")
    with pytest.raises(OutputError, match="no store"):
        Store(tmp_path / "other")


def test_results_of_another_engine_are_not_taken_for_this_ones(tmp_path: Path) -> None:
    sweep(written(tmp_path), store=Store(tmp_path / "store", engine="0" * 16))
    found = sweep(tmp_path / "small.toml", store=tmp_path / "store")
    assert (found.found, found.ran) == (0, 8)
    assert len(Store(tmp_path / "store").engines()) == 2


def test_ctrl_c_finishes_what_is_under_way_and_the_same_command_goes_on(tmp_path: Path) -> None:
    file = written(
        tmp_path, SWEEP.replace("[2, 4]", "[40, 41, 42, 43, 44, 45, 46, 47]").replace("seeds = 2", "seeds = 30")
    )
    command = [sys.executable, "-m", "fanin", "sweep", str(file), "--store", str(tmp_path / "store")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    entries = 0
    while process.poll() is None and entries < 3:
        entries = len(list((tmp_path / "store").glob("*/[!.]*/*/entry.json")))
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    assert "the same command goes on" in said
    kept = len(list((tmp_path / "store").glob("*/[!.]*/*/entry.json")))
    assert 3 <= kept < 480
    assert query("select count(*) from runs", store=tmp_path / "store").row(0) == (kept,)
    assert not list((tmp_path / "store").glob("*/.new-*"))


def test_an_interrupt_between_batches_says_what_is_kept(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom fanin.commands import sweep as sweep_command\nfrom fanin.__main__ import main\n"
        "def interrupted(*_):\n    raise KeyboardInterrupt\n"
        "sweep_command._print = interrupted\n"
        f"sys.argv = ['fanin', 'sweep', {str(written(tmp_path))!r}, '--store', {str(tmp_path / 'store')!r}]\nmain()\n"
    )
    said = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False) for _ in range(2)]
    assert [done.returncode for done in said] == [130, 130]
    assert "fanin: interrupted, 8 runs are in the store, and the same command goes on\n" in said[0].stderr
    # The second time all were there before.
    assert "fanin: interrupted, nothing was written\n" in said[1].stderr


def test_a_job_travels_as_plain_data_with_the_files_it_names(tmp_path: Path) -> None:
    import pickle
    import shutil

    home = tmp_path / "home"
    (home / "sizes").mkdir(parents=True)
    (home / "sizes" / "a.csv").write_text((ROOT / "data/distributions/homa_w1.csv").read_text())
    text = (ROOT / "examples/http_on_off.toml").read_text()
    (home / "s.toml").write_text(text.replace('{ uniform = ["2KB", "10KB"] }', '"sizes/a.csv"'))
    job = Job(Document.read(home / "s.toml").with_files(), 1, "cubic")
    assert [name for name, _ in job.scenario.files] == ["sizes/a.csv"]
    here = Job(Document.read(home / "s.toml"), 1, "cubic").key()
    shutil.rmtree(home)
    there = pickle.loads(pickle.dumps(job))
    assert there.key() == here
    assert there.run()["runs"]["packet_hops"][0] > 0


def test_a_warning_keeps_its_kind_when_it_travels() -> None:
    import pickle

    warning = RunWarning("text", "no-marks", "dctcp")
    again = pickle.loads(pickle.dumps(warning))
    assert (again, again.kind, again.cc) == ("text", "no-marks", "dctcp")


@pytest.mark.parametrize("name", ["mean", "low", "high", "runs", "engine"])
def test_an_axis_that_is_named_as_a_column_of_the_results_is_refused_in_one_sentence(name: str, tmp_path: Path) -> None:
    file = tmp_path / "sweep.toml"
    (tmp_path / "x.toml").write_text(INCAST)
    file.write_text(f'scenario = "x.toml"\n[axis.{name}]\nkey = "topology.senders"\nvalues = [2, 4]\n')
    with pytest.raises(ScenarioError, match=f"`{name}` is a column of the results; give the axis another name"):
        read(file)
