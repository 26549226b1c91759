"""Capture a service, type the answer on its hosts, measure again, and take it back.

`python -m tests.services.trial sizes` prints a line for each service: what it took under CUBIC, what `fanin compare` advised from the capture
at the aggregator alone and promised, what it took then, and whether the hosts were as before after the lines that take it back.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import aggregator, judge, patterns, rack, servers

FANIN = Path(sys.executable).with_name("fanin")
AVAILABLE = "cubic,reno"
"""What every kernel has: the hosts share one, so a twin that one of them loads is loaded for all. Settings of hosts are tried with them."""
STATE = "ip route show table all; ip -6 route show table all; sysctl net.ipv4 2>/dev/null | grep -v -e random -e _mem; ls /run/fanin 2>/dev/null"
"""What the lines may change, and must take back."""


@dataclass(frozen=True)
class Trial:
    """One service before and after; times of its requests in ms."""

    name: str
    before: judge.Counted
    kind: str
    headline: str
    lines: tuple[str, ...]
    after: judge.Counted | None
    undone: bool

    def told(self) -> str:
        """For people."""
        text = f"{self.name}: {self.headline}\n    before: p50 {self.before.p50:.2f}, p99 {self.before.p99:.2f} ms"
        if self.after is None:
            return text
        back = "as before" if self.undone else "NOT AS BEFORE"
        return f"{text}; after: p50 {self.after.p50:.2f}, p99 {self.after.p99:.2f} ms; taken back: {back}"


def played(service: patterns.Service, seed: int, folder: Path, taps: Sequence[str]) -> judge.Counted:
    """One run of the aggregator, in a rack that stands."""
    log = folder / "log.json.gz"
    with rack.taps(folder, service.servers, service.snaplen, taps):
        aggregator.ask(service, seed, service.requests, log)
    return judge.logged(log)


def typed(host: str, lines: Sequence[str], folder: Path) -> None:
    """Lines on a host, as a person types them: each must succeed. Hosts have files in /run/fanin of their own, which are kept in `folder`."""
    own = folder / host
    own.mkdir(exist_ok=True)
    script = "\n".join(["set -e", f"PATH={FANIN.parent}:$PATH", f"mount --bind {own} /run/fanin", *lines])
    Path("/run/fanin").mkdir(exist_ok=True)
    done = subprocess.run(
        ["ip", "netns", "exec", host, "unshare", "-m", "bash", "-c", script],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{host}: {lines}: {done.stderr.strip()}")


def state(host: str) -> str:
    """What the lines may change on a host."""
    return subprocess.run(
        ["ip", "netns", "exec", host, "bash", "-c", STATE], capture_output=True, text=True, check=False
    ).stdout


def tried(service: patterns.Service, seed: int) -> Trial:
    """Capture, compare, type, measure, undo."""
    with tempfile.TemporaryDirectory() as place:
        work = Path(place)
        work.chmod(0o755)
        hosts = [rack.server(number) for number in range(service.servers)]
        with (
            rack.rack(service.servers, service.mbps, service.buffer, offload=service.offload),
            servers.serving(service.server, service.servers, work),
        ):
            before = played(service, seed, work, ["aggregator"])
            line = [
                str(FANIN),
                "compare",
                "--cc",
                AVAILABLE,
                str(work / "aggregator.pcap"),
                "--baseline",
                "cubic",
                "--json",
                "--out",
                str(work / "out"),
            ]
            found: dict[str, Any] = json.loads(subprocess.run(line, capture_output=True, text=True, check=True).stdout)
            answer, how = found["answer"], found["recommendation"]
            if how is None:
                return Trial(service.name, before, answer["kind"], answer["headline"], (), None, True)
            there = {host: state(host) for host in [*hosts, rack.CLIENT]}
            for host in hosts:
                typed(host, how["trial"], work)
            if how["at_aggregator"]:
                typed(rack.CLIENT, how["at_aggregator"], work)
            try:
                after = played(service, seed + 1, work, [])
            finally:
                for host in hosts:
                    typed(host, how["undo"], work)
                if how["at_aggregator"]:
                    typed(rack.CLIENT, how["undo_at_aggregator"], work)
            undone = all(state(host) == was for host, was in there.items())
            return Trial(service.name, before, answer["kind"], answer["headline"], tuple(how["trial"]), after, undone)


def main(arguments: Sequence[str]) -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.services.trial", description=__doc__)
    parser.add_argument("names", nargs="*", help="services [default: all]")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    if (why := rack.missing()) is not None:
        sys.exit(why)
    for service in [patterns.named(name) for name in given.names] or patterns.SERVICES:
        if (why := servers.missing(service.server)) is not None:
            print(f"{service.name}: left out: {why}", flush=True)
            continue
        try:
            print(tried(service, given.seed).told(), flush=True)
        except (RuntimeError, subprocess.SubprocessError) as error:
            print(f"{service.name}: failed: {error}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
