"""The manual's gallery follows the papers' tables of verdicts."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from ..conftest import ROOT, script


@pytest.fixture(scope="module")
def gallery() -> ModuleType:
    return script("docs/gallery.py")


def test_the_page_is_what_the_tables_say(gallery: ModuleType) -> None:
    page = (ROOT / "docs/gallery.md").read_text(encoding="utf-8")
    assert gallery.page(gallery.on_the_page()) == page, "make verdicts"


def test_every_figure_has_its_claims_and_every_paper_its_counts(gallery: ModuleType) -> None:
    told = [one["id"] for one in gallery.on_the_page()]
    for _, figure, _, _ in gallery.FIGURES:
        assert any(claim.startswith(f"{figure}.") for claim in told), figure
    lines = "".join(gallery.counts()).splitlines()
    assert len(lines) == 1 + 2 + 5
    for line in lines[3:]:
        claims, *verdicts = (int(text) for text in line.split("|")[2:-2])
        assert claims == sum(verdicts), line


def test_what_linux_gave_stands_beside_what_the_simulator_gave(
    gallery: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = gallery.verdicts.There(
        "dctcp.fig1.queue-n2",
        "kernel",
        "100Mbps",
        "reproduced",
        "",
        "quick",
        "19.2 | 308 packets",
        "2026-11-23",
        "0354897",
    )
    monkeypatch.setattr(gallery.verdicts, "read_there", lambda: [one])
    page = gallery.page(gallery.on_the_page())
    assert "| kernel, 100Mbps: 19.2 \\| 308 packets (indicative: reproduced) |" in page
    assert "| 1 indicative: reproduced |" in page


def test_a_page_is_not_written_from_a_quick_run(
    gallery: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    claims = tmp_path / "claims.json"
    claims.write_text('{"quick": true, "claims": []}')
    monkeypatch.setattr(sys, "argv", ["gallery.py", str(claims)])
    monkeypatch.setattr(gallery, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(gallery, "on_the_page", list)
    with pytest.raises(SystemExit, match="decides nothing"):
        gallery.main()
    assert not gallery.PAGE.exists()
