"""The page of a capture's requests in a browser: it draws what it holds, under its own policy, and lets its reader choose."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import fanin

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CAPTURE = Path(__file__).parents[1] / "data/requests/two.pcap.gz"


def test_a_reader_sees_two_requests_and_any_other_that_he_chooses(chromium: Browser, tmp_path: Path) -> None:
    fanin.trains(CAPTURE).write_files(tmp_path, request=3)
    view, told = chromium.new_page(), []
    view.on("console", lambda message: told.append(message.text))
    view.on("pageerror", lambda error: told.append(str(error)))
    view.goto((tmp_path / "requests.html").as_uri())
    view.wait_for_selector("html[data-ready=true]")
    for figure in ("typical", "slow", "any"):
        # A bar for each of its twelve messages.
        assert view.locator(f"#{figure} .mark-rect path").count() == 12
    assert view.locator("#any").get_attribute("data-request") == "3"
    view.locator("#after").click()
    view.wait_for_selector("#any[data-request='4']")
    view.locator("#number").fill("7")
    view.locator("#number").press("Enter")
    view.wait_for_selector("#any[data-request='7']")
    view.locator("#number").fill("99")
    view.locator("#number").press("Enter")
    view.wait_for_function("document.getElementById('said').textContent.includes('not in this page')")
    assert told == []
    view.close()
