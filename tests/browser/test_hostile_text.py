"""Whatever a capture, a scenario, a sweep or a trace says of itself: no page that fanin writes executes it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fanin
import fanin.report
import made_up
import polars as pl
import pytest
from fanin import html, waterfall
from fanin.papers import ReproduceResult, gallery
from fanin.papers.catalogue import load
from fanin.papers.gallery import Section
from fanin.papers.verdicts import Judged
from fanin.pictures import files as pictures
from fanin.pictures.plots import round_plot, train_plots
from fanin.sweep.plot import plot
from made_up import HOSTILE

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SCRIPT = "</script><script>document.title='pwned'</script>"
EXPRESSION = "{signal: 'pwned'}](javascript:document.title='pwned')[\"'`${document.title='pwned'}"
TEXTS = (HOSTILE, SCRIPT, EXPRESSION)


def drawn(text: str) -> Any:
    scenario = Path("examples/incast.toml").read_text()
    titled = re.sub(r"^title = .*$", lambda _: f"title = {json.dumps(text)}", scenario, count=1, flags=re.MULTILINE)
    assert titled != scenario
    return fanin.draw("a.toml", text=titled)


def draw(folder: Path, text: str) -> Path:
    return saved(drawn(text), folder)


def plotted(folder: Path, text: str) -> Path:
    rows = [
        {text: axis, "colour" + text: text + str(colour), "facet" + text: text, "y" + text: 1.0 + axis + colour + seed, "seed": seed}
        for axis in (1, 2) for colour in (0, 1) for seed in (1, 2)
    ]  # fmt: skip
    return saved(plot(pl.DataFrame(rows), text, "y" + text, colour="colour" + text, facet="facet" + text), folder)


def trains(folder: Path, text: str) -> Path:
    frame = pl.DataFrame({"direction": ["to_client"] * 3, "bytes": [1e3, 2e3, 4e3], "gap_before_ms": [None, 1.0, 2.0]})
    return saved(train_plots(frame, title=f"{text}.pcap"), folder)


def rounds(folder: Path, text: str) -> Path:
    turns = pl.DataFrame(
        {"connection": [0, 1], "turn": [0, 0], "request_start_ms": [0.0, 0.1], "response_end_ms": [2.0, 3.0]},
        schema_overrides={"connection": pl.UInt32, "turn": pl.UInt32},
    )
    return saved(round_plot(turns, [[(0, 0), (1, 0)]], title=text), folder)


def saved(chart: Any, folder: Path) -> Path:
    pictures.save(chart, folder / "chart.html")
    return folder / "chart.html"


def waterfalls(folder: Path, text: str) -> Path:
    found = fanin.trains("tests/data/requests/chain.pcap.gz")
    found.summary["file"] = text
    page = waterfall.page(found, found.workload())
    assert page is not None
    (folder / "requests.html").write_text(page, encoding="utf-8")
    return folder / "requests.html"


def report(folder: Path, text: str) -> Path:
    made = made_up.result(hostile=True)
    made = replace(
        made,
        command=f"fanin compare {text}",
        capture=replace(made.capture, file=text, warnings=(text,)),
        failures=[made_up.Failure(text, text)],
        port=text,
    )
    return fanin.report.write(made, folder / "report.html")


def papers(folder: Path, text: str) -> Path:
    judged = Judged("dctcp.fig1.queue-n2", text, text, "differs", text, 1, reading=text, says=text, switches=(text,))
    paper = next(p for p in load() if p.name == "dctcp")
    claim = next(c for c in paper.claims if c.id == judged.id)
    claim = replace(claim, setup=text, published=text, band=text, note=text)
    paper = replace(paper, title=text, source=text, proposes=text)
    found = ReproduceResult([judged], [paper], {}, {}, text, text, quick=True)
    section = Section("dctcp.fig1", None, None, [], [(claim, judged)], [text], [gallery.Run(text, text, text)])
    (folder / "gallery.html").write_text(gallery.page(found, {"dctcp": [section]}), encoding="utf-8")
    return folder / "gallery.html"


ON_LINUX = ("engine", "rate", "ours", "verdict", "reading", "points", "recorded", "commit")
"""What a row of the kernel's verdicts says."""


