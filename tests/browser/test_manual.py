"""The manual's own examples, as a reader would type them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(
    "page", [p for p in PAGES if blocks(p, "python")], ids=lambda p: p.relative_to(ROOT).as_posix()
)
def test_the_python_of_a_page_runs_from_top_to_bottom(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("examples", "data", "tests"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    monkeypatch.chdir(tmp_path)
    code = "\n".join(blocks(page, "python"))
    exec(compile(code, str(page), "exec"), {"__name__": "manual"})


@pytest.mark.parametrize(
    "page",
    [p for p in PAGES if "[rack]" in p.read_text(encoding="utf-8")],
    ids=lambda p: p.relative_to(ROOT).as_posix(),
)
def test_a_rack_of_the_manual_is_a_rack(page: Path, tmp_path: Path) -> None:
    from fanin import _native

    racks = [block for block in blocks(page, "toml") if "[rack]" in block]
    for i, text in enumerate(racks):
        rack = tmp_path / f"{i}.toml"
        rack.write_text(text)
        _native.Rack.from_file(rack, [])


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_the_commands_of_a_page_have_the_options_they_use(page: Path) -> None:
    import typer.main
    from fanin.commands.cli import app
    from fanin.commands.model import forms

    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for line in "\n".join(blocks(page, "sh")).splitlines():
        words = line.split("#")[0].split()
        if words[:1] != ["fanin"] or words[1].startswith("-"):
            continue
        command, rest = commands[words[1]], words[2:]
        if words[1] == "linux":
            continue  # its options are those of a program that is built apart: tests/python/test_linux.py types them
        if (
            command.context_settings.get("allow_extra_args") and rest and not rest[0].startswith("-")
        ):  # it hands them to a sub-command
            command = forms().commands[rest[0]]
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= known, line
