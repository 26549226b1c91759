"""Timeouts of 64 answers of 256 KiB at once, in ns-2 and here: ``python beside.py`` (needs `ns`; Debian: ns2)."""

from __future__ import annotations

import subprocess
from itertools import product
from pathlib import Path

import fanin

HERE = Path(__file__).parent
AGENTS = {"reno": "Reno", "newreno": "Newreno", "sack": "Sack1"}
SEEDS = range(1, 6)


def there(agent: str, jitter_us: int, delay: str, mss: int) -> list[int]:
    """Timeouts in ns-2, a run per seed."""
    counts = []
    for seed in SEEDS:
        words = [agent, f"{jitter_us}e-6", str(seed), "64", "262144", "4096", delay, str(mss)]
        told = subprocess.run(["ns", HERE / "incast.tcl", *words], capture_output=True, text=True, check=True).stdout
        counts.append(int(told.split()[1]))
    return counts


def here(cc: str, jitter_us: int, delay: str, mss: int) -> list[int]:
    """Timeouts in fanin, a run per seed."""
    settings = {"stack.send_jitter": f"{jitter_us}us", "topology.delay": delay, "stack.mss": str(mss)}
    runs = (fanin.run(HERE / "incast.toml", cc=cc, seed=seed, settings=settings) for seed in SEEDS)
    return [int(result.flows["timeouts"].sum()) for result in runs]


def spread(counts: list[int]) -> str:
    """The least and the greatest."""
    least, most = min(counts), max(counts)
    return f"{least}" if least == most else f"{least} to {most}"


def main() -> None:
    """Print the table."""
    print("| link, packet, noise | " + " | ".join(f"{cc}: ns-2 | fanin" for cc in AGENTS) + " |")
    print("|---" * (1 + 2 * len(AGENTS)) + "|")
    for delay, mss, jitter_us in product(("25us", "50us"), (1460, 1000), (1, 5)):
        cells = []
        for cc, agent in AGENTS.items():
            cells += [spread(there(agent, jitter_us, delay, mss)), spread(here(cc, jitter_us, delay, mss))]
        print(f"| {delay}, {mss} B, {jitter_us} us | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
