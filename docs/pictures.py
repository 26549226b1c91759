"""Makes the manual's pictures from the product itself: ``.venv/bin/python docs/pictures.py``, after ``make run``."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import altair as alt
import fanin
from fanin.statistics.frames import thin

ROOT = Path(__file__).parent.parent
PICTURES = ROOT / "docs" / "pictures"
REQUESTS = ROOT / "tests" / "data" / "requests"


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
    from fanin.capture import waiting
    from fanin.pictures.plots import round_plot

    found = fanin.trains(ROOT / "tests" / "data" / "pcap" / "virtual_kernel" / "incast12_cubic_1g.client.pcap.gz")
    chart = round_plot(found.turns, found.rounds(), title=waiting.sentences(found.groups())[0])
    if chart is not None:
        chart.save(PICTURES / "rounds.svg")


def waterfall() -> None:
    """A request as the packets show it, beside the calls that the application logged."""
    import tempfile

    import polars as pl
    from fanin import spans, waterfall

    found = fanin.trains(REQUESTS / "sem.pcap.gz")
    with tempfile.TemporaryDirectory() as folder:
        calls = Path(folder, "calls.csv")
        calls.write_text(logged(REQUESTS / "sem.log.json.gz"))
        replay, told = spans.fit(found, found.workload(), calls)
    rows = waterfall.messages(replay, told.placed)
    number = waterfall.typical(waterfall.requests(rows))
    one = rows.filter(pl.col("request") == number)
    title = f"Request {number}, the median of {waterfall.requests(rows).height}: twelve servers, at most four asked at a time"
    subtitle = "bars: what the packets show, a colour for each stage; black lines: the application's own log"
    waterfall.waterfall(one, title=title, subtitle=subtitle).save(PICTURES / "waterfall.svg")


def logged(log: Path) -> str:
    """The table of calls that `docs/how-to/traces.md` makes of a log."""
    import gzip
    import json

    told = json.loads(gzip.decompress(log.read_bytes()))
    lines = ["peer,begin,end,request"]
    for *_, server, _bytes, begin, end in told["responses"]:
        request = next(n for n, (first, last) in enumerate(told["rounds"]) if first <= begin <= last)
        lines.append(f"{server},{begin},{end},{request}")
    return "\n".join(lines) + "\n"


def offload() -> None:
    """What offload does to BBR in a shallow buffer."""
    import polars as pl

    rows = pl.read_csv(ROOT / "results" / "bbr_offload.csv").with_columns(
        engine=pl.col("engine").replace({"sim": "simulator", "kernel": "Linux"}),
        cc=pl.col("cc").replace({"bbr": "BBR", "cubic": "CUBIC"}),
    )
    base = alt.Chart(rows).encode(
        x=alt.X(
            "buffer:Q",
            title="buffer (packets)",
            scale=alt.Scale(type="log", domain=[50, 800]),
            axis=alt.Axis(values=[50, 100, 200, 400, 800]),
        ),
        color=alt.Color(
            "hosts:N", title="hosts", scale=alt.Scale(range=["#1f77b4", "#d62728"], domain=["no offload", "offload"])
        ),
        strokeDash=alt.StrokeDash(
            "engine:N",
            title="engine",
            sort=["simulator", "Linux"],
            legend=alt.Legend(symbolType="stroke", symbolSize=400, labelLimit=240),
        ),
    )
    panels = [
        base.mark_line(strokeWidth=1.8)
        .encode(y=alt.Y(f"{column}:Q", title=title))
        .properties(width=300, height=220)
        .facet(column=alt.Column("cc:N", title=None))
        for column, title in (("mean_ms", "mean completion (ms)"), ("drops", "drops per run"))
    ]
    alt.vconcat(*panels).save(PICTURES / "offload.svg")


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
    waterfall()
    offload()
    report(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "out" / "nginx_16to1" / "report.html")
