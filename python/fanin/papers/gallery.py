"""`gallery.html`: every figure as we get it, with what was published, the verdict, the scenario and the command beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from fanin import html
from fanin.papers import drawing, legend
from fanin.papers.experiments import command_of, effort
from fanin.papers.verdicts import PICTURES, VERDICTS, Data

if TYPE_CHECKING:
    from fanin.papers.catalogue import Claim, Paper
    from fanin.papers.drawing import Figure
    from fanin.papers.reproduce import ReproduceResult
    from fanin.papers.verdicts import Judged, Picture

PACKAGE = "fanin.papers"

WORDS = {"fig": "Fig.", "eq": "Equation"}
"""What the beginning of a figure's name stands for, where nothing is drawn that has a title."""

COLOURS = {
    drawing.INK: "ink",
    drawing.MUTED: "muted",
    drawing.HAIR: "hair",
    drawing.PAPER: "paper",
    drawing.BLUE: "blue",
    drawing.VERMILION: "vermilion",
    drawing.GREEN: "green",
    drawing.PURPLE: "purple",
    drawing.ORANGE: "orange",
    drawing.SKY: "sky",
    drawing.GREY: "grey",
    **{colour: f"step-{n}" for n, colour in enumerate(drawing.ORDERED, 1)},
}
"""The variable of gallery.css for each colour of a drawing, so that pictures follow light and dark."""


@dataclass(frozen=True, slots=True)
class Run:
    """How one of a figure's experiments is run: what all of it takes, the first command, and its scenario."""

    effort: str
    command: str
    scenario: str


@dataclass(frozen=True, slots=True)
class Section:
    """One figure of the page with its claims."""

    name: str
    picture: Picture | None
    drawn: Figure | None
    panels: list[Markup]
    claims: list[tuple[Claim, Judged]]
    setups: list[str]
    runs: list[Run]
    seeds: int = 0
    """How many seeds the picture is drawn from, at most; 0 where nothing is simulated for it."""

    @property
    def title(self) -> str:
        """Above the picture."""
        if self.picture:
            return self.picture.title
        what, number = re.fullmatch(r"([a-z]+)([0-9-]*)", self.name.split(".")[1]).groups()  # type: ignore[union-attr]
        return f"{WORDS.get(what, what.capitalize())} {number}".strip()

    @property
    def keys(self) -> Markup:
        """Entries of the legend."""
        return legend.html(self.drawn.keys) if self.drawn else Markup()

    @property
    def columns(self) -> int:
        """Panels beside each other on a wide page."""
        return min(self.drawn.columns, len(self.panels)) if self.drawn else 0

    @property
    def verdicts(self) -> list[str]:
        """Each verdict that occurs, once."""
        return [v for v in VERDICTS if any(judged.verdict == v for _, judged in self.claims)]


def write(result: ReproduceResult, folder: Path, pictures: Sequence[str]) -> None:
    """Write the page, and each figure on its own in the formats asked for (``svg``, ``pdf``, ``png``)."""
    sections = {paper.name: _sections(result, paper) for paper in result.papers}
    for section in (one for of_paper in sections.values() for one in of_paper):
        if section.drawn and pictures:
            _write_alone(section.drawn, folder / section.name, pictures)
    folder.joinpath("gallery.html").write_text(page(result, sections), encoding="utf-8")


def page(result: ReproduceResult, sections: dict[str, list[Section]]) -> str:
    """The page as text."""
    style = html.trusted(html.asset(PACKAGE, "gallery.css") + _followed())
    return html.rendered(PACKAGE, "gallery.html", result=result, sections=sections, verdicts=VERDICTS, style=style)


def _followed() -> str:
    """Style that turns each colour of a drawing into its variable."""
    return "".join(
        f'figure svg [{part}="{colour}"] {{ {part}: var(--{name}); }}\n'
        for colour, name in COLOURS.items()
        for part in ("fill", "stroke")
    )


def _sections(result: ReproduceResult, paper: Paper) -> list[Section]:
    claims = {claim.id: claim for claim in paper.claims}
    judged = [(claims[one.id], one) for one in result.claims if one.id in claims]
    found = []
    for figure in dict.fromkeys(claim.figure for claim, _ in judged):
        name = f"{paper.name}.{figure}"
        picture = PICTURES.get(name)
        drawn = _drawn(result, name)
        panels = [_panel(part, f"{name}-{n}") for n, part in enumerate(drawn.parts)] if drawn else []
        groups = [result.batches.get((paper.name, need)) for need in (picture.needs if picture else ())]
        runs = [
            Run(
                effort(group),
                command_of(group[0], paper.folder),
                group[0].experiment.scenario.read_text(encoding="utf-8"),
            )
            for group in groups
            if group
        ]
        mine = [(claim, one) for claim, one in judged if claim.figure == figure]
        setups = list(dict.fromkeys(claim.setup for claim, _ in mine))
        seeds = len({seed for group in groups for batch in group or () for seed in batch.seeds}) if drawn else 0
        found.append(Section(name, picture, drawn, panels, mine, setups, runs, seeds))
    return found


def _drawn(result: ReproduceResult, name: str) -> Figure | None:
    """A figure; None when it has no drawing or its experiments were not run."""
    picture = PICTURES.get(name)
    data = result.data.get(name.split(".")[0])
    if picture is None or data is None or any(need not in data.frames for need in picture.needs):
        return None
    return picture.draw(Data({n: data[n] for n in picture.needs}, data.quick))


def _panel(chart: Any, name: str) -> Markup:
    """One panel as SVG for the page. Its clip paths get names of their own: they would be those of the page's first picture."""
    import vl_convert as vlc

    svg: str = vlc.vegalite_to_svg(_spec(chart, None))
    return Markup(re.sub(r'(id="|url\(#)(clip\d+)', rf"\g<1>{re.sub('[^a-z0-9]', '-', name)}-\g<2>", svg))


def _write_alone(figure: Figure, stem: Path, pictures: Sequence[str]) -> None:
    import vl_convert as vlc

    spec = _spec(figure.chart(), drawing.PAPER)
    for kind in pictures:
        file = stem.with_name(f"{stem.name}.{kind}")
        if kind == "svg":
            file.write_text(vlc.vegalite_to_svg(spec), encoding="utf-8")
        elif kind == "pdf":
            file.write_bytes(vlc.vegalite_to_pdf(spec))
        else:
            file.write_bytes(vlc.vegalite_to_png(spec, scale=2))


def _spec(chart: Any, background: str | None) -> str:
    # To check a panel against Vega-Lite's schema takes longer than to draw it; the tests of drawings do.
    return json.dumps({**chart.to_dict(validate=False), "config": {**drawing.CONFIG, "background": background}})
