"""Whether the answer depends on which run of a service was captured.

`python -m tests.services.stability "incast 13" 20` runs a service twenty times in a rack of namespaces that stands, captures each run at the aggregator,
and answers from each capture alone, with what every host can run as candidates. Answers are alike where they take the same kind of change.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import fanin
from fanin.settings.declared import Cost

from . import patterns, rack, servers, trial


def captured(service: patterns.Service, count: int, folder: Path) -> list[Path]:
    """The captures of so many runs."""
    files = []
    with (
        rack.rack(service.servers, service.mbps, service.buffer, offload=service.offload),
        servers.serving(service.server, service.servers, folder),
    ):
        for seed in range(1, count + 1):
            trial.played(service, seed, folder, trial.TAP)
            files.append((folder / "aggregator.pcap").rename(folder / f"{seed}.pcap"))
    return files


def answered(file: Path) -> tuple[str, str]:
    """The kind of change that is advised, and which."""
    result = fanin.compare(file, baseline=rack.CURRENT, keep=False)
    told = result.verdict
    if told.kind != "change" or told.best is None:
        return told.kind, rack.CURRENT
    return Cost(result.way(told.best).cost(rack.CURRENT)[0]).name.lower().replace("_", " "), told.best


def main(arguments: Sequence[str]) -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.services.stability", description=__doc__)
    parser.add_argument("name", help="the service, as of tests.services.trial")
    parser.add_argument("captures", type=int, help="how many captures")
    given = parser.parse_args(arguments)
    rack.begin()
    service = patterns.named(given.name)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        folder.chmod(0o755)
        files = captured(service, given.captures, folder)
        found = []
        for file in files:
            found.append(answered(file))
            print(f"{file.stem}: {found[-1][0]}: {found[-1][1]}", flush=True)
    (kind, most), *_ = Counter(kind for kind, _ in found).most_common(1)
    print(f"{service.name}: {most} of {len(found)} captures: {kind}")


if __name__ == "__main__":
    main(sys.argv[1:])
