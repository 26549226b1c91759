"""Replays beside real Linux: ``.venv/bin/python lab/replay.py [SEEDS]`` prints the table of `results/replay.csv`.

The captures, what their rounds took, and what the same service took under other TCPs: tests/data/pcap/virtual_kernel.
"""

from __future__ import annotations

import csv
import itertools
import math
import sys
import tempfile
from pathlib import Path
from statistics import mean

import fanin

DATA = Path(__file__).parents[1] / "tests" / "data" / "pcap" / "virtual_kernel"
ALGORITHMS = ("reno", "cubic", "dctcp", "bbr")
CLEAR = 1.1
"""Real TCPs whose mean rounds differ by less than this factor have no order to get right."""


def rows(name: str) -> list[dict[str, str]]:
    """Rows of a table beside the captures."""
    with (DATA / name).open() as file:
        return list(csv.DictReader(file))


def quantile(values: list[float], q: float) -> float:
    """Nearest-rank quantile."""
    return sorted(values)[max(1, math.ceil(round(q * len(values), 9))) - 1]


def main(seeds: int) -> None:
    """Print both tables."""
    real = {(r["name"], r["cc"]): [float(ms) for ms in r["round_ms"].split()] for r in rows("counterfactual.csv")}
    threshold = {r["name"]: r["K"] for r in rows("counterfactual.csv")}
    ordered = clear = close = pairs = 0
    print("| capture | replayed under | p50 real, fanin | p99 real, fanin | mean real, fanin |")
    print("|---|---|---|---|---|")
    for truth, vantage in itertools.product(rows("truth.csv"), ("client", "switch")):
        name = truth["name"]
        with tempfile.TemporaryDirectory() as folder:
            rack = Path(folder) / "rack.toml"
            delay = int(truth["link_delay_ns"]) / 1000
            rack.write_text(
                f'[rack]\nrate = "1Gbps"\ndelay = "{delay:g}us"\nbuffer = "{truth["buffer_pkts"]}p"\nmark = "{threshold[name]}p"\n[stack]\nhz = 1000\n'
            )
            result = fanin.compare(DATA / f"{name}.{vantage}.pcap.gz", rack, cc=ALGORITHMS, seeds=seeds)
        ours = {cc: result.rounds.filter(cc=cc)["completion_ms"].to_list() for cc in ALGORITHMS}
        for cc in ALGORITHMS:
            there, here = real[name, cc], ours[cc]
            figures = [(quantile(there, q), quantile(here, q)) for q in (0.5, 0.99)] + [(mean(there), mean(here))]
            mark = " (captured)" if cc == truth["cc"] else ""
            print(
                f"| {name} at the {vantage} | {cc}{mark} | "
                + " | ".join(f"{a:.2f}, {b:.2f}" for a, b in figures)
                + " |"
            )
        for a, b in itertools.combinations(ALGORITHMS, 2):
            gain, promised = mean(real[name, a]) / mean(real[name, b]), mean(ours[a]) / mean(ours[b])
            pairs += 1
            close += 1 / 1.5 <= promised / gain <= 1.5
            if max(gain, 1 / gain) > CLEAR:
                clear += 1
                ordered += (gain > 1) == (promised > 1)
    print(
        f"\norder of mean rounds right in {ordered} of {clear} clear pairs (more than {CLEAR - 1:.0%} apart); gain within 1.5 in {close} of {pairs}"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
