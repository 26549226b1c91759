"""The page: nothing on it depends on the network, on the colour of the paper or on the width of the window."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fanin.papers import reproduce
from fanin.papers.gallery import COLOURS
from fanin.papers.verdicts import PICTURES

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CHEAP = ["trim.eq26", "trim.fig7", "tcprand.fig5", "tcprand.table1", "gss.fig2-3", "dcvegas.fig4", "dcvegas.fig5-6"]


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gallery")
    reproduce(CHEAP, quick=True).write_files(folder, ["svg"])
    return folder / "gallery.html"


def test_every_drawing_has_a_title_that_names_its_figure(gallery: Path) -> None:
    page = gallery.read_text()
    assert all(re.match(r"(Fig\.|Table|Equation)", PICTURES[name].title) for name in PICTURES)
    for name in CHEAP:
        assert f'id="{name}"' in page


def test_every_colour_of_a_drawing_follows_light_and_dark(gallery: Path) -> None:
    page = gallery.read_text()
    drawn = set(re.findall(r'(?:fill|stroke)="(#[0-9a-f]+)"', page))
    assert drawn <= set(COLOURS)
    style = page[: page.index("</style>")]
    light, dark = style.split("prefers-color-scheme: dark", 1)
    for name in COLOURS.values():
        assert f"--{name}:" in light
        assert f"--{name}:" in dark


def test_clip_paths_of_different_pictures_have_different_names(gallery: Path) -> None:
    page = gallery.read_text()
    names = re.findall(r'id="([^"]*clip\d+)"', page)
    assert len(names) == len(set(names)) > 0
    assert set(re.findall(r"url\(#([^)]*)\)", page)) <= set(names)


def test_what_was_measured_on_the_testbed_before_is_drawn_and_says_so(gallery: Path) -> None:
    page = gallery.read_text()
    article = page[page.index('<article id="tcprand.table1"') :]
    article = article[: article.index("</article>")]
    assert "Table 1" in article
    assert "<figure" in article
    assert "200 Mbps" in article
    assert "measured before, on the testbed" in article


@pytest.mark.browser
@pytest.mark.parametrize("width", [400, 1280])
def test_nothing_on_the_page_is_wider_than_the_window(gallery: Path, chromium: Browser, width: int) -> None:
    view = chromium.new_page(viewport={"width": width, "height": 900})
    view.goto(gallery.as_uri())
    over = view.evaluate(
        "[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1).length"
    )
    # Words that are smaller than this cannot be read on a telephone.
    least = view.evaluate(
        "Math.min(...[...document.querySelectorAll('.panels svg')].map(s => s.clientWidth / s.viewBox.baseVal.width))"
    )
    view.close()
    assert over == 0
    assert least > 0.8
