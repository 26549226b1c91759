"""What the manual shows is run."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from .conftest import ROOT


@pytest.mark.parametrize("page", ["reference/python.md"])
def test_every_example_gives_what_the_page_says(page: str) -> None:
    found = doctest.testfile(str(ROOT / "docs" / page), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert found.attempted > 10
    assert found.failed == 0


def test_the_algorithm_of_the_manual_is_newreno_and_its_other_examples_hold() -> None:
    text = (ROOT / "docs/python-algorithms.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks[0].splitlines()) <= 22, "it is to be twenty lines"
    names: dict[str, object] = {"__name__": "manual"}
    for block in blocks:
        exec(compile(block, "python-algorithms.md", "exec"), names)
    assert len(blocks) == 4


def test_every_page_that_is_linked_is_there() -> None:
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for target in re.findall(r"\]\(([^)#:]+\.md)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links {target}"


def test_every_example_scenario_is_drawn(tmp_path: Path) -> None:
    import fanin

    for scenario in sorted((ROOT / "examples").glob("*.toml")):
        if scenario.name != "rack.toml":
            assert fanin.draw(scenario).to_dict()["title"]["text"]
