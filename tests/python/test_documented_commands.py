"""Every command that README and manual show is one that fanin takes.

Its words go through the parser of the command line, and the files that it names are there.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from .conftest import ROOT

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
LINE = re.compile(r"^(?:\$ | {4})?(?:sudo )?(?:\.venv/bin/)?(fanin [a-z].*)")
MENTION = re.compile(r"`(?:sudo )?(fanin [a-z][^`\n]*)`")
NOT_A_LINE = re.compile(
    r"[<…]|\.\.\.|\[|NAME\b|ADDRESS\b|DIR\b|PLACE\b|RUNS\b|\bA B\b|CAPTURE\b|RACK\b|HOST:PORT\b|CLASS\b|\bN\b"
)
"""Forms, not lines: they have a placeholder."""
SHIPPED = re.compile(r"^(?:examples|data|papers|docs)/")


def commands() -> list[tuple[Path, str, bool]]:
    """Page, command, and whether it is a whole line to type, not a mention in a sentence."""
    found = []
    for page in PAGES:
        fenced = False
        for text in page.read_text(encoding="utf-8").splitlines():
            fenced ^= text.startswith("```")
            typed = LINE.match(text) if fenced or text.startswith("    ") else None
            for line in [typed[1]] if typed else MENTION.findall(text):
                whole = re.split(r"\s+#|\s\|\s|;|\s&&\s|\s2>|\s>\s", line)[0].strip().removesuffix("\\").strip()
                if not NOT_A_LINE.search(whole):
                    found.append((page, whole, typed is not None))
    return list(dict.fromkeys(found))


def parsed(words: list[str]) -> None:
    """Go through the parsers of a command and its subcommands; nothing runs."""
    from fanin.commands.cli import app

    command: Any = get_command(app)
    if words[1] == "linux" and len(words) > 2:  # it has a parser of its own
        from fanin.linux.command import app as linux

        command, words = get_command(linux), words[1:]
    context: Any = None
    while True:
        name, *words = words
        context = command.make_context(name, list(words), parent=context)
        if not hasattr(command, "get_command"):
            return
        rest = [*getattr(context, "_protected_args", []), *context.args]
        if not rest:
            return
        found = command.get_command(context, rest[0])
        assert found is not None, f"there is no command {rest[0]}"
        command, words = found, rest


def test_there_are_commands() -> None:
    assert len(commands()) > 60


@pytest.mark.parametrize(
    ("page", "line", "typed"), commands(), ids=lambda v: v.name if isinstance(v, Path) else str(v)[:60]
)
def test_a_command_of_the_manual_is_one(page: Path, line: str, typed: bool) -> None:
    words = shlex.split(line)
    try:
        parsed(words)
    except Exception as error:
        # A mention may leave out the file, or the value of its last option.
        if typed or type(error).__name__ not in ("MissingParameter", "BadOptionUsage"):
            raise
    for word in words[2:]:
        if SHIPPED.match(word) and "*" not in word:
            assert (ROOT / word).exists(), f"{page.name}: {line}: {word} is not there"
