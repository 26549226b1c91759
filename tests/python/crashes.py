"""Kills a sweep at random points, again and again; run by test_crashes.py in a process of its own.

The modules are loaded once and each sweep is a fork, so that a kill costs milliseconds.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path


def main(sweep_file: str, folder: str, kills: int) -> None:
    """Kill `kills` times; each time that a store is finished, begin a new one. Prints a line for each kill and each store."""
    import polars  # noqa: F401
    from fanin.runs import job, store, summary  # noqa: F401
    from fanin.sweep import sweep

    source = random.Random(14)
    number, killed, span = 0, 0, 0.0
    while killed < kills or number == 0:
        place = Path(folder) / f"store{number}"
        began = time.monotonic()
        child = os.fork()
        if child == 0:
            sweep(sweep_file, store=place)
            os._exit(0)
        # The first one is let finish: how long it takes is the span that kills are drawn from.
        if span:
            time.sleep(source.uniform(0, 0.7 * span))
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        entries = len(list(place.glob("*/[!.]*/*/entry.json")))
        if os.WIFSIGNALED(status):
            killed += 1
            print("killed", number, entries, flush=True)
        elif os.WEXITSTATUS(status) == 0:
            span = span or time.monotonic() - began
            print("finished", number, entries, flush=True)
            number += 1
        else:
            print("failed", number, entries, flush=True)
            sys.exit(1)
    # What the last kill left is finished too.
    child = os.fork()
    if child == 0:
        sweep(sweep_file, store=Path(folder) / f"store{number}")
        os._exit(0)
    os.waitpid(child, 0)
    print("finished", number, len(list((Path(folder) / f"store{number}").glob("*/[!.]*/*/entry.json"))), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