def claim(folder: Path, text: str) -> Path:
    judged = Judged("dctcp.fig1.queue-n2", text, text, "differs", text, 1, reading=text, says=text, switches=(text,))
    paper = next(p for p in load() if p.name == "dctcp")
    of_claim = replace(next(c for c in paper.claims if c.id == judged.id), setup=text, published=text, band=text)
    page = html.rendered(
        "fanin.papers", "claim.html", paper=paper, claim=of_claim, judged=judged, ours=text, remarks=text, cause=text, tried=[(text, text, text)],
        mutants=[], runs=[(text, text, text)], drawn=text, on_linux=[dict.fromkeys(ON_LINUX, text)], again=text,
        version=text, quick=True, settings=text, files=[(text, text, 1)],
    )  # fmt: skip
    (folder / "claim.html").write_text(page, encoding="utf-8")
    return folder / "claim.html"


def watched(chromium: Browser, file: Path) -> tuple[Page, list[str], list[str]]:
    """A page that was opened, what went wrong on it, and what it fetched."""
    page = chromium.new_context(offline=True).new_page()
    wrong: list[str] = []
    fetched: list[str] = []
    page.on("dialog", lambda dialog: wrong.append(dialog.message))
    page.on("pageerror", lambda error: wrong.append(f"uncaught: {error}"))
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    page.on("request", lambda request: fetched.append(request.url))
    page.goto(file.as_uri())
    page.wait_for_timeout(300)
    return page, wrong, fetched


@pytest.mark.browser
@pytest.mark.parametrize("text", TEXTS, ids=["element", "script", "expression"])
@pytest.mark.parametrize("write", [draw, plotted, trains, rounds, waterfalls, report, papers, claim])
def test_a_page_shows_hostile_text_and_runs_none_of_it(
    write: Callable[[Path, str], Path], text: str, chromium: Browser, tmp_path: Path
) -> None:
    file = write(tmp_path, text)
    page, wrong, fetched = watched(chromium, file)
    if file.name == "chart.html":
        page.wait_for_selector("#chart[data-drawn=yes]", timeout=60_000)
        shown = page.locator("#chart svg.marks").text_content() or ""
        assert text[:9] in shown, "hostile text is shown as it is, up to where a label is cut"
    assert page.title() != "pwned"
    assert page.locator("img").count() == 0
    assert (wrong, [url for url in fetched if not url.startswith(("file:", "data:", "blob:"))]) == ([], [])
    # What slipped in all the same would not be run.
    page.evaluate(
        "() => { const s = document.createElement('script'); s.textContent = 'window.slipped = 1'; document.body.append(s); }"
    )
    assert page.evaluate("() => window.slipped") is None
    page.context.close()


@pytest.mark.browser
@pytest.mark.parametrize("text", TEXTS, ids=["element", "script", "expression"])
def test_a_picture_as_svg_runs_nothing_either(text: str, chromium: Browser, tmp_path: Path) -> None:
    pictures.save(drawn(text), tmp_path / "chart.svg")
    page, wrong, _ = watched(chromium, tmp_path / "chart.svg")
    assert wrong == []
    assert (
        page.evaluate(
            "() => document.getElementsByTagName('script').length + document.getElementsByTagName('img').length"
        )
        == 0
    )
    assert text[:9] in page.evaluate("() => document.documentElement.textContent")
    page.context.close()


def test_every_template_names_its_policy_and_no_code_writes_a_page_past_them() -> None:
    package = Path(str(resources.files("fanin")))
    templates = list(package.rglob("*.html"))
    assert len(templates) >= 4
    for file in templates:
        assert 'http-equiv="Content-Security-Policy" content="{{ policy }}"' in file.read_text(), file
        assert "| safe" not in file.read_text(), file
    for source in package.rglob("*.py"):
        text = source.read_text()
        inside = source.is_relative_to(package / "html")
        assert inside or not re.search(r"inline=True|jinja2\.Environment|<script|<!doctype", text), source
