"""What a release and the hosting's workflows are made of."""

from __future__ import annotations

import importlib
import re
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


@pytest.fixture
def release(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "tools")
    return importlib.import_module("release_check")


def test_actionlint_finds_nothing_in_the_workflows(release: ModuleType) -> None:
    words = release.actionlint()
    # `go run` would ask the network for it.
    if len(words) != 1:
        pytest.skip("actionlint is not installed (go install github.com/rhysd/actionlint/cmd/actionlint@latest)")
    found = subprocess.run([*words, "-no-color"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout + found.stderr) == (0, "")


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda file: file.stem)
def test_a_workflow_runs_targets_of_the_makefile_and_nothing_else(workflow: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    ran = re.findall(r"\brun: *(.*)", workflow.read_text())
    assert ran
    assert all(line.startswith("make ") and set(line.split()[1:]) <= targets for line in ran), ran


def test_without_actionlint_and_without_go_the_workflows_are_left_out(
    release: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert release.actionlint() == []
