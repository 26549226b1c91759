"""One table has the verdict of every claim, and the pages tell what it says."""

from __future__ import annotations

from types import ModuleType

import pytest
from fanin.papers import load
from fanin.papers.verdicts import NOT_RUN, REPRODUCED, UNDER, VERDICTS

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
        assert (row.points in (tool.ALL, tool.QUICK)) == (row.verdict != NOT_RUN), row
        named = [reading.name for reading in claims[row.claim].readings]
        assert row.reading in named if row.verdict == UNDER else not row.reading, row


def test_the_pages_tell_what_the_table_says(tool: ModuleType) -> None:
    stale = [page.relative_to(ROOT).as_posix() for page, text in tool.pages().items() if page.read_text() != text]
    assert not stale, "`make verdicts` writes them anew"


def test_a_quick_verdict_does_not_replace_one_on_all_points(tool: ModuleType) -> None:
    before = {"a": tool.Row("a", REPRODUCED, "", "all"), "b": tool.Row("b", REPRODUCED, "", "quick")}
    found = [{"id": name, "verdict": UNDER, "reading": {"name": "r"}} for name in ("a", "b")]
    quick = tool.merged(before, {"quick": True, "claims": found})
    assert (quick["a"], quick["b"]) == (before["a"], tool.Row("b", UNDER, "r", "quick"))
    whole = tool.merged(before, {"quick": False, "claims": [*found[:1], {"id": "b", "verdict": NOT_RUN}]})
    assert (whole["a"], whole["b"]) == (tool.Row("a", UNDER, "r", "all"), before["b"])
