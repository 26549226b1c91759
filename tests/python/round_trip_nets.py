"""The round-trip law where the law of stars does not look: other networks, and every workload of the registry.

python tests/python/round_trip_nets.py 60      # as many random scenarios; one line each, and a summary
python tests/python/round_trip_nets.py 20-40   # those with these numbers

The capture is taken at the aggregator or at the port next to it, and replayed on the same network (`kind = "replay"`), each server of the capture on
its own host.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import fanin
import polars as pl
from fanin.comparison import doubts

if __package__:
    from . import round_trip
else:
    import round_trip

OTHER = "other"
"""Class of traffic that goes to another host than the aggregator, which its capture does not show."""


@dataclass(frozen=True, slots=True)
class Net:
    """A network with its hosts in the order of their addresses, 10.0.0.1 being the first."""

    name: str
    topology: str
    hosts: tuple[str, ...]
    aggregator: str
    servers: tuple[str, ...]
    port: str
    """Between the aggregator and its switch."""


def numbered(prefix: str, count: int, first: int = 1) -> tuple[str, ...]:
    return tuple(f"{prefix}{n}" for n in range(first, first + count))


def net(rng: random.Random) -> Net:
    """A random network of any topology but the star."""
    kind = rng.choice(("dumbbell", "leaf_spine", "fat_tree", "multihop", "dctcp_multihop", "testbed", "graph"))
    rate, fabric = rng.choice((("1Gbps", "1Gbps"), ("1Gbps", "10Gbps"), ("10Gbps", "10Gbps")))
    common = f'rate = "{rate}"\ndelay = "{rng.choice((5, 10, 25))}us"\nbuffer = "{rng.choice((40, 100, 200))}p"\nmark = "20p"\n'
    faster = f'fabric_rate = "{fabric}"\n'
    if kind == "dumbbell":
        pairs = rng.randint(4, 16)
        hosts = numbered("s", pairs) + numbered("r", pairs)
        return Net(kind, f"pairs = {pairs}\n{common}", hosts, "r1", hosts[:pairs], "right->r1")
    if kind == "leaf_spine":
        leaves, per_leaf = rng.randint(2, 4), rng.randint(2, 6)
        hosts = numbered("h", leaves * per_leaf, 0)
        shape = f"leaves = {leaves}\nspines = {rng.randint(1, 3)}\nhosts_per_leaf = {per_leaf}\n"
        return Net(kind, shape + common + faster, hosts, "h0", hosts[1:], "leaf0->h0")
    if kind == "fat_tree":
        hosts = numbered("h", 16, 0)
        return Net(kind, f"k = 4\n{common}{faster}", hosts, "h0", hosts[1:], "edge0_0->h0")
    if kind == "multihop":
        size = rng.randint(2, 8)
        servers = numbered("a", size) + numbered("b", size)
        hosts = ("frontend", *servers, *numbered("c", size), *numbered("d", size))
        return Net(kind, f"group_size = {size}\n{common}", hosts, "frontend", servers, "switch2->frontend")
    if kind == "dctcp_multihop":
        size = rng.randint(2, 6)
        near, far = numbered("s3_", size), numbered("s1_", size)
        hosts = ("r1", *far, *numbered("s2_", 2 * size), *near, *numbered("r2_", 2 * size))
        return Net(kind, f"group_size = {size}\n{common}{faster}", hosts, "r1", far + near, "rack2->r1")
    if kind == "testbed":
        return Net(kind, common, ("r", "s1", "s2", "s4"), "r", ("s1", "s2", "s4"), "edge->r")
    # Two switches in a row; servers at both.
    size = rng.randint(2, 6)
    near, far = numbered("n", size), numbered("f", size)
    hosts = ("agg", *near, *far)
    links = [("agg", "one"), ("one", "two"), *((h, "one") for h in near), *((h, "two") for h in far)]
    tables = "".join(f'[[topology.link]]\nbetween = ["{a}", "{b}"]\n' for a, b in links)
    names = ", ".join(f'"{h}"' for h in hosts)
    return Net(
        kind, f'hosts = [{names}]\nswitches = ["one", "two"]\n{common}{tables}', hosts, "agg", near + far, "one->agg"
    )


def workloads(rng: random.Random, net: Net) -> dict[str, str]:
    """Tables of workloads by name; what one line says holds for all that is asked for."""
    size, gap, jitter = rng.choice((8, 16, 32, 64)), rng.choice((0.5, 2, 5)), rng.choice((5, 20, 200))
    half = len(net.servers) // 2 or 1

    def table(kind: str, text: str, servers: Sequence[str] = net.servers, to: str = net.aggregator) -> str:
        names = ", ".join(f'"{server}"' for server in servers if server != to)
        return f'[[workload]]\nkind = "{kind}"\nfrom = [{names}]\nto = "{to}"\n{text}\n'

    every = f'bytes = "{size}KB"\nrounds = 20\nrequest = "100B"\njitter = "{jitter}us"'
    incast = f'{every}\ngap = "{gap}ms"'
    pages = f'request = "100B"\nresponses = 40\ngap = {{ exponential = "{gap}ms" }}'
    search = f'total = "{size * len(net.servers)}KB"\nqueries = 20\njitter = "{jitter}us"'
    reduce = f'unit = "{size}KB"\nrounds = 8\njitter = "{jitter}us"'
    elsewhere = [host for host in net.hosts if host != net.aggregator][-1]
    return {
        "incast": table("incast", incast),
        "incast, opened before": table("incast", f'{incast}\nopen = "before"'),
        "incast, opened anew": table("incast", f'{incast}\nopen = "each-round"'),
        "incast, no barrier": table("incast", f"{incast}\nbarrier = false"),
        "incast, two connections each": table("incast", f"{incast}\nconnections = 2"),
        "rpc": table("incast", incast, net.servers[:1]),
        "pages": table("http_on_off", f"{pages}\nclosed_loop = true"),
        "pages, opened anew": table("http_on_off", f"{pages}\nclosed_loop = true\nnew_connection = true"),
        "ON/OFF": table("http_on_off", f'{pages}\nsize = "{size}KB"'),
        "ON/OFF and a train": table(
            "http_on_off", f'{pages}\nclosed_loop = true\ntrain = "1MB"\ntrain_start = "100ms"'
        ),
        "queries": table("web_search", f'{search}\ngap = "{gap}ms"'),
        "queries by a timer": table("web_search", f'{search}\ninterval = "{20 * gap}ms"'),
        "mapreduce": table("mapreduce", reduce),
        "two groups": table("incast", incast, net.servers[:half])
        + table("incast", f'{every}\ngap = "{1.7 * gap}ms"\nstart = "3ms"', net.servers[half:]),
        "two groups alike": table("incast", incast, net.servers[:half])
        + table("incast", f'{incast}\nstart = "{gap / 2}ms"', net.servers[half:]),
        "incast beside a long answer": table("incast", incast) + table("long", 'bytes = "3MB"', net.servers[:1]),
        "several clients": table("incast", incast)
        + table("incast", f'{incast}\nclass = "{OTHER}"', net.servers, elsewhere),
        "unasked: incast": table("incast", incast.replace('request = "100B"\n', "")),
        "unasked: long": table("long", 'bytes = "500KB"\nstagger = "1ms"'),
        "unasked: poisson": table("poisson", 'load = 0.4\nsize = "20KB"\nto_one = true\nstop = "100ms"'),
    }


LIMITS = {
    "several clients": "what goes to other hosts is not in the capture of one",
}
"""Workloads in which the law cannot hold by nature where the paths are shared, and no capture of one host shows it, with the reason."""

NEVER = {
    "bursts": "datagrams: a replay has TCP connections only",
    "cbr": "datagrams: a replay has TCP connections only",
    "convergence": "flows without an end: nothing completes",
    "outcast": "flows without an end: nothing completes",
    "replay": "what is replayed is one of the others",
}
"""Workloads that the law does not ask, with the reason."""


@dataclass(frozen=True, slots=True)
class Case:
    """One scenario, and where it is captured."""

    number: int
    net: Net
    named: str
    workload: str
    stack: str
    cc: str
    at_host: bool

    def scenario(self, workload: str) -> str:
        # A topology's tables of links end its own keys, so it stands before what follows as a whole.
        return (
            f'[topology]\nkind = "{self.net.name}"\n{self.net.topology}\n[stack]\nprofile = "{self.stack}"\nnagle = "off"\n'
            f'{workload}\n[run]\nduration = "100s"\n'
        )

    def replay(self, servers: Mapping[str, str]) -> str:
        """Its replay; `servers` are hosts with their addresses in the capture."""
        places = ", ".join(f'{host} = "{address}"' for host, address in servers.items())
        return self.scenario(
            f'[[workload]]\nkind = "replay"\nfile = "workload.json"\njitter = "2us"\nhosts = {{ {places} }}\nto = "{self.net.aggregator}"\n'
        )

    @property
    def one_group(self) -> bool:
        """Every connection is asked once per round."""
        return self.named in ("incast", "incast, opened before", "incast, two connections each", "queries", "mapreduce")


def case(number: int) -> Case:
    """A random network, workload, endpoint, algorithm and vantage point; the same for the same number."""
    rng = random.Random(10_000 + number)
    where = net(rng)
    tables = workloads(rng, where)
    named = list(tables)[number % len(tables)]
    stack, cc = rng.choice(("linux", "linux", "rfc")), rng.choice([cc for cc in round_trip.ALGORITHMS if cc != "trim"])
    return Case(number, where, named, tables[named], stack, cc, rng.random() < 0.5)


def check(case: Case) -> round_trip.Verdict:
    """Judge a case over a few seeds, and over more where it breaks the law over these."""
    return round_trip.again(lambda folder, seeds: judge(case, folder, seeds))


def judge(case: Case, folder: Path, seeds: int) -> round_trip.Verdict:
    """Run, capture, replay, compare."""
    scenario, replay = folder / "scenario.toml", folder / "replay.toml"
    scenario.write_text(case.scenario(case.workload))
    switch, host = case.net.port.split("->")
    places = [host] if case.at_host else [case.net.port, f"{host}->{switch}"]
    runs = fanin.run(scenario, cc=case.cc, seeds=seeds)
    captured = fanin.run(scenario, cc=case.cc, seed=1, pcap=folder / "pcap", pcap_at=places)
    capture = round_trip.merged(sorted((folder / "pcap").rglob("*.pcap")), folder / "capture.pcap")
    addresses = {f"10.0.0.{n}": name for n, name in enumerate(case.net.hosts, 1)}
    of = {name: address for address, name in addresses.items()}
    workload = fanin.trains(capture).workload(of[case.net.aggregator])
    workload.write(folder / "workload.json")
    replay.write_text(case.replay({addresses[server]: server for server in workload.servers}))
    replayed = fanin.run(replay, cc=case.cc, seeds=seeds)

    verdict = round_trip.Verdict(
        seeds, doubts=round_trip.doubted(doubts.about_the_capture(workload, independent=False))
    )
    numbers = range(1, seeds + 1)
    each = [mine(runs.messages.filter(seed=seed)) for seed in numbers]
    there, here = mine(captured.messages), [mine(replayed.messages.filter(seed=seed)) for seed in numbers]
    answers = [round_trip.answers(messages) for messages in each]
    verdict.times("responses", round_trip.answers(there), round_trip.answers(pl.concat(here)), answers)
    connections = len(case.net.servers) * (2 if case.named.endswith("two connections each") else 1)
    if case.one_group and connections > 1:
        rounds = [round_trip.rounds(messages, connections) for messages in each]
        again = [took for messages in here for took in round_trip.rounds(messages, connections)]
        verdict.times("rounds", round_trip.rounds(there, connections), again or [float("inf")], rounds)
    count = len(round_trip.answers(there))
    verdict.events("answers", count, len(round_trip.answers(pl.concat(here))) / seeds, [count], 0)
    for name in ("timeouts", "drops") if OTHER not in case.workload else ("timeouts",):
        own, theirs = (total(result, name, numbers) for result in (runs, replayed))
        verdict.events(name, own[0], sum(theirs) / seeds, own, count)
    return verdict


def mine(messages: pl.DataFrame) -> pl.DataFrame:
    return messages.filter(pl.col("class") != OTHER)


def total(result: fanin.RunResult, name: str, seeds: Sequence[int]) -> list[float]:
    """Of the answers' flows, or of all ports, per seed."""
    frame = result.ports if name == "drops" else mine(result.flows)
    return [round_trip.events(frame.filter(seed=seed), name) for seed in seeds]


def main(numbers: range) -> None:
    tally, limited = round_trip.Tally(), 0
    for number in numbers:
        made = case(number)
        found = check(made)
        says = tally.add(found)
        if not found.holds and made.named in LIMITS:
            limited += 1
            says = f"LIMIT ({LIMITS[made.named]}) {' and '.join(found.breaks)}"
        place = "host" if made.at_host else "switch"
        where = f"{made.named} on {made.net.name} of {len(made.net.servers)}, {made.cc} {made.stack} at the {place}"
        print(
            f"{number:4} {says} over {found.seeds} seeds: {found} | {where}: {' '.join(made.net.topology.split())}",
            flush=True,
        )
    print(f"{tally}; {limited} cannot by nature")


if __name__ == "__main__":
    main(round_trip.chosen(sys.argv[1] if len(sys.argv) > 1 else "60"))
