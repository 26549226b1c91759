"""The `fanin` command: runs the Typer application and turns errors into one sentence and an exit code."""

from __future__ import annotations

import os
import sys

from fanin.cli import app
from fanin.errors import FaninError


def main() -> None:
    """Run the command.

    Exit codes: 0 done, 2 bad input or usage, 130 interrupted.
    """
    try:
        app()
    except FaninError as error:
        sys.stderr.write(f"fanin: error: {error}\n")
        sys.exit(2)
    except KeyboardInterrupt:
        sys.stderr.write("fanin: interrupted, nothing was written\n")
        sys.exit(130)
    except BrokenPipeError:
        # `fanin ... | head`: the reader has gone. Python would complain once more when it flushes on exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)


if __name__ == "__main__":
    main()
