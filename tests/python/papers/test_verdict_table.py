"""One table has the verdict of every claim, and the pages tell what it says."""

from __future__ import annotations

import re
import shlex
from datetime import date
from itertools import pairwise
from types import ModuleType

import pytest
from fanin.papers import Paper, load
from fanin.papers.catalogue import Answer, Reading
from fanin.papers.experiments import batches
from fanin.papers.reproduce import needed, select
from fanin.papers.verdicts import DIFFERS, NOT_RUN, REPRODUCED, UNDER, VERDICTS
from fanin.runs.job import Document, Job

from ..conftest import ROOT, script


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    return script("tools/verdicts.py")


def test_every_claim_has_one_verdict_and_names_a_reading_where_it_needs_one(tool: ModuleType) -> None:
    rows = tool.read()
    claims = {claim.id: claim for paper in load() for claim in paper.claims}
    assert list(rows) == list(claims)
    for row in rows.values():
        assert row.verdict in VERDICTS, row
        assert (row.points == tool.ALL) == (row.verdict != NOT_RUN), row
        named = [reading.name for reading in claims[row.claim].readings]
        assert row.reading in named if row.verdict == UNDER else not row.reading, row


def test_a_claim_that_differs_has_commands_that_show_why(tool: ModuleType) -> None:
    differ = {name for name, row in tool.read().items() if row.verdict == DIFFERS}
    for paper, claim in select([], None)[1]:
        assert claim.shown or claim.id not in differ, claim.id
        for one in claim.shown:
            assert _settles(paper, shlex.split(one.run)), one.run


def _settles(paper: Paper, words: list[str]) -> bool:
    """Whether a command names what there is: a scenario and settings that fit, or claims of the paper, whose experiments take them."""
    if words[:2] == ["sudo", ".venv/bin/python"]:
        compile(words[3], "-c", "exec")
        return True
    # As a command of root it has no place on the path.
    words = ["fanin", *words[2:]] if words[0] == "sudo" else words
    assert words[0] == "fanin"
    assert words[1] in ("run", "reproduce")
    given = [word.split("=", 1) for before, word in pairwise(words) if before == "--set"]
    settings = tuple((key, value) for key, value in given)
    if words[1] == "run":
        cc = words[words.index("--cc") + 1] if "--cc" in words else None
        Job(Document.read(ROOT / words[2]), 1, cc, settings).plan()
        return True
    options = {"--set", "--seeds", "--engine"}
    names = [w for before, w in pairwise(words[1:]) if not w.startswith("--") and before not in options]
    reading = Reading((Answer("set", "", "", dict(settings), {}, final=True),))
    for _, claim in select(names, None)[1]:
        assert claim.id in {one.id for one in paper.claims}
        for name in needed(claim):
            for batch in batches(paper, paper.experiments[name], quick=True, reading=reading, seeds=1):
                batch.jobs()[0].plan()
    return bool(names)


def test_the_pages_tell_what_the_table_says(tool: ModuleType) -> None:
    stale = [page.relative_to(ROOT).as_posix() for page, text in tool.pages().items() if page.read_text() != text]
    assert not stale, "`make verdicts` writes them anew"


def test_a_quick_run_decides_no_verdict(tool: ModuleType) -> None:
    before = {"a": tool.Row("a", REPRODUCED, "", "all"), "b": tool.Row("b", NOT_RUN, "", "")}
    found = [{"id": name, "verdict": UNDER, "reading": {"name": "r"}} for name in ("a", "b")]
    assert tool.merged(before, {"quick": True, "claims": found}) == before
    whole = tool.merged(before, {"quick": False, "claims": [*found[:1], {"id": "b", "verdict": NOT_RUN}]})
    assert (whole["a"], whole["b"]) == (tool.Row("a", UNDER, "r", "all"), before["b"])


def test_what_linux_gave_says_when_and_at_which_commit_it_was_run_and_a_quick_run_replaces_no_full_one(
    tool: ModuleType,
) -> None:
    for row in tool.read_there():
        assert date.fromisoformat(row.recorded)
        assert re.fullmatch("[0-9a-f]{7}", row.commit), row
    one = tool.There("a", "kernel", "1Gbps", REPRODUCED, "", "all", "99 Mbps", "2026-11-23", "0354897")
    again = {"id": "a", "engine": "kernel", "rate": "1Gbps", "verdict": DIFFERS, "reading": "", "ours": "9 Mbps"}
    quick, whole = ({"quick": quick, "on_linux": [again]} for quick in (True, False))
    assert tool.merged_there([one], quick, ["a"], "2026-11-24", "1234567") == [one]
    (now,) = tool.merged_there([one], whole, ["a"], "2026-11-24", "1234567")
    assert (now.verdict, now.points, now.recorded, now.commit) == (DIFFERS, "all", "2026-11-24", "1234567")


def test_few_seeds_on_a_kernel_are_told_as_indicative(tool: ModuleType) -> None:
    one = tool.There("dctcp.throughput", "kernel", "1Gbps", REPRODUCED, "", "quick", "99 Mbps", "2026-11-23", "0354897")
    assert (one.told, one._replace(points="all").told) == ("indicative: reproduced", "reproduced")
