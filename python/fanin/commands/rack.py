"""The command ``fanin rack``."""

from __future__ import annotations

import sys
from pathlib import Path

from fanin.terminal.answer import print_json


def command(capture: Path, *, aggregator: str | None, out: Path | None, as_json: bool, line: str) -> None:
    """Print the proposed rack file, or write it."""
    from fanin.disk.files import shown, write_new
    from fanin.errors import OutputError
    from fanin.rack.proposal import propose_rack
    from fanin.terminal import display

    found = propose_rack(capture, aggregator=aggregator, command=line)
    if out is not None:
        try:
            write_new(found.text, out)
        except FileExistsError:
            raise OutputError(
                f"{shown(out)}: there is a file of this name, perhaps edited by hand; choose another with --out"
            ) from None
        except OSError as error:
            raise OutputError(
                f"{shown(out)}: cannot be written ({(error.strerror or 'unknown reason').lower()}); choose another place"
            ) from error
    if found.fitness is not None and (as_json or out is not None):
        display.note(f"{shown(capture.name)}: {found.fitness.sentence}")
    if as_json:
        print_json(found.to_dict())
    elif out is None:
        sys.stdout.write(found.text)
    else:
        display.note(f"rack: {shown(out)}")
        display.note(f"next: fanin compare {shown(capture)} --rack {shown(out)}")
