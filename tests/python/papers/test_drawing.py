"""What figures are made of: nothing is hidden, nothing is bridged, and every label that was asked for is there."""

from __future__ import annotations

import json
import re
from typing import Any

import polars as pl
import vl_convert as vlc
from fanin.papers import drawing, gallery, legend
from fanin.papers.drawing import Axis, Figure, Key, Published, bars, lines, samples, seconds, shares_over_time

A, B = Key("one", drawing.BLUE, shape="circle"), Key("other", drawing.VERMILION, (6, 3), "diamond", hollow=True)
ROWS = pl.DataFrame({"x": [1.0, 2.0, 1.0, 2.0], "y": [3.0, 4.0, 3.0, 4.0], "who": ["a", "a", "b", "b"]})


def svg(chart: Any) -> str:
    spec = {**chart.to_dict(), "config": {**drawing.CONFIG, "background": drawing.PAPER}}
    drawn: str = vlc.vegalite_to_svg(json.dumps(spec, allow_nan=False))
    return drawn


def first_line(chart: Any) -> list[dict[str, Any]]:
    """Rows of a panel's first layer; Altair keeps them above the layers where all share them."""
    made = chart.to_dict()
    rows: list[dict[str, Any]] = (made["layer"][0].get("data") or made["data"])["values"]
    return rows


def words(picture: str) -> list[str]:
    return re.findall(r">([^<>]+)</text>", picture)


def test_the_gallery_writes_what_the_schema_was_not_asked_about_as_it_stands() -> None:
    chart = lines(ROWS, Axis("x"), Axis("y"), "who", {"a": A, "b": B})
    checked, written = chart.to_dict(), json.loads(gallery._spec(chart, None))
    del checked["config"], written["config"]
    assert written == checked


def test_every_tick_that_was_asked_for_has_its_label() -> None:
    ticks = [0.5, 1, 4, 16, 64, 128, 256]
    rows = pl.DataFrame({"kb": [0.5, 256.0], "share": [0.0, 1.0], "one": [0, 0]})
    picture = svg(lines(rows, Axis("kb", "KB", (0.4, 320), ticks, "log"), Axis("share"), "one", {0: A}))
    assert {f"{tick:g}" for tick in ticks} <= set(words(picture))


def test_a_line_below_another_is_seen_by_its_marks() -> None:
    picture = svg(lines(ROWS, Axis("x"), Axis("y"), "who", {"a": drawing.DCTCP, "b": drawing.L2DCT}))
    below, above = picture.index(f'fill="{drawing.BLUE}"'), picture.index(f'stroke="{drawing.GREEN}"')
    assert below < above
    assert drawing.DCTCP.width > drawing.L2DCT.width
    assert drawing.L2DCT.hollow


def test_no_two_series_that_stand_together_differ_by_colour_alone() -> None:
    together = [drawing.RENO, drawing.CUBIC, drawing.DCTCP, drawing.L2DCT, drawing.OWN]
    looks = [(key.dash, key.shape, key.hollow, key.width > drawing.OWN.width) for key in together]
    assert len(set(looks)) == len(together)


def test_a_flow_that_stalls_is_drawn_at_zero_and_not_bridged() -> None:
    sent = pl.DataFrame(
        {"cc": ["reno"] * 2, "seed": [1, 1], "flow": [0, 0], "time_ms": [100.0, 400.0], "bytes": [12_500_000] * 2}
    )
    figure = shares_over_time(sent, {"reno": "TCP"}, bin_ms=100, until=1)
    values = first_line(figure.parts[0])
    assert [round(row["mbps"]) for row in values] == [1000, 0, 0, 1000]
    assert [round(row["s"], 3) for row in values] == [0.05, 0.15, 0.25, 0.35]


def test_a_picture_of_a_part_of_a_run_begins_with_the_value_that_held_before() -> None:
    window = pl.DataFrame({"time_ms": [100.0, 600.0, 700.0], "cwnd": [9.0, 2.0, 3.0]})
    shown = seconds(window, "cwnd", 0.5, 1.0)
    assert shown.select(pl.col("s").round(3), "cwnd").rows() == [(0.5, 9.0), (0.6, 2.0), (0.7, 3.0)]


def test_what_never_happened_is_a_gap() -> None:
    rows = pl.DataFrame({"x": [1.0, 2.0], "y": [1.0, float("inf")], "who": ["a", "a"]})
    assert "Infinity" not in svg(lines(rows, Axis("x"), Axis("y"), "who", {"a": A}))
    assert "Infinity" not in svg(bars(rows.with_columns(case=pl.lit("one")), "case", Axis("y"), "who", {"a": A}))


def test_published_numbers_are_crosses_at_bars_and_lines_and_their_words_are_there() -> None:
    both = [Published(1.0, 3.0, "three"), Published(y=4.0, label="four", align="outside")]
    picture = svg(lines(ROWS, Axis("x", domain=(0, 3)), Axis("y", domain=(0, 5)), "who", {"a": A}, published=both))
    assert {"three", "four"} <= set(words(picture))
    table = pl.DataFrame({"case": ["one", "one"], "y": [3.0, 4.0], "who": ["a", "b"]})
    plain = svg(bars(table, "case", Axis("y"), "who", {"a": A, "b": B}, values=".1f"))
    crossed = svg(bars(table, "case", Axis("y"), "who", {"a": A, "b": B}, values=".1f", published={("one", "a"): 2.0}))
    assert "3.0" in words(plain)
    assert "3.0" not in words(crossed), "the value would stand in the cross"
    assert "4.0" in words(crossed)


def test_a_distribution_goes_from_its_least_to_its_greatest() -> None:
    values = first_line(samples({A: pl.Series([5.0, None, 1.0, 3.0])}, Axis("ms")))
    assert (values[0]["ms"], values[0]["share"]) == (1.0, 0.0)
    assert (values[-1]["ms"], values[-1]["share"]) == (5.0, 1.0)


def test_a_file_has_its_legend_above_the_panels() -> None:
    panel = lines(ROWS, Axis("x"), Axis("y"), "who", {"a": A, "b": B}, title="a panel")
    picture = svg(Figure([panel, panel], [A, B, drawing.BOTH], 2).chart())
    assert [word for word in words(picture) if word in ("one", "other", "published", "a panel")] == [
        "one",
        "other",
        "published",
        "a panel",
        "a panel",
    ]


def test_names_in_a_legend_are_words_and_never_markup() -> None:
    assert "<b>" not in legend.html([Key("<b>bold</b>", drawing.INK)])
