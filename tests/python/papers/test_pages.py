"""A page per claim, intervals on its values, and an archive that another machine verifies."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import polars as pl
import pytest
from fanin.papers import bundle, papers_folder, reproduce
from fanin.papers.bundle import MANIFEST, BundleError, verify
from fanin.papers.bundle import write as write_bundle
from fanin.papers.intervals import with_intervals
from fanin.papers.linux import measured
from fanin.papers.verdicts import UNDER, Data, Outcome


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


def test_only_values_that_the_seeds_decide_have_intervals() -> None:
    rows = pl.DataFrame({"seed": [1, 2, 3, 4], "x": [1.0, 2.0, 3.0, 4.0]})

    def judge(data: Data) -> Outcome:
        return Outcome(f"at 10 packets p99 is {data['e']['runs']['x'].mean():.2f}", True)

    stated = with_intervals(judge, Data({"e": {"runs": rows}}), "made.up")
    assert stated.startswith("at 10 packets p99 is 2.50 [1.")
    assert stated == with_intervals(judge, Data({"e": {"runs": rows}}), "made.up")
    assert with_intervals(judge, Data({"e": {"runs": rows.head(1)}}), "made.up") == "at 10 packets p99 is 1.00"


def test_a_claim_has_a_page_with_its_data_and_an_archive_is_verified_and_its_damage_found(tmp_path: Path) -> None:
    result = reproduce("gss.fig4", quick=True, settings={"stack.initial_window": "10"}, seeds=2)
    (one,) = result.claims
    assert (one.seeds, result.to_dict()["set"], result.to_dict()["seeds"]) == (2, {"stack.initial_window": "10"}, 2)
    result.write_files(tmp_path)
    text = (tmp_path / "claims/gss.fig4.one-round.html").read_text()
    for part in (
        "95 % intervals",
        "fanin reproduce gss.fig4.one-round --quick --set stack.initial_window=10 --seeds 2",
        "only the window of 2",
        "fig4.outcome.csv",
    ):
        assert part in text
    # What was run is the claim's own command, and as much as was asked for: three variants of four algorithms, two seeds.
    assert "fig4 (24 simulations over 2 seeds, about " in text
    assert "--set stack.initial_window=10" in text
    written = pl.read_parquet(tmp_path / "data/gss.fig4.one-round/fig4.outcome.parquet")
    assert written.equals(result.evidence[one.id]["fig4"]["outcome"])

    archive = tmp_path / "gss.zip"
    write_bundle(result, ["gss.fig4"], archive)
    assert verify(archive) == ([], 2)
    damaged = tmp_path / "damaged.zip"
    with zipfile.ZipFile(archive) as whole, zipfile.ZipFile(damaged, "w") as other:
        for name in whole.namelist():
            held = whole.read(name)
            other.writestr(
                name, held.replace(b'"ours": "newreno 0', b'"ours": "newreno 9') if name == "claims.json" else held
            )
    wrong, _ = verify(damaged)
    assert len(wrong) == 1
    assert wrong[0].startswith("gss.fig4.one-round: ")


def test_what_is_no_archive_is_refused_in_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "no.zip"
    with pytest.raises(BundleError, match="it cannot be read"):
        verify(file)
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(MANIFEST, "{}")
    with pytest.raises(BundleError, match="it is no archive of"):
        verify(file)


MADE = {"version": "1", "asked": [], "quick": True, "set": {}, "seeds": None, "data": {}}


@pytest.mark.parametrize(
    ("told", "claims"),
    [
        ("5", "{}"),
        ("[" * 100_000, "{}"),
        (json.dumps(MADE | {"asked": "gss"}), '{"claims": []}'),
        (json.dumps(MADE | {"set": [1]}), '{"claims": []}'),
        (json.dumps(MADE | {"data": {"manifest.json": "x"}}), '{"claims": []}'),
        (json.dumps(MADE), '{"claims": [{"id": 5, "verdict": "", "ours": ""}]}'),
    ],
    ids=["number", "deep", "asked", "set", "rows", "claims"],
)
def test_an_archive_that_somebody_made_up_is_refused_in_a_sentence(told: str, claims: str, tmp_path: Path) -> None:
    file = tmp_path / "made.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(MANIFEST, told)
        archive.writestr("claims.json", claims)
    with pytest.raises(BundleError, match="it is no archive of"):
        verify(file)


def test_an_archive_that_unpacks_to_more_than_it_may_hold_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle, "MOST", 1_000_000)
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MANIFEST, " " * 1_000_001)
    with pytest.raises(BundleError, match="it holds more than 0 GB"):
        verify(tmp_path / "bomb.zip")


def test_a_page_tells_what_each_reading_gave_and_runs_the_one_that_holds(tmp_path: Path) -> None:
    result = reproduce("gss.fig7", quick=True)
    (one,) = result.claims
    assert one.verdict == UNDER
    result.write_files(tmp_path)
    text = (tmp_path / f"claims/{one.id}.html").read_text()
    assert "<td>as read by default</td><td>differs</td>" in text
    assert f"<td>{one.reading}</td><td>reproduced</td>" in text
    assert "<td>initial window: 30</td><td>not run: one before it holds</td>" in text
    # Commands are those of the evidence, not of the default reading.
    assert f"--set {one.switches[0].replace(' ', '')}" in text


def test_a_page_of_a_claim_about_kernels_tells_what_linux_gave(tmp_path: Path) -> None:
    result = reproduce("dctcp.fig1", quick=True)
    result.write_files(tmp_path)
    text = (tmp_path / "claims/dctcp.fig1.queue-n2.html").read_text()
    for row in measured(papers_folder()):
        assert (f"<td>{row['engine']}, {row['rate']}: {row['ours']}" in text) == (row["claim"] == "dctcp.fig1.queue-n2")
    assert '<a href="../gallery.html#dctcp.fig1">' in text
