"""Arguments of ``fanin reproduce``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fanin.commands.options import Engine, JsonOption, settings_of


def reproduce(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PAPER[.FIGURE]]...",
            help="Papers, figures or claims, such as trim or trim.fig4 [default: all].",
            show_default=False,
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer seeds and points; indicative only.")] = False,
    why: Annotated[bool, typer.Option("--why", help="Print the reason of each verdict.")] = False,
    readings: Annotated[
        bool,
        typer.Option(
            "--readings", help="Judge the claims under every reading that the papers leave open (quick points)."
        ),
    ] = False,
    pairs: Annotated[bool, typer.Option("--pairs", help="With --readings: every two answers together too.")] = False,
    search: Annotated[
        bool,
        typer.Option(
            "--search",
            help="Look for a reading under which claims that differ hold: answers, pairs and triples, on all points (hours; resumes).",
        ),
    ] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Set a key of every scenario; not a verdict on the paper then."
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            "--seeds",
            min=1,
            max=10_000,
            metavar="N",
            help="Seeds of each experiment [default: what its verdict needs].",
        ),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Run again what was run before.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Folder for gallery.html, claims.json, and a page and the data of each claim [default: papers, without pages and data; "
            "none with --json].",
            show_default=False,
        ),
    ] = None,
    bundle: Annotated[
        Path | None,
        typer.Option(
            "--bundle", metavar="FILE.zip", help="Write scenarios, data, verdicts and checksums as one archive."
        ),
    ] = None,
    verify: Annotated[
        Path | None,
        typer.Option(
            "--verify", metavar="FILE.zip", help="Run an archive's claims again and compare verdicts and data."
        ),
    ] = None,
    engine: Annotated[
        Engine,
        typer.Option("--engine", help="kernel, testbed: claims about real kernels run on Linux's own TCP there, too."),
    ] = Engine.sim,
    pictures: Annotated[
        str | None, typer.Option("--pictures", metavar="svg,pdf,png", help="Write each figure on its own too.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Re-run published experiments and compare each claim with our result.

    Exit code 1 when a claim could not be run.
    """
    from fanin.errors import ScenarioError
    from fanin.papers.command import command, command_readings, command_search, command_verify

    changed = settings or seeds is not None
    if verify is not None:
        if what or quick or readings or search or changed or out or bundle:
            raise ScenarioError("command line `--verify`: the archive says what is run; no other option has an effect")
        command_verify(verify, fresh=fresh)
        return
    if search:
        if quick or readings or pairs or changed or out or bundle or pictures or as_json or engine != Engine.sim:
            raise ScenarioError("command line `--search`: it takes claims and --fresh alone")
        command_search(what or [], fresh=fresh)
        return
    if changed and (readings or engine != Engine.sim):
        raise ScenarioError("command line `--set`, `--seeds`: they have no effect with --readings or another engine")
    if engine not in (Engine.sim, Engine.kernel, Engine.testbed):
        raise ScenarioError(f"command line `--engine {engine.value}`: papers are reproduced on sim, kernel or testbed")
    if readings:
        for name, given in (
            ("--engine", engine != Engine.sim),
            ("--why", why),
            ("--out", out),
            ("--pictures", pictures),
        ):
            if given:
                raise ScenarioError(f"command line `{name}`: it has no effect with --readings")
        command_readings(what or [], pairs=pairs, fresh=fresh, as_json=as_json)
        return
    if pairs:
        raise ScenarioError("command line `--pairs`: it needs --readings")
    command(
        what or [],
        quick=quick,
        fresh=fresh,
        out=out,
        pictures=pictures,
        as_json=as_json,
        why=why,
        engine=engine.value,
        settings=settings_of(settings, "topology.buffer=400p"),
        seeds=seeds,
        bundle=bundle,
    )
