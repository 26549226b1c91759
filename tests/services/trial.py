"""Capture a service, type the answer on its hosts, measure again, and take it back.

`python -m tests.services.trial sizes` prints a line for each service: what it took under CUBIC, what `fanin.compare` advised from the capture
at the aggregator alone and stated, what it took then, and whether the hosts were as before after the lines that take it back.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import math
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path

import fanin
from fanin.comparison.candidates import Choice, Unmarked, with_host_settings
from fanin.decision import Outcome, decide
from fanin.registries import stand_alone_algorithms
from fanin.runs.replay import ReplayJob
from fanin.settings.candidates import Candidate
from fanin.settings.deployable import around, deployment
from fanin.statistics.ranking import RankOf

from . import aggregator, drawn, judge, patterns, rack, servers

FANIN = Path(sys.executable).with_name("fanin")
ROOT = Path(__file__).parents[2]
PATH = f"{FANIN.parent}:{ROOT / 'target' / 'release'}:$PATH"
"""Where `fanin-host` is (`make linux`)."""
STATE = (
    "ip route show table all; ip -6 route show table all; sysctl net.ipv4 2>/dev/null | grep -v -e random -e _mem; "
    "ls /run/fanin /sys/fs/bpf/fanin 2>/dev/null"
)
"""What the lines may change, and must take back."""
OF_KERNEL = ("fanin-host load", "fanin-host unload")
"""What such a line changes is the kernel's, and these hosts share one: it is typed once for all of them."""


def available() -> list[str]:
    """What the hosts can run: what this machine's kernel has, and fanin's twins; nothing that stands before an application."""
    there = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text(encoding="utf-8").split()
    found = []
    for name in [*stand_alone_algorithms(), *around(rack.CURRENT)]:
        how = deployment(name)
        if how is not None and not how.shim and (how.twin or how.kernel_name in there):
            found.append(name)
    return found


class WithSettings:
    """The settings of hosts that a comparison tries unless TCPs are named."""

    def __call__(self, base: ReplayJob, choice: Choice, of: RankOf) -> Sequence[Candidate]:
        """Candidates beside the TCPs."""
        return list(with_host_settings(choice, base).settings.values())

    def may_mark(self, unmarked: Unmarked) -> bool:
        """A queue of these racks never marks."""
        return False


def answered(capture: Path) -> fanin.CompareResult:
    """The answer that everybody gets of this capture; where these hosts cannot run it, the best of what they can."""
    result, here = fanin.compare(capture, baseline=rack.CURRENT), available()
    best = result.verdict.best
    if best is None or result.way(best).cc in here:
        return result
    return fanin.compare(capture, cc=here, baseline=rack.CURRENT, further=WithSettings())


TAP = ("aggregator",)
RUNS = 3
"""Runs before and after: a service's timeouts differ between runs by more than what is judged."""
CLOSE = 1.5
"""A mean that is got is as stated within this factor of the interval's middle."""


def longer(before: Sequence[judge.Counted], after: Sequence[judge.Counted]) -> tuple[str, ...]:
    """What a change made measurably longer, by the rule by which it was advised; a run before it and the next one after it are a pair.

    Examples
    --------
    >>> def run(mean, p95): return judge.Counted(100, 100, 1.0, 200.0, mean, p95)
    >>> now = [run(9.0, 20.0), run(9.1, 20.5), run(8.9, 19.9)]
    >>> longer(now, [run(12.0, 20.0), run(12.1, 20.5), run(11.9, 19.9)]), longer(now, [run(5.0, 23.0), run(5.1, 23.5), run(4.9, 22.9)])
    (('mean',), ())
    """

    def outcome(name: str, runs: Sequence[judge.Counted]) -> Outcome:
        took: dict[tuple[Hashable, Hashable], dict[str, float | None]] = {
            (0, n): {"mean": r.mean, "p50": r.p50, "p95": r.p95, "p99": r.p99} for n, r in enumerate(runs)
        }
        return Outcome(name, (0,), took, min(r.requests for r in runs))

    found = decide([outcome("before", before), outcome("after", after)], "before").of("after")
    assert found is not None
    return found.harms


