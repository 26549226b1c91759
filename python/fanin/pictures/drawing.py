"""A scenario's network as a picture: hosts below, then edge switches, and what connects those above."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fanin import _native
from fanin.errors import keywords
from fanin.pictures.palette import BLUE, FAINT, INK, LINES, MUTED, PURPLE, VERMILION

if TYPE_CHECKING:
    import altair as alt

"""Okabe and Ito's, for kinds of cable."""

ROW = 120
"""Pixels between layers."""

MOST_LABELS = 14
"""Up to so many cables between switches each carries its own label; the legend has them all, once per kind."""

Graph = dict[str, list[dict[str, Any]]]


@keywords
def draw(
    scenario: str | Path, *, settings: Mapping[str, object] | None = None, text: str | None = None
) -> alt.LayerChart:
    """Draw the network of a scenario.

    Parameters
    ----------
    scenario : path
        A scenario file; with `text`, only the name it goes by in messages.
    settings : mapping, optional
        Values by key on top of the file, as for :func:`fanin.run`.
    text : str, optional
        The scenario itself (TOML) instead of a file.

    Returns
    -------
    altair.LayerChart
        Save it with ``chart.save("graph.svg")``.

    Raises
    ------
    fanin.ScenarioError
        When the scenario is wrong.

    Examples
    --------
    >>> import fanin
    >>> chart = fanin.draw("examples/dumbbell.toml")
    >>> chart.to_dict()["title"]["text"]
    'Two long flows across a 100 Mbps bottleneck'
    """
    from fanin.confined import unread
    from fanin.runs.job import Document
    from fanin.simulation import changed

    document = Document(text, str(scenario)) if text is not None else Document.read(scenario)
    base = _native.Scenario.from_text(document.text, document.name, document.folder)
    as_set = base.changed(None, None, changed(settings))
    with unread():
        graph: Graph = json.loads(_native.graph_json(as_set.plan(as_set.seeds()[0])))
    return chart(graph, title=as_set.title() or as_set.file)


def layers(graph: Graph) -> list[int]:
    """The layer of every node: 0 for hosts, for a switch its distance to the nearest host.

    Examples
    --------
    >>> layers({"nodes": [{"kind": "host"}, {"kind": "switch"}, {"kind": "switch"}], "links": [{"from": 0, "to": 1}, {"from": 1, "to": 2}]})
    [0, 1, 2]
    """
    near = defaultdict(set)
    for link in graph["links"]:
        near[link["from"]].add(link["to"])
        near[link["to"]].add(link["from"])
    found = {n: 0 for n, node in enumerate(graph["nodes"]) if node["kind"] == "host"}
    front = list(found)
    while front:
        reached = sorted({m for n in front for m in near[n] if m not in found})
        found.update((m, found[front[0]] + 1) for m in reached)
        front = reached
    # What no host reaches stands beside the edge.
    return [found.get(n, 1) for n in range(len(graph["nodes"]))]


def positions(graph: Graph) -> list[tuple[float, float]]:
    """Where every node stands, in places from left to right and in layers upwards: each above the middle of what it connects below.

    Examples
    --------
    >>> nodes = [{"kind": "host"}, {"kind": "host"}, {"kind": "switch"}]
    >>> positions({"nodes": nodes, "links": [{"from": 0, "to": 2}, {"from": 1, "to": 2}]})
    [(0.0, 0.0), (1.0, 0.0), (0.5, 1.0)]
    """
    layer = layers(graph)
    below = defaultdict(set)
    for link in graph["links"]:
        for here, there in ((link["from"], link["to"]), (link["to"], link["from"])):
            if layer[there] == layer[here] - 1:
                below[here].add(there)
    above = defaultdict(list)
    for switch in sorted(below):
        for n in sorted(below[switch]):
            above[n].append(switch)
    x: dict[int, float] = {}
    hosts = [n for n, at in enumerate(layer) if at == 0]
    # Hosts of one switch stand together, with a gap to the next switch's.
    hosts.sort(key=lambda n: (above[n][:1] or [-1], n))
    place = 0.0
    for before, host in zip([None, *hosts], hosts, strict=False):
        if before is not None:
            place += 1.0 if above[before][:1] == above[host][:1] else 1.8
        x[host] = place
    for height in range(1, max(layer, default=0) + 1):
        row = [n for n, at in enumerate(layer) if at == height]
        middle = {n: sum(x[m] for m in below[n]) / len(below[n]) if below[n] else 0.0 for n in row}
        row.sort(key=lambda n: (middle[n], n))
        width = max(x.values(), default=0.0)
        apart = max(1.6, min(6.0, width / (len(row) + 1)))
        _spread(row, middle, apart)
        x.update({n: middle[n] for n in row})
    return [(x[n], float(layer[n])) for n in range(len(layer))]


