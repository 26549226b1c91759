"""Man pages and shell completions, from the declarations that `--help` shows: ``tools/manpages.py FOLDER``.

``FOLDER`` gets ``man/man1``, ``bash-completion/completions``, ``zsh/site-functions`` and ``fish/vendor_completions.d``, as under ``/usr/share``.
"""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from fanin.commands.cli import app
from typer._completion_shared import get_completion_script

COMPLETIONS = {
    "bash": "bash-completion/completions/fanin",
    "zsh": "zsh/site-functions/_fanin",
    "fish": "fish/vendor_completions.d/fanin.fish",
}


def main(share: Path) -> None:
    """Write all of them."""
    pages = share / "man/man1"
    pages.mkdir(parents=True, exist_ok=True)
    for path, command in commands(("fanin",), typer.main.get_command(app)):
        (pages / f"{'-'.join(path)}.1").write_text(page(path, command))
    for shell, name in COMPLETIONS.items():
        file = share / name
        file.parent.mkdir(parents=True, exist_ok=True)
        script = get_completion_script(prog_name="fanin", complete_var="_FANIN_COMPLETE", shell=shell)
        file.write_text(script + "\n")


def commands(path: tuple[str, ...], command: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """A command and those below it, each with its words; hidden ones are left out."""
    yield path, command
    for name, below in sorted(getattr(command, "commands", {}).items()):
        if not below.hidden:
            yield from commands((*path, name), below)


def page(path: tuple[str, ...], command: Any) -> str:
    """One page in man(7)."""
    context = command.make_context(" ".join(path), [], resilient_parsing=True)
    name, version = "-".join(path), importlib.metadata.version("fanin")
    text = (command.help or "").split("\f")[0].strip()
    first = text.split("\n\n")[0].replace("\n", " ")
    lines = [f'.TH "{name.upper()}" "1" "" "fanin {version}" "fanin"']
    lines += [".SH NAME", f"{plain(name)} \\- {plain(first)}"]
    lines += [".SH SYNOPSIS", plain(f"{' '.join(path)} {' '.join(command.collect_usage_pieces(context))}")]
    lines += [".SH DESCRIPTION", *(line for part in text.split("\n\n") for line in (".PP", plain(part)))]
    records = [record for parameter in command.get_params(context) if (record := parameter.get_help_record(context))]
    if records:
        lines.append(".SH OPTIONS")
        for option, said in records:
            lines += [".TP", f".B {plain(option)}", plain(said)]
    below = [each for each in getattr(command, "commands", {}).values() if not each.hidden]
    if below:
        lines.append(".SH COMMANDS")
        for each in below:
            lines += [".TP", f".B {plain('-'.join((*path, each.name)))}(1)", plain(each.get_short_help_str(200))]
    return "\n".join(lines) + "\n"


def plain(text: str) -> str:
    """Text in which nothing is a request of troff."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line.startswith((".", "'")) else line for line in text.splitlines())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