@dataclass(frozen=True)
class Trial:
    """One service before and after; times of its requests in ms.

    `before` and `after` are of all runs together, `harms` is what :func:`longer` says of them.
    """

    service: patterns.Service
    before: judge.Counted
    kind: str
    headline: str
    change: str
    stated: tuple[float, float] | None
    after: judge.Counted | None
    undone: bool
    harms: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """How the mean that was got lies beside the one that was stated."""
        if self.after is None or self.stated is None:
            return ""
        if self.harms:
            return f"harmed: {' '.join(self.harms)}"
        low, high = self.stated
        if low <= self.after.mean <= high:
            return "inside"
        side = "longer" if self.after.mean > high else "shorter"
        return f"{side}, close" if 1 / CLOSE <= self.after.mean / math.sqrt(low * high) <= CLOSE else side

    def told(self) -> str:
        """For people."""
        was = self.before
        text = f"{self.service.name}: {self.headline}\n    before: mean {was.mean:.2f}, p50 {was.p50:.2f}, p95 {was.p95:.2f}, p99 {was.p99:.2f} ms"
        if self.after is None:
            return text
        back, got = "as before" if self.undone else "NOT AS BEFORE", self.after
        return f"{text}; after: mean {got.mean:.2f}, p50 {got.p50:.2f}, p95 {got.p95:.2f}, p99 {got.p99:.2f} ms: {self.verdict}; taken back: {back}"

    def row(self) -> dict[str, object]:
        """A row of ``results/real_time.csv``."""
        of, got, (low, high) = self.service, self.after, self.stated or (None, None)
        size = "{} to {}".format(*of.sizes_kib) if of.sizes_kib[0] < of.sizes_kib[1] else str(of.sizes_kib[0])
        offload = "on" if of.offload else "off"
        return {
            "service": of.name,
            "rack": f"{of.servers} x {size} KiB, {of.mbps} Mbps, {of.buffer}p, offload {offload}",
            "kind": self.kind,
            "change": self.change,
            "before_mean_ms": _rounded(self.before.mean),
            "before_p95_ms": _rounded(self.before.p95),
            "stated_low_ms": _rounded(low),
            "stated_high_ms": _rounded(high),
            "after_mean_ms": _rounded(None if got is None else got.mean),
            "after_p95_ms": _rounded(None if got is None else got.p95),
            "verdict": self.verdict,
        }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def played(service: patterns.Service, seed: int, folder: Path, taps: Sequence[str]) -> Path:
    """One run of the aggregator, in a rack that stands: its log."""
    log = folder / f"log{seed}.json.gz"
    with rack.taps(folder, service.servers, service.snaplen, taps):
        aggregator.ask(service, seed, service.requests, log)
    return log


def kept(work: Path, log: Path, folder: Path, name: str) -> None:
    """The last run's capture and log, as they are shipped."""
    folder.mkdir(parents=True, exist_ok=True)
    with (work / "aggregator.pcap").open("rb") as file, gzip.GzipFile(folder / f"{name}.pcap.gz", "wb", mtime=0) as to:
        shutil.copyfileobj(file, to)
    shutil.copyfile(log, folder / f"{name}.log.json.gz")


def within(host: str) -> list[str]:
    """Begin a command in a host's network; unlike `ip netns exec` it leaves /sys, where twins are pinned."""
    return ["nsenter", f"--net=/run/netns/{host}"]


def everywhere(hosts: Sequence[str], lines: Sequence[str], folder: Path) -> None:
    """Lines on every host; what is the kernel's is typed on the first host before all others, or on the last one after them."""
    of_kernel = [line for line in lines if line.startswith(OF_KERNEL)]
    own = [line for line in lines if line not in of_kernel]
    first = bool(lines) and lines[0] in of_kernel
    for number, host in enumerate(hosts):
        before = of_kernel if first and number == 0 else []
        after = of_kernel if not first and number == len(hosts) - 1 else []
        typed(host, [*before, *own, *after], folder)


