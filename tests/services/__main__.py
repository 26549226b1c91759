"""The command: makes services, captures them, prints what is read of them."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from . import aggregator, judge, patterns, rack, servers


def run(service: patterns.Service, seed: int, folder: Path, taps: Sequence[str], requests: int) -> dict[str, Path]:
    """A service once: its captures by tap; its log is `log.json.gz` in the folder."""
    kept = folder / "log.json.gz"
    with tempfile.TemporaryDirectory() as place:
        work = Path(place)
        work.chmod(0o755)
        with (
            rack.rack(service.servers, service.mbps, service.buffer, offload=service.offload),
            servers.serving(service.server, service.servers, work),
            rack.taps(folder, service.servers, service.snaplen, taps) as files,
        ):
            aggregator.ask(service, seed, requests, kept)
    return files


def rows(service: patterns.Service, seed: int, folder: Path, taps: Sequence[str], requests: int) -> Iterator[judge.Row]:
    """A service once, and what is read of each tap."""
    files = run(service, seed, folder, taps, requests)
    log = judge.logged(folder / "log.json.gz")
    for tap, file in files.items():
        yield judge.Row(service.name, tap, log, *judge.read(file))


def line(row: judge.Row) -> str:
    """For people."""
    a, b = row.log, row.read
    return (
        f"{row.name:26} {row.tap:10} {a.responses:5} {b.responses:5} {a.requests:4} {b.requests:4} "
        f"{a.p50:7.2f} {b.p50:7.2f} {a.p99:7.2f} {b.p99:7.2f}  {row.verdict} {' '.join(row.warnings)}{' own-time' if row.own_time else ''}"
    )


def main(arguments: Sequence[str]) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.services", description=__doc__)
    parser.add_argument(
        "names", nargs="*", help="services, `drawn 7` for one of random parts [default: all that have a name]"
    )
    parser.add_argument("--taps", nargs="+", default=list(rack.TAPS), choices=rack.TAPS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--requests", type=int, help="requests of each service [default: its own number]")
    parser.add_argument("--keep", type=Path, help="folder for captures and logs")
    parser.add_argument("--results", type=Path, help="folder for services.csv")
    given = parser.parse_args(arguments)
    told: list[judge.Row] = []
    if (why := rack.missing()) is not None:
        sys.exit(why)
    for service in [patterns.named(name) for name in given.names] or patterns.SERVICES:
        if (why := servers.missing(service.server)) is not None:
            print(f"{service.name:26} left out: {why}", flush=True)
            continue
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            if given.keep is not None:
                folder = given.keep / service.name.replace(", ", "_").replace(" ", "_")
                folder.mkdir(parents=True, exist_ok=True)
            try:
                for row in rows(service, given.seed, folder, given.taps, given.requests or service.requests):
                    print(line(row), flush=True)
                    told.append(row)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                print(f"{service.name:26} failed: {error}", flush=True)
    if given.results is not None:
        judge.write(told, given.results / "services.csv")


if __name__ == "__main__":
    main(sys.argv[1:])