def _spread(row: list[int], wanted: dict[int, float], apart: float) -> None:
    """Moves what stands too close apart, each group about its own middle."""
    groups: list[list[int]] = []
    for n in row:
        groups.append([n])
        while len(groups) > 1 and _left(groups[-1], wanted, apart) - _right(groups[-2], wanted, apart) < apart - 1e-9:
            last = groups.pop()
            groups[-1].extend(last)
    for group in groups:
        start = _left(group, wanted, apart)
        at = [start + i * apart for i in range(len(group))]
        wanted.update(zip(group, at, strict=True))


def _left(group: list[int], wanted: dict[int, float], apart: float) -> float:
    return sum(wanted[n] for n in group) / len(group) - (len(group) - 1) * apart / 2


def _right(group: list[int], wanted: dict[int, float], apart: float) -> float:
    return sum(wanted[n] for n in group) / len(group) + (len(group) - 1) * apart / 2


def cables(graph: Graph) -> list[dict[str, Any]]:
    """Links in pairs: ``a``, ``b`` and ``kind``, which says rate, delay and the queues at both ends."""
    waiting: dict[tuple[int, int], list[dict[str, Any]]] = defaultdict(list)
    found = []
    for link in graph["links"]:
        other = waiting[link["to"], link["from"]]
        if other:
            found.append(_cable(graph, other.pop(0), link))
        else:
            waiting[link["from"], link["to"]].append(link)
    found.extend(_cable(graph, link, None) for links in waiting.values() for link in links)
    return found


def _cable(graph: Graph, there: dict[str, Any], back: dict[str, Any] | None) -> dict[str, Any]:
    ends = [there] + ([back] if back else [])
    # The host's end first, so that equal cables have equal texts.
    ends.sort(key=lambda link: graph["nodes"][link["from"]]["kind"] == "switch")
    speeds = list(dict.fromkeys(f"{link['rate']}, {link['delay']}" for link in ends))
    queues = {graph["nodes"][link["from"]]["kind"]: _queue(graph, link) for link in ends}
    both_switches = len(ends) == 2 and len(queues) == 1
    texts = (
        list(dict.fromkeys(_queue(graph, link) for link in ends))
        if both_switches
        else [queues[k] for k in ("switch", "host") if k in queues]
    )
    # A host's own queue is unlimited in most scenarios, which is no news.
    told = [text for text in texts if text != "unlimited"] or ["unlimited"]
    return {
        "a": there["from"],
        "b": there["to"],
        "kind": f"{' / '.join(speeds)}; queue {' / '.join(told)}",
        "label": f"{' / '.join(speeds)}",
    }


def _queue(graph: Graph, link: dict[str, Any]) -> str:
    shared = graph["nodes"][link["from"]].get("shared_buffer")
    words = [f"shared {shared}" if shared else link["buffer"] or "unlimited"]
    if link["mark"]:
        words.append(f"marks above {link['mark']}")
    if link["discipline"] != "droptail":
        words.append(link["discipline"])
    return ", ".join(words)