def typed(host: str, lines: Sequence[str], folder: Path) -> None:
    """Lines on a host, as a person types them: each must succeed. Hosts have files in /run/fanin of their own, which are kept in `folder`."""
    own = folder / host
    own.mkdir(exist_ok=True)
    script = "\n".join(["set -e", f"PATH={PATH}", f"mount --bind {own} /run/fanin", *lines])
    Path("/run/fanin").mkdir(exist_ok=True)
    done = subprocess.run(
        [*within(host), "unshare", "-m", "bash", "-c", script], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{host}: {lines}: {done.stderr.strip()}")


def state(host: str) -> str:
    """What the lines may change on a host."""
    return subprocess.run([*within(host), "bash", "-c", STATE], capture_output=True, text=True, check=False).stdout


def tried(service: patterns.Service, seed: int, folder: Path | None = None) -> Trial:
    """Capture, compare, type, measure, undo; captures, logs and lines are left in `folder`."""
    with tempfile.TemporaryDirectory() as place:
        work = Path(place)
        work.chmod(0o755)
        hosts = [rack.server(number) for number in range(service.servers)]
        with (
            rack.rack(service.servers, service.mbps, service.buffer, offload=service.offload),
            servers.serving(service.server, service.servers, work),
        ):
            before, after = [played(service, seed, work, TAP)], []
            if folder is not None:
                kept(work, before[0], folder, "before")
            result = answered(work / "aggregator.pcap")
            answer = result.verdict
            how, change = answer.recommendation, answer.best or ""
            if how is None:
                return Trial(service, judge.logged(*before), answer.kind, answer.headline, "", None, None, True)
            there = {host: state(host) for host in [*hosts, rack.CLIENT]}
            for number in range(RUNS):
                # By turns, so that what else this machine does falls on both.
                if number:
                    before.append(played(service, seed + 2 * number, work, TAP))
                everywhere(hosts, how.trial, work)
                if how.at_aggregator:
                    typed(rack.CLIENT, how.at_aggregator, work)
                try:
                    after.append(played(service, seed + 2 * number + 1, work, TAP))
                    if folder is not None and number == 0:
                        kept(work, after[0], folder, "after")
                finally:
                    everywhere(hosts, how.undo, work)
                    if how.at_aggregator:
                        typed(rack.CLIENT, how.undo_at_aggregator, work)
            undone = all(state(host) == was for host, was in there.items())
            if folder is not None:
                lines = ["# on each server", *how.trial, "# on the aggregator", *how.at_aggregator]
                (folder / "typed.sh").write_text("\n".join([*lines, ""]), encoding="utf-8")
            stated = result.expected(change, "mean")
            was, got = judge.logged(*before), judge.logged(*after)
            harms = longer([judge.logged(log) for log in before], [judge.logged(log) for log in after])
            return Trial(service, was, answer.kind, answer.headline, change, stated, got, undone, harms)


def main(arguments: Sequence[str]) -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.services.trial", description=__doc__)
    parser.add_argument(
        "names", nargs="*", help="services, or `incast 3` for a fan-in of random parts [default: incast 0 to 15]"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="folder for captures, logs and the lines that were typed")
    parser.add_argument("--results", type=Path, help="folder for real_time.csv")
    given = parser.parse_args(arguments)
    rack.begin()
    done = []
    for service in [patterns.named(name) for name in given.names] or map(drawn.incast, range(drawn.INCASTS)):
        if (why := servers.missing(service.server)) is not None:
            print(f"{service.name}: left out: {why}", flush=True)
            continue
        folder = None if given.keep is None else given.keep / service.name.replace(" ", "_")
        try:
            trial = tried(service, given.seed, folder)
        except (RuntimeError, fanin.FaninError, subprocess.SubprocessError) as error:
            print(f"{service.name}: failed: {error}", flush=True)
            continue
        print(trial.told(), flush=True)
        done.append(trial.row())
        if given.results is not None:
            with (given.results / "real_time.csv").open("w", newline="", encoding="utf-8") as file:
                table = csv.DictWriter(file, fieldnames=list(done[0]), lineterminator="\n")
                table.writeheader()
                table.writerows(done)


if __name__ == "__main__":
    main(sys.argv[1:])
