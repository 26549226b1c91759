"""Pages of one chart, on a telephone and on a screen: all of the chart is there, however long its title and however wide its network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import fanin
import pytest
from fanin.pictures.drawing import draw
from fanin.pictures.files import write

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).parents[2]

CUT = """() => {
  const page = document.documentElement, svg = document.querySelector("#chart svg.marks"), whole = svg.getBoundingClientRect();
  const out = (box, right) => box.left < -1 || box.right > right + 1;
  const texts = [...svg.querySelectorAll("text")].filter((text) => out(text.getBoundingClientRect(), whole.right + 1));
  return { page: page.scrollWidth > page.clientWidth, chart: out(whole, page.clientWidth), texts: texts.map((text) => text.textContent) };
}"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    fanin.trains(ROOT / "tests/data/requests/chain.pcap.gz").write_files(folder)
    write(draw(ROOT / "examples/trim_fat_tree.toml"), folder / "network.html")
    return folder


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("page", ["trains", "rounds", "network"])
def test_nothing_of_a_chart_is_cut(chromium: Browser, pages: Path, page: str, width: int) -> None:
    view = chromium.new_page(viewport={"width": width, "height": 844})
    view.goto((pages / f"{page}.html").as_uri())
    view.wait_for_selector("#chart[data-drawn=yes]")
    assert view.evaluate(CUT) == {"page": False, "chart": False, "texts": []}
    view.close()
