"""The `fanin` command: runs the Typer application and turns errors into one sentence and an exit code."""

from __future__ import annotations

import os
import sys

import typer

from fanin.cli import app
from fanin.errors import FaninError, Interrupted

DONE, BAD_INPUT, INTERRUPTED, PIPE_CLOSED = 0, 2, 130, 141


def main() -> None:
    """Run the command.

    Exit codes: 0 done, 2 bad input or usage, 130 interrupted.
    """
    sys.exit(_run())


def _run() -> int:
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort, Interrupted):
        sys.stderr.write("fanin: interrupted, nothing was written\n")
        return INTERRUPTED
    except FaninError as error:
        sys.stderr.write(f"fanin: error: {error}\n")
        return BAD_INPUT
    except BrokenPipeError:
        # `fanin ... | head`: the reader has gone. Python would complain once more when it flushes on exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except Exception as error:
        # Typer's own words about the command line; their class is not public in every version.
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        text = " ".join(message().split()).rstrip(".")
        if text:
            sys.stderr.write(f"fanin: error: command line: {text[0].lower()}{text[1:]}; see --help\n")
        return BAD_INPUT
    return code if isinstance(code, int) else DONE


if __name__ == "__main__":
    main()
