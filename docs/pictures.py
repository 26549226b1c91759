"""Makes the manual's pictures from the product itself: ``.venv/bin/python docs/pictures.py``, after ``make run``."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import altair as alt
import fanin
from fanin.frames import thin

ROOT = Path(__file__).parent.parent
PICTURES = ROOT / "docs" / "pictures"


def window() -> None:
    """Two flows on a dumbbell."""
    result = fanin.run(ROOT / "examples" / "dumbbell.toml", cc=["sack"])
    trace = thin(result.window, "time_ms", "cwnd", by=["flow"], points=360)
    chart = (
        alt.Chart(trace)
        .mark_line(interpolate="step-after", strokeWidth=1.2)
        .encode(x=alt.X("time_ms:Q", title="time (ms)"), y=alt.Y("cwnd:Q", title="cwnd (packets)"), color="flow:N")
        .properties(width=720, height=260)
    )
    chart.save(PICTURES / "window.svg")


def rounds() -> None:
    """Who waits for whom in a capture."""
    from fanin import waiting
    from fanin.plots import round_plot

    found = fanin.trains(ROOT / "tests" / "data" / "pcap" / "virtual_kernel" / "incast12_cubic_1g.client.pcap.gz")
    chart = round_plot(found.turns, found.rounds(), title=waiting.sentences(found.companies())[0])
    if chart is not None:
        chart.save(PICTURES / "rounds.svg")


def report(page: Path) -> None:
    """The head of a report, as a browser shows it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        view = browser.new_page(viewport={"width": 1180, "height": 1080}, color_scheme="light")
        view.goto(page.resolve().as_uri())
        view.wait_for_selector("html[data-ready=true]")
        view.screenshot(path=PICTURES / "report.png")
        browser.close()


if __name__ == "__main__":
    PICTURES.mkdir(exist_ok=True)
    window()
    rounds()
    report(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "out" / "http_onoff_8to1" / "report.html")