def chart(graph: Graph, *, title: str) -> alt.LayerChart:
    """The picture of a graph as :func:`fanin._native.graph_json` gives it."""
    import altair as alt

    places = positions(graph)
    kinds = list(dict.fromkeys(c["kind"] for c in cables(graph)))
    lines = [
        {"x": places[c["a"]][0], "y": places[c["a"]][1], "x2": places[c["b"]][0], "y2": places[c["b"]][1], **c}
        for c in cables(graph)
    ]
    for line in lines:
        line["mx"], line["my"] = (line["x"] + line["x2"]) / 2, (line["y"] + line["y2"]) / 2
    nodes = [
        {"x": x, "y": y, "name": node["name"], "role": _role(node), "processing": node["processing"] or "none"}
        for node, (x, y) in zip(graph["nodes"], places, strict=True)
    ]
    wide = max((x for x, _ in places), default=0.0)
    tall = max((y for _, y in places), default=0.0)
    crowded = wide > 24
    width = max(320, min(2400, wide * (24 if crowded else 60) + 80))
    scale_x = alt.Scale(domain=[-1, wide + 1], nice=False)
    scale_y = alt.Scale(domain=[-0.42, tall + 0.35], nice=False)
    x, y = alt.X("x:Q", axis=None, scale=scale_x), alt.Y("y:Q", axis=None, scale=scale_y)
    parts: list[Any] = [_edges(lines, kinds, x, y, crowded=crowded), _dots(nodes, x, y, crowded=crowded)]
    switches = [n for n in nodes if n["role"] == "switch"]
    hosts = [n for n in nodes if n["role"] != "switch"]
    upright = len(hosts) > 1 and width / (wide + 2) < 9 * max(len(n["name"]) for n in hosts)
    slant = {"angle": 270, "align": "right", "baseline": "middle", "dy": 0, "dx": -12} if upright else {"dy": 20}
    parts.append(
        alt.Chart(alt.InlineData(values=hosts)).mark_text(fontSize=11, **slant).encode(x=x, y=y, text="name:N")
    )
    # A white outline below keeps a label apart from the lines it stands on.
    outlined = ({"stroke": "white", "strokeWidth": 4}, {"color": INK})
    for style in outlined:
        name = alt.Chart(alt.InlineData(values=switches)).mark_text(dy=-22, fontSize=12, fontWeight="bold", **style)
        parts.append(name.encode(x=x, y=y, text="name:N"))
    between = [line for line in lines if line["y"] > 0 and line["y2"] > 0]
    if len(between) <= MOST_LABELS:
        for style in outlined:
            middle = alt.Chart(alt.InlineData(values=between)).mark_text(fontSize=10, **style)
            parts.append(middle.encode(x=alt.X("mx:Q", scale=scale_x), y=alt.Y("my:Q", scale=scale_y), text="label:N"))
    picture: alt.LayerChart = (
        alt.layer(*parts)
        .resolve_scale(color="independent", fill="independent", shape="independent")
        .properties(width=width, height=max(170, (tall + 0.77) * ROW), title=alt.TitleParams(title, anchor="start"))
        .configure_view(stroke=None)
    )
    return picture


def _edges(lines: list[dict[str, Any]], kinds: list[str], x: alt.X, y: alt.Y, *, crowded: bool) -> alt.Chart:
    """Cables, in a colour for each kind."""
    import altair as alt

    rules: alt.Chart = (
        alt.Chart(alt.InlineData(values=lines))
        .mark_rule(strokeWidth=1.2 if crowded else 2, opacity=0.8)
        .encode(
            x=x,
            y=y,
            x2="x2:Q",
            y2="y2:Q",
            color=alt.Color(
                "kind:N",
                title="rate, delay; queue of the switch's port",
                scale=alt.Scale(domain=kinds, range=[LINES[i % len(LINES)] for i in range(len(kinds))]),
                sort=kinds,
                legend=alt.Legend(
                    orient="bottom", direction="vertical", labelLimit=600, titleLimit=600, symbolType="stroke"
                ),
            ),
            tooltip=[alt.Tooltip("kind:N", title="cable")],
        )
    )
    return rules


ROLES = {"switch": MUTED, "receiver": VERMILION, "sender": BLUE, "sender and receiver": PURPLE, "idle": FAINT}


def _dots(nodes: list[dict[str, Any]], x: alt.X, y: alt.Y, *, crowded: bool) -> alt.Chart:
    """Nodes: switches are squares, hosts circles in the colour of their role."""
    import altair as alt

    used = [role for role in ROLES if any(n["role"] == role for n in nodes)]
    points: alt.Chart = (
        alt.Chart(alt.InlineData(values=nodes))
        .mark_point(filled=True, opacity=1, stroke="white")
        .encode(
            x=x,
            y=y,
            shape=alt.condition("datum.role == 'switch'", alt.value("square"), alt.value("circle")),
            size=alt.condition("datum.role == 'switch'", alt.value(500), alt.value(130 if crowded else 220)),
            fill=alt.Fill(
                "role:N",
                title=None,
                scale=alt.Scale(domain=used, range=[ROLES[r] for r in used]),
                sort=used,
                legend=alt.Legend(orient="top", symbolType="circle", symbolSize=120),
            ),
            tooltip=["name:N", "role:N", alt.Tooltip("processing:N", title="processing per packet")],
        )
    )
    return points


def _role(node: Mapping[str, Any]) -> str:
    if node["kind"] == "switch":
        return "switch"
    match node["sends"], node["receives"]:
        case True, True:
            return "sender and receiver"
        case True, False:
            return "sender"
        case False, True:
            return "receiver"
    return "idle"
