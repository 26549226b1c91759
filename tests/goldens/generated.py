"""Two hundred random scenarios, the same on every machine: topology x workload x queue x cc x profile x shared buffers.

The names are listed here, not taken from the registries, so that a new algorithm or topology changes no scenario. Only
``random.Random.random()`` is used: Python keeps its sequence for a seed from version to version.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

COUNT = 200
"""How many scenarios."""

T = TypeVar("T")
Value = str | int | float | bool
Table = dict[str, Value]

LOSS_BASED = ["reno", "newreno", "sack", "cubic", "bic", "hystart+newreno", "hystart+cubic"]
MARKED = ["dctcp", "d2tcp", "l2dct", "gss+dctcp"]
DELAY_BASED = ["vegas", "dcvegas", "trim", "bbr"]
OTHERS = ["gss+newreno", "gss+cubic", "tcprand+cubic", "tcprand+newreno", "iatcp", "ictcp"]

GRAPH = """\
hosts = ["a1", "a2", "a3", "b1", "b2"]
switches = ["left", "right", "up", "down"]
link = [
    { between = ["a1", "left"] }, { between = ["a2", "left"] }, { between = ["a3", "left"], delay = "7us" },
    { between = ["b1", "right"] }, { between = ["b2", "right"] },
    { between = ["left", "up"] }, { between = ["up", "right"] },
    { between = ["left", "down"], delay = "9us" }, { between = ["down", "right"], delay = "9us" },
]"""


class Draw:
    """A seeded source of choices."""

    def __init__(self, number: int) -> None:
        self.random = random.Random(7_000_003 * number + 11)

    def one(self, choices: Sequence[T]) -> T:
        """Give one of `choices`."""
        return choices[int(self.random.random() * len(choices))]

    def whole(self, low: int, high: int) -> int:
        """Give a whole number from `low` to `high`."""
        return low + int(self.random.random() * (high - low + 1))

    def chance(self, probability: float) -> bool:
        """Say yes with this probability."""
        return self.random.random() < probability


def scenario(number: int) -> str:
    """Write the scenario of this number as TOML.

    Parameters
    ----------
    number : int
        From 0 to ``COUNT - 1``.
    """
    draw = Draw(number)
    topology, extra = _topology(draw, number)
    queue = _queue(draw)
    cc = _cc(draw)
    if "mark" not in topology and cc["name"] in MARKED:
        topology["mark"] = draw.one(["5p", "8p", "12KB"])
    lines = [f'title = "generated {number}"', *_table("topology", topology)]
    if extra:
        lines.append(extra)
    if queue["name"] != "droptail":
        lines += _table("topology.queue", queue)
    lines += _table("stack", _stack(draw))
    lines += _table("cc", cc)
    for workload in _workloads(draw, str(topology["kind"])):
        lines += _table("[workload]", workload)
    lines += _table("run", {"duration": "3s", "seed": number})
    lines += _table("measure", {"drops": draw.chance(0.5), "throughput": "10ms"})
    lines += ['queues = ["*"]', 'windows = ["*"]']
    return "\n".join(lines) + "\n"


def _table(name: str, values: Table) -> list[str]:
    def toml(value: Value) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, str) and not value.startswith("{"):
            return f'"{value}"'
        return str(value)

    return ["", f"[{name}]", *(f"{key} = {toml(value)}" for key, value in values.items())]


def _topology(draw: Draw, number: int) -> tuple[Table, str]:
    kinds = ["star", "dumbbell", "multihop", "dctcp_multihop", "testbed", "leaf_spine", "fat_tree", "graph"]
    kind = kinds[number % len(kinds)]
    table: Table = {
        "kind": kind,
        "rate": draw.one(["100Mbps", "1Gbps", "1Gbps", "1.1Gbps", "10Gbps"]),
        "delay": draw.one(["1us", "10us", "25us", "50us"]),
    }
    if draw.chance(0.35):
        table["shared_buffer"] = draw.one(["30KB", "128KB", "1MB"])
        table["shared_alpha"] = draw.one([0.5, 1.0, 4.0])
    else:
        table["buffer"] = draw.one(["10p", "30p", "100p", "250p", "20KB", "200KB"])
    if draw.chance(0.25):
        table["mark"] = draw.one(["5p", "8p", "12KB"])
    if draw.chance(0.2):
        table["host_buffer"] = draw.one(["50p", "300KB"])
    if draw.chance(0.2):
        table["processing"] = draw.one(["1us", "25us"])
    extra = ""
    match kind:
        case "star":
            table["senders"] = draw.whole(1, 24)
        case "dumbbell":
            table["pairs"] = draw.whole(1, 8)
            table["bottleneck_rate"] = draw.one(["100Mbps", "1Gbps"])
        case "multihop" | "dctcp_multihop":
            table["group_size"] = draw.whole(1, 4)
        case "leaf_spine":
            table |= {"leaves": draw.whole(2, 4), "spines": draw.whole(1, 3), "hosts_per_leaf": draw.whole(2, 4)}
        case "graph":
            extra = GRAPH
    if kind in ("leaf_spine", "fat_tree", "graph"):
        table["routing"] = draw.one(["flow-hash", "spray", "equal-length"])
    return table, extra


def _queue(draw: Draw) -> Table:
    name = draw.one(["droptail", "droptail", "droptail", "red", "sfq", "lossy"])
    match name:
        case "red":
            return {
                "name": name,
                "red_min": draw.whole(3, 20),
                "red_max": draw.whole(25, 60),
                "red_ecn": draw.chance(0.7),
            }
        case "sfq":
            return {"name": name, "sfq_buckets": draw.one([2, 16, 128])}
        case "lossy":
            return {"name": name, "loss_probability": draw.one([0.001, 0.01, 0.05])}
    return {"name": name}


def _cc(draw: Draw) -> Table:
    families = [LOSS_BASED, MARKED, DELAY_BASED, OTHERS]
    table: Table = {"name": draw.one(draw.one(families))}
    if table["name"] == "tcprand+newreno":
        table["rand_rmin"] = draw.one(["200B", "800B"])
    return table


def _stack(draw: Draw) -> Table:
    table: Table = {"profile": draw.one(["ns2", "rfc", "linux"]), "min_rto": draw.one(["2ms", "10ms", "200ms"])}
    optional: list[tuple[float, str, list[Value]]] = [
        (0.15, "mss", [536, 1000, 8960]),
        (0.2, "initial_window", [1, 4, 20]),
        (0.2, "recovery", ["reno", "newreno", "sack", "rack"]),
        (0.15, "window_unit", ["packets", "bytes"]),
        (0.15, "counting", ["per-ack", "abc1", "abc2", "linux"]),
        (0.15, "ecn", ["off", "classic"]),
        (0.15, "nagle", ["off", "rfc896", "minshall"]),
        (0.15, "delack_segments", [1, 2]),
        (0.15, "timestamps", [True, False]),
        (0.15, "handshake", [True, False]),
        (0.15, "cwnd_validation", ["none", "rfc7661", "linux"]),
        (0.15, "limited_transmit", [True, False]),
        (0.2, "send_jitter", ["0s", "1us", "12us"]),
        (0.1, "pacing", [True]),
        (0.1, "receive_window", ["64KB"]),
        (0.1, "frame_overhead", ["38B"]),
        (0.1, "max_burst", [3]),
    ]
    for probability, key, values in optional:
        if draw.chance(probability):
            table[key] = draw.one(values)
    return table


def _workloads(draw: Draw, topology: str) -> list[Table]:
    size = draw.one(["2KB", "32KB", "64KB", "256KB"])
    kinds: list[Table] = [
        {"kind": "incast", "bytes": size, "rounds": draw.whole(1, 6), "jitter": draw.one(["0s", "100us"])},
        {"kind": "incast", "total": "512KB", "rounds": 3, "barrier": False, "gap": "1ms", "request": "100B"},
        {"kind": "incast", "bytes": size, "rounds": 3, "request": "200B", "connections": draw.whole(1, 3)},
        {"kind": "long", "bytes": "2MB", "stagger": draw.one(["0s", "3ms"]), "jitter": "50us"},
        {"kind": "long", "pattern": "permutation", "bytes": "500KB"},
        {"kind": "long", "stop": "200ms", "pattern": draw.one(["fixed", "random"])},
        {"kind": "http_on_off", "responses": 20, "closed_loop": draw.chance(0.5), "new_connection": draw.chance(0.3)},
        {"kind": "http_on_off", "responses": 10, "request": "150B", "train": "300KB", "train_start": "20ms"},
        {"kind": "web_search", "total": "256KiB", "queries": 4, "jitter": "20us"},
        {"kind": "mapreduce", "unit": "64KB", "rounds": 2},
        {
            "kind": "poisson",
            "load": draw.one([0.2, 0.6]),
            "size": draw.one(["websearch_pfabric", "homa_w3"]),
            "stop": "100ms",
        },
        {"kind": "convergence", "step": "20ms"},
        {"kind": "cbr", "rate": "20Mbps", "packet": draw.one(["200B", "1500B"]), "stop": "100ms"},
    ]
    chosen = [draw.one(kinds[:-1])]
    if draw.chance(0.3):
        chosen.append({**draw.one(kinds), "start": draw.one(["0s", "500us", "20ms"])})
    many_to_one = ("incast", "web_search", "mapreduce", "http_on_off", "convergence")
    for workload in chosen:
        if workload["kind"] in many_to_one:
            if topology == "dumbbell":
                workload["to"] = "r1"
            if workload["kind"] != "convergence" and draw.chance(0.1):
                workload["deadline"] = draw.one(["2ms", "20ms"])
    return chosen
