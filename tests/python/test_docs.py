"""What the manual shows is run."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
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


def test_every_source_file_that_is_named_is_there() -> None:
    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "papers").glob("*/README.md"), *ROOT.glob("*.md")]
    named = re.compile(r"`((?:crates|python|tests|kernel|papers|tools|examples)/[\w./-]+\.(?:rs|py|c|h|toml|csv|md))`")
    # The changelog tells what was; examples of how to add something name files that are not there yet.
    gone = [
        f"{page.relative_to(ROOT)}: {path}"
        for page in sorted(pages)
        if page.name not in ("CHANGELOG.md", "CONTRIBUTING.md", "tutorial.md")
        for path in named.findall(page.read_text())
        if not (ROOT / path).exists()
    ]
    assert not gone


def test_every_example_scenario_is_drawn(tmp_path: Path) -> None:
    import fanin

    for scenario in sorted((ROOT / "examples").glob("*.toml")):
        if scenario.name != "rack.toml":
            assert fanin.draw(scenario).to_dict()["title"]["text"]


PAGES_TO_TYPE = ["how-to/sweeps.md", "how-to/advice.md"]


@pytest.mark.parametrize("page", PAGES_TO_TYPE)
def test_every_command_of_a_page_can_be_typed(page: str, tmp_path: Path) -> None:
    """As a reader would: in the root of the repository, with output files of their own; a page that lists the store has one of its own."""
    text = (ROOT / "docs" / page).read_text()
    lines = [
        line
        for block in re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        for line in block.splitlines()
    ]
    commands = [line.partition(" #")[0].strip() for line in lines if line.startswith("fanin ")]
    assert commands
    lists = any(command.startswith("fanin store") for command in commands)
    store = str(tmp_path / "store") if lists else os.environ["FANIN_STORE"]
    place = {**os.environ, "FANIN_STORE": store, "PYTHONPATH": ""}
    for command in commands:
        words = shlex.split(command)
        # Output files go to the scratch folder.
        words = [str(tmp_path / word) if word in ("incast.html", "runs.csv") else word for word in words]
        done = subprocess.run(
            [sys.executable, "-m", *words], cwd=ROOT, env=place, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"
