"""The report in a browser, as a person uses it: from a file, without a network."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fanin.report
import made_up
import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser


class Opened:
    """A page and what went on behind it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.console: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.console.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.console.append(f"uncaught: {error}"))
        page.on("request", lambda request: self.requests.append(request.url))

    def settled(self) -> None:
        """Wait until the figures are drawn."""
        self.page.wait_for_selector("html[data-ready=true]", timeout=60_000)

    def drawn(self, figure: str, key: str) -> str:
        """What the page says of a figure's data."""
        value: str = self.page.locator(f"#{figure}").evaluate(f"e => e.dataset.{key} || ''")
        return value

    def wait(self, condition: str) -> None:
        """Ask until it is so; Playwright's own waiting evaluates text in the page, which the page's policy forbids."""
        for _ in range(600):
            if self.page.evaluate(condition):
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(f"it never became true that {condition}")

    def stroked(self, figure: str) -> set[str]:
        """Colours of the lines that are in the drawing of an SVG figure."""
        found: list[str] = self.page.locator(f"#{figure} svg .mark-line path").evaluate_all(
            "all => all.map(p => p.getAttribute('stroke'))"
        )
        return set(found)


Open = Callable[..., Opened]


@pytest.fixture
def opened(chromium: Browser, tmp_path: Path) -> Iterator[Open]:
    contexts = []

    def open_page(*, width: int = 1280, scheme: Any = "light", **options: Any) -> Opened:
        path = fanin.report.write(made_up.result(**options), tmp_path / "report.html")
        context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
        contexts.append(context)
        page = Opened(context.new_page())
        page.page.goto(path.as_uri())
        page.settled()
        return page

    yield open_page
    for context in contexts:
        context.close()


def test_the_page_opens_without_a_network_an_error_or_a_request(opened: Open) -> None:
    page = opened()
    assert page.console == []
    assert [url for url in page.requests if not url.startswith("data:")] == [page.page.url]
    for figure in ("bars", "distribution", "responses", "queue", "window", "sizes", "gaps"):
        assert page.drawn(figure, "error") == ""
        assert int(page.drawn(figure, "rows")) > 0, figure
        assert page.page.locator(f"#{figure} canvas, #{figure} svg").count() == 1, figure


def test_the_page_would_be_kept_from_the_network_if_something_tried(opened: Open) -> None:
    page = opened()
    blocked = page.page.evaluate("fetch('https://example.org/').then(() => 'fetched', () => 'blocked')")
    evaluated = page.page.evaluate(
        "new Promise(done => { const s = document.createElement('script'); s.textContent = 'window.ran = true';"
        " document.body.append(s); done(window.ran === true); })"
    )
    assert blocked == "blocked"
    assert evaluated is False
    assert any("Content Security Policy" in line for line in page.console)


def test_markup_in_a_capture_or_a_rack_stays_text(opened: Open) -> None:
    page = opened(hostile=True)
    assert page.console == []
    assert page.page.locator("img").count() == 0
    assert "pwned" not in page.page.title().replace(made_up.HOSTILE, "")
    assert made_up.HOSTILE in page.page.locator("pre.file").inner_text()
    assert made_up.HOSTILE in page.page.locator("#connection option").first.inner_text()
    page.page.locator("#sizes").hover()
    assert page.page.locator("img").count() == 0


def test_without_traces_the_page_shows_what_there_is(opened: Open) -> None:
    made = made_up.result()
    page = opened(queue=made.queue.clear(), window=made.window.clear())
    assert page.console == []
    assert page.drawn("queue", "rows") == page.drawn("window", "rows") == "0"
    assert int(page.drawn("responses", "rows")) > 0


