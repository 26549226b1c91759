"""Verdicts do not change unnoticed: a quick subset of every paper against `papers/expected.toml`."""

from __future__ import annotations

import tomllib

import pytest
from fanin.papers import load, papers_folder, reproduce

EXPECTED: dict[str, str] = tomllib.loads((papers_folder() / "expected.toml").read_text())["quick"]


def test_every_paper_with_judgements_has_expected_verdicts() -> None:
    known = {claim.id for paper in load() for claim in paper.claims}
    assert set(EXPECTED) <= known


@pytest.mark.parametrize("paper", sorted({name.split(".")[0] for name in EXPECTED}))
def test_quick_verdicts_are_the_expected_ones(paper: str) -> None:
    names = [name for name in EXPECTED if name.startswith(f"{paper}.")]
    got = reproduce(names, quick=True)
    changed = [
        f"{c.id}: {EXPECTED[c.id]} -> {c.verdict} ({c.ours}; {c.reason})"
        for c in got.claims
        if c.verdict != EXPECTED[c.id]
    ]
    assert not changed, (
        "verdicts changed: if that is meant, write it under `Changed numbers` in CHANGELOG.md and put the new verdict in "
        "papers/expected.toml:\n" + "\n".join(changed)
    )
