"""Networks as pictures."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import fanin as api
import pytest
from fanin.pictures.drawing import Graph, cables, layers, positions

from .conftest import ROOT, Fanin


def graph(topology: str) -> Graph:
    import json

    text = (
        f'[topology]\n{topology}\n[[workload]]\nkind = "poisson"\nload = 0.1\nsize = "1KB"\n[run]\nduration = "1ms"\n'
    )
    if "star" in topology or "dumbbell" in topology:
        text = f'[topology]\n{topology}\n[[workload]]\nkind = "long"\n[run]\nduration = "1ms"\n'
    found: Graph = json.loads(api._native.graph_json(api._native.Scenario.from_text(text, "graph.toml").plan(1)))
    return found


def test_a_fat_tree_has_its_four_layers() -> None:
    found = graph('kind = "fat_tree"\nk = 4')
    assert Counter(layers(found)) == {0: 16, 1: 8, 2: 8, 3: 4}
    names = [node["name"] for node in found["nodes"]]
    for kind, layer in (("edge", 1), ("agg", 2), ("core", 3)):
        assert {layers(found)[n] for n, name in enumerate(names) if name.startswith(kind)} == {layer}


@pytest.mark.parametrize(
    "topology", ['kind = "star"\nsenders = 40', 'kind = "fat_tree"\nk = 4', 'kind = "leaf_spine"', 'kind = "dumbbell"']
)
def test_nothing_stands_on_anything_else(topology: str) -> None:
    found = graph(topology)
    by_layer: dict[float, list[float]] = {}
    for x, y in positions(found):
        by_layer.setdefault(y, []).append(x)
    for y, row in by_layer.items():
        row.sort()
        assert all(b - a >= (1.0 if y == 0 else 1.6) - 1e-6 for a, b in pairwise(row))


def test_every_cable_is_drawn_once_and_says_what_it_is() -> None:
    found = graph('kind = "star"\nsenders = 3\nrate = "10Gbps"\ndelay = "5us"\nbuffer = "200p"\nmark = "65p"')
    drawn = cables(found)
    assert len(drawn) == 4 == len(found["links"]) / 2
    assert {cable["kind"] for cable in drawn} == {"10Gbps, 5us; queue 200p, marks above 65p"}


def test_senders_and_receivers_are_told_apart() -> None:
    nodes = {node["name"]: node for node in graph('kind = "dumbbell"')["nodes"]}
    assert (nodes["s1"]["sends"], nodes["s1"]["receives"]) == (True, False)
    assert (nodes["r1"]["sends"], nodes["r1"]["receives"]) == (False, True)


@pytest.mark.parametrize(
    ("kind", "begins"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("pdf", b"%PDF"), ("html", b"<!doctype html>")]
)
def test_every_kind_of_picture_is_written(fanin: Fanin, tmp_path: Path, kind: str, begins: bytes) -> None:
    done = fanin("draw", ROOT / "examples/dumbbell.toml", "--out", f"graph.{kind}")
    assert done.code == 0, done.err
    picture = (tmp_path / f"graph.{kind}").read_bytes()
    assert picture.lstrip().startswith(begins)
    if kind in ("svg", "html"):
        for text in (b"left", b"right", b"100Mbps, 1ms", b"s1", b"r2"):
            assert text in picture


@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_a_title_with_what_is_no_character_in_xml_is_drawn(fanin: Fanin, tmp_path: Path, kind: str) -> None:
    text = r'title = "a\u001b[31mb\u0000c\uFFFEd"'
    scenario = tmp_path / "steering.toml"
    scenario.write_text(f'{text}\n[topology]\nsenders = 2\n[[workload]]\nkind = "incast"\nbytes = "64KB"\n')
    picture = tmp_path / f"picture.{kind}"
    done = fanin("draw", scenario, "--out", picture)
    assert done.code == 0, done.err
    if kind == "svg":
        ElementTree.parse(picture)
        assert "a\ufffd[31mb\ufffdc\ufffdd" in picture.read_text()


def test_a_long_text_is_drawn_with_an_ellipsis(fanin: Fanin, tmp_path: Path) -> None:
    scenario = tmp_path / "long.toml"
    title, name = "t" * 4_000, "n" * 4_000
    scenario.write_text(
        f'title = "{title}"\n[topology]\nkind = "graph"\nhosts = ["{name}", "b"]\nswitches = ["s"]\n'
        f'[[topology.link]]\nbetween = ["{name}", "s"]\n[[topology.link]]\nbetween = ["b", "s"]\n'
        '[[workload]]\nkind = "incast"\nbytes = "64KB"\n'
    )
    done = fanin("draw", scenario, "--out", "long.svg")
    assert done.code == 0, done.err
    texts = [
        element.text or ""
        for element in ElementTree.parse(tmp_path / "long.svg").iter()
        if element.tag.endswith("text")
    ]
    assert f"{'t' * 299}…" in texts
    assert max(map(len, texts)) == 300


def test_bad_input_is_one_sentence_and_writes_nothing(fanin: Fanin, tmp_path: Path) -> None:
    (tmp_path / "wrong.toml").write_text('[topology]\nkind = "ring"\n')
    for arguments in (("wrong.toml",), ("absent.toml",), (ROOT / "examples/dumbbell.toml", "--out", "graph.gif")):
        done = fanin("draw", *arguments)
        assert (done.code, done.err.count("\n")) == (2, 1), done.err
    assert [p.name for p in tmp_path.iterdir()] == ["wrong.toml"]
