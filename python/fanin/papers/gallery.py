"""`gallery.html`: every figure as we get it, with what was published, the verdict, the scenario and the command beside it."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fanin.papers.experiments import command_of
from fanin.papers.verdicts import PICTURES, Data

if TYPE_CHECKING:
    from fanin.papers.catalogue import Claim, Paper
    from fanin.papers.reproduce import ReproduceResult
    from fanin.papers.verdicts import Judged

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 78rem; margin: 2rem auto; padding: 0 1rem; color: #222; background: #fff; }
h1 { font-size: 1.6rem; } h2 { margin-top: 3rem; border-bottom: 2px solid #ddd; } h3 { margin: 2.5rem 0 .5rem; }
table { border-collapse: collapse; width: 100%; margin: .6rem 0; table-layout: fixed; }
td, th { text-align: left; vertical-align: top; padding: .35rem .6rem; border-top: 1px solid #ddd; overflow-wrap: anywhere; }
th { font-weight: 600; } col.id { width: 13rem; } col.verdict { width: 7rem; }
.reproduced { color: #00664b; } .differs { color: #a03c00; } .not-run { color: #666; }
.verdict { font-weight: 600; white-space: nowrap; }
figure { margin: .5rem 0; overflow-x: auto; } figure svg { max-width: 100%; height: auto; }
pre { background: #f5f5f5; padding: .5rem .7rem; overflow-x: auto; font-size: .82rem; } summary { cursor: pointer; }
.small { color: #555; font-size: .88rem; }
"""

_CONFIG = {"view": {"stroke": None}, "axis": {"labelFontSize": 11, "titleFontSize": 12}, "background": "white"}


def write(result: ReproduceResult, folder: Path, pictures: Sequence[str]) -> None:
    """Write the page, and each figure on its own in the formats asked for (``svg``, ``pdf``, ``png``)."""
    drawn = {
        f"{p.name}.{c.figure}": None
        for p in result.papers
        for c in p.claims
        if any(j.id == c.id for j in result.claims)
    }
    sections: dict[str, str] = {}
    for name in drawn:
        svg = _svg(result, name, folder, pictures)
        if svg:
            sections[name] = svg
    folder.joinpath("gallery.html").write_text(page(result, sections), encoding="utf-8")


def page(result: ReproduceResult, drawn: dict[str, str]) -> str:
    """The page as text."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>",
        "<title>The papers' claims, run again</title>",
        f"<style>{STYLE}</style><h1>The papers' claims, run again</h1>",
        f"<p>{html.escape(_count(result))} Made by <code>{html.escape(result.command)}</code>, fanin {result.version}.",
    ]
    if result.quick:
        parts.append(" <b>Quick look: fewer seeds and fewer points than the verdicts rest on.</b>")
    for paper in result.papers:
        parts.append(f"<h2>{html.escape(paper.title)}</h2><p>{html.escape(paper.source)}")
        claims = {c.id: c for c in paper.claims}
        judged = [j for j in result.claims if j.id in claims]
        for figure in dict.fromkeys(claims[j.id].figure for j in judged):
            name = f"{paper.name}.{figure}"
            parts.append(f"<h3 id='{html.escape(name)}'>{html.escape(name)}</h3>")
            if name in drawn:
                caption = PICTURES[name].caption
                parts.append(
                    f"<figure>{drawn[name]}<figcaption class=small>{html.escape(caption)}</figcaption></figure>"
                )
            parts.append(_table([j for j in judged if claims[j.id].figure == figure], claims))
            parts.append(_how(result, paper, name, figure))
    return "".join(parts) + "</html>\n"


def _count(result: ReproduceResult) -> str:
    return (
        f"Of {len(result.claims)} claims {result.count('reproduced')} are reproduced, {result.count('differs')} differ, "
        f"{result.count('not run')} were not run."
    )


def _table(judged: list[Judged], claims: dict[str, Claim]) -> str:
    rows = []
    for one in judged:
        claim = claims[one.id]
        verdict = f"<span class='verdict {one.verdict.replace(' ', '-')}'>{one.verdict}</span>"
        seeds = f"<br><span class=small>{one.seeds} seed{'s' if one.seeds != 1 else ''}</span>" if one.seeds else ""
        band = f"<br><span class=small>Reproduced when: {html.escape(claim.band)}</span>" if claim.band else ""
        reason = f"<br><span class=small>{html.escape(one.reason)}</span>" if one.reason else ""
        rows.append(
            f"<tr><td>{html.escape(one.id)}<td>{html.escape(one.published)}{band}<td>{html.escape(one.ours)}{reason}<td>{verdict}{seeds}"
        )
    head = "<tr><th>claim<th>published<th>ours<th>verdict"
    return f"<table><colgroup><col class=id><col><col><col class=verdict></colgroup>{head}{''.join(rows)}</table>"


def _how(result: ReproduceResult, paper: Paper, name: str, figure: str) -> str:
    picture = PICTURES.get(name)
    setups = dict.fromkeys(c.setup for c in paper.claims if c.figure == figure)
    text = [f"<details><summary>Scenario and command</summary><p class=small>{html.escape(' | '.join(setups))}</p>"]
    text.append(f"<pre>fanin reproduce {html.escape(name)}</pre>")
    for experiment in dict.fromkeys(picture.needs if picture else ()):
        group = result.batches.get((paper.name, experiment))
        if group:
            scenario = group[0].experiment.scenario
            text.append(f"<pre>{html.escape(command_of(group[0], paper.folder))}</pre>")
            text.append(f"<pre>{html.escape(scenario.read_text(encoding='utf-8'))}</pre>")
    return "".join(text) + "</details>"


def _svg(result: ReproduceResult, name: str, folder: Path, pictures: Sequence[str]) -> str | None:
    """One figure as SVG; None when it has no drawing or its experiments were not run."""
    import vl_convert as vlc

    picture = PICTURES.get(name)
    data = result.data.get(name.split(".")[0])
    if picture is None or data is None or any(need not in data.frames for need in picture.needs):
        return None
    chart = picture.draw(Data({n: data[n] for n in picture.needs}, data.quick))
    spec = json.dumps({**chart.to_dict(), "config": _CONFIG})
    svg: str = vlc.vegalite_to_svg(spec)
    for kind in pictures:
        file = folder / f"{name}.{kind}"
        if kind == "svg":
            file.write_text(svg, encoding="utf-8")
        elif kind == "pdf":
            file.write_bytes(vlc.vegalite_to_pdf(spec))
        else:
            file.write_bytes(vlc.vegalite_to_png(spec, scale=2))
    return svg