def test_a_click_on_a_heading_sorts_the_table_and_a_second_turns_it_round(opened: Open) -> None:
    page = opened()
    names = page.page.locator("#ranking tbody.simulated tr")

    def order() -> list[str]:
        found: list[str] = names.evaluate_all("rows => rows.map(r => r.dataset.cc)")
        return found

    ranked = order()
    page.page.get_by_role("button", name="Algorithm", exact=True).click()
    assert order() == sorted(ranked)
    page.page.get_by_role("button", name="Algorithm", exact=True).click()
    assert order() == sorted(ranked, reverse=True)
    page.page.get_by_role("button", name="marks", exact=True).click()
    page.page.get_by_role("button", name="marks", exact=True).click()
    assert order()[0] == "dctcp"
    assert page.page.locator("#ranking th[aria-sort=descending]").inner_text().startswith("marks")
    page.page.get_by_role("button", name="#", exact=True).click()
    assert order() == ranked


def test_a_chip_takes_an_algorithm_into_every_figure_and_out_again(opened: Open) -> None:
    page = opened()
    assert "reno" not in page.drawn("distribution", "algorithms").split()
    before = page.stroked("distribution")
    page.page.locator(".chip[data-cc=reno]").click()
    for figure in ("distribution", "responses", "queue", "window"):
        page.wait(f"document.getElementById('{figure}').dataset.algorithms.split(' ').includes('reno')")
    page.wait(f"document.querySelectorAll('#distribution svg .mark-line path').length === {len(before) + 1}")
    assert before < page.stroked("distribution")
    page.page.locator(".chip[data-cc=reno]").click()
    page.wait("!document.getElementById('queue').dataset.algorithms.split(' ').includes('reno')")
    page.wait(f"document.querySelectorAll('#distribution svg .mark-line path').length === {len(before)}")
    page.page.get_by_role("button", name="all", exact=True).click()
    page.wait("document.getElementById('queue').dataset.algorithms.split(' ').length === 6")
    assert page.console == []


def test_the_statistic_that_is_chosen_is_the_one_that_is_drawn(opened: Open) -> None:
    page = opened()
    labels = page.page.locator("#bars svg .mark-text.role-mark text")
    before = labels.first.text_content()
    page.page.locator("#statistic").select_option("p50")
    page.wait("document.getElementById('bars').dataset.statistic === 'p50'")
    page.wait(f"document.querySelector('#bars svg .mark-text.role-mark text').textContent !== {before!r}")
    best = made_up.result().ranking[0].completion_ms["p50"].value
    assert labels.first.text_content() == f"{best:.3g} ms"


def test_request_trees_requests_and_responses_can_each_be_drawn(opened: Open) -> None:
    page = opened(trees=True)
    choices = page.page.locator("select.of")
    assert choices.nth(0).locator("option").all_text_contents() == ["request trees", "requests", "responses"]
    row = made_up.result(trees=True).ranking[0]
    label = page.page.locator("#bars svg .mark-text.role-mark text").first
    for of in ("trees", "requests", "responses"):
        choices.nth(1).select_option(of)
        page.wait(f"document.getElementById('distribution').dataset.of === '{of}'")
        assert choices.nth(0).input_value() == of
        page.wait(
            f"document.querySelector('#bars svg .mark-text.role-mark text').textContent.startsWith('{row.times(of)['p99'].value:.3g} ms')"  # type: ignore[index,arg-type]
        )
        assert label.is_visible()
    assert page.page.locator("#kinds tbody tr").count() == len(made_up.ALGORITHMS)
    assert page.console == []


def test_the_p99_is_drawn_across_the_distribution_and_on_each_curve(opened: Open) -> None:
    page = opened()
    assert page.page.locator("#distribution svg").get_by_text("p99", exact=True).count() == 1
    assert page.page.locator("#distribution svg .mark-rule.role-mark line").count() == 1
    assert page.page.locator("#distribution svg .mark-symbol.role-mark path").count() == 3


def test_the_slow_tail_is_another_view_of_the_same_responses(opened: Open) -> None:
    page = opened()
    page.page.get_by_role("button", name="the slow tail").click()
    page.page.get_by_text("share that takes longer").wait_for()
    assert page.page.locator("#distribution svg").get_by_text("p99", exact=True).count() == 1
    assert page.page.locator("#view-tail").get_attribute("aria-pressed") == "true"
    assert page.console == []


def test_another_seed_shows_its_responses_and_says_how_to_trace_it(opened: Open) -> None:
    page = opened()
    assert page.drawn("responses", "seed") == "1"
    assert page.page.locator("#untraced").is_hidden()
    first = page.page.locator("#responses canvas").screenshot()
    page.page.locator("#seed").select_option("2")
    page.wait("document.getElementById('responses').dataset.seed === '2'")
    page.page.locator("#untraced").wait_for(state="visible")
    assert "--trace-seed 2" in page.page.locator("#untraced").inner_text()
    page.wait("document.getElementById('queue').dataset.rows === '0'")
    assert page.page.locator("#responses canvas").screenshot() != first
    assert page.page.locator("#time-seed").inner_text() == "2"
    page.page.locator("#seed").select_option("1")
    page.wait("Number(document.getElementById('queue').dataset.rows) > 0")
    assert page.page.locator("#untraced").is_hidden()


def test_another_connection_shows_its_window(opened: Open) -> None:
    page = opened()
    before = page.page.locator("#window canvas").screenshot()
    other = page.page.locator("#connection option").nth(1)
    value = other.get_attribute("value")
    page.page.locator("#connection").select_option(value)
    page.wait(f"document.getElementById('window').dataset.connection === '{value}'")
    assert (other.inner_text().split(": ")[1]) in page.page.locator("#window-of").inner_text()
    assert page.page.locator("#window canvas").screenshot() != before


def test_dragging_over_the_responses_zooms_the_strips(opened: Open) -> None:
    page = opened()
    end = float(page.drawn("queue", "to"))
    figure = page.page.locator("#responses canvas")
    figure.scroll_into_view_if_needed()
    box = figure.bounding_box()
    assert box is not None
    page.page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 60)
    page.page.mouse.down()
    page.page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 60, steps=4)
    page.page.mouse.up()
    page.wait(f"Number(document.getElementById('queue').dataset.to) < {end / 2}")
    low, high = float(page.drawn("queue", "from")), float(page.drawn("queue", "to"))
    assert 0 < low < high
    assert (high - low) / end == pytest.approx(0.1, abs=0.02)
    assert page.page.locator("#from").input_value() == f"{round(low, 3):g}"
    page.page.get_by_role("button", name="whole run").click()
    page.wait(f"Number(document.getElementById('queue').dataset.to) === {end}")
    page.page.get_by_role("button", name="slowest response").click()
    page.wait(f"Number(document.getElementById('queue').dataset.to) < {end}")
    assert page.console == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_is_wider_than_the_window(opened: Open, width: int, scheme: str) -> None:
    page = opened(width=width, scheme=scheme)
    assert page.page.evaluate("document.documentElement.scrollWidth") <= width
    for figure in ("bars", "distribution", "responses", "queue", "window", "sizes", "gaps"):
        inner = page.page.locator(f"#{figure} canvas, #{figure} svg").bounding_box()
        outer = page.page.locator(f"#{figure}").bounding_box()
        assert inner is not None
        assert outer is not None
        assert inner["x"] + inner["width"] <= outer["x"] + outer["width"] + 1, figure


def test_the_theme_button_changes_the_page_and_its_figures(opened: Open) -> None:
    page = opened()
    before, background = page.stroked("distribution"), "getComputedStyle(document.body).backgroundColor"
    paper = page.page.evaluate(background)
    page.page.locator("#theme").click()
    page.wait(f"{background} !== {paper!r}")
    page.wait(
        f"![...document.querySelectorAll('#distribution svg .mark-line path')].some(p => {sorted(before)!r}.includes(p.getAttribute('stroke')))"
    )
    assert len(page.stroked("distribution")) == len(before)
    assert page.console == []
