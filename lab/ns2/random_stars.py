"""Random stars in ns-2 and here: ``python random_stars.py 60`` (so many) or ``20-40`` (these); needs `ns` (Debian: ns2)."""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

import fanin

HERE = Path(__file__).parent
AGENTS = {"reno": "Reno", "newreno": "Newreno", "sack": "Sack1"}
SEEDS = range(1, 6)
WITHIN = {"goodput": 0.03, "queue": 0.15, "drops": 0.25, "timeouts": 0.25, "p50": 0.15, "longest": 0.25}
"""Part by which two simulators may differ, where their seeds do not overlap."""

SLACK = {"drops": 2.0, "timeouts": 2.0, "queue": 0.5}
"""And so many beside it."""

Numbers = dict[str, float]


@dataclass(frozen=True, slots=True)
class Case:
    """One star: N senders that start one after another, each with so many packets or without end."""

    number: int
    cc: str
    senders: int
    mbps: int
    slow_mbps: int
    delay_us: int
    unequal: bool
    buffer: int
    mss: int
    window: int
    min_rto_ms: int
    delayed_acks: bool
    noise_us: int
    stagger_us: int
    packets: int
    duration_s: float

    @property
    def delays_us(self) -> list[int]:
        """Of the senders' links, one way."""
        rng = random.Random(self.number)
        return [
            round(self.delay_us * rng.uniform(1, 3)) if self.unequal else self.delay_us for _ in range(self.senders)
        ]

    def there(self, seed: int) -> Numbers:
        """In ns-2."""
        keys = {
            "agent": AGENTS[self.cc], "n": self.senders, "rate": f"{self.mbps}e6", "slow": f"{self.slow_mbps}e6",
            "delay": f"{self.delay_us}e-6", "delays": " ".join(f"{us}e-6" for us in self.delays_us), "buffer": self.buffer,
            "packet": self.mss, "iw": self.window, "minrto": self.min_rto_ms / 1e3,
            "delack": int(self.delayed_acks), "overhead": f"{self.noise_us}e-6", "stagger": f"{self.stagger_us}e-6",
            "packets": self.packets, "duration": self.duration_s, "seed": seed,
        }  # fmt: skip
        words = [word for key, value in keys.items() for word in (key, str(value))]
        told = subprocess.run(["ns", HERE / "star.tcl", *words], capture_output=True, text=True, check=True).stdout
        plain, _, took = told.partition(" took ")
        words = plain.split()
        found = {key: float(value) for key, value in zip(words[::2], words[1::2], strict=True)}
        data = found["acked"] - self.senders  # its SYN is a packet, too
        return self.numbers(data * self.mss, found, self.arrived(took.strip().strip("{}").split()))

    def arrived(self, took: list[str]) -> list[float]:
        """Completion times, in ms: ns-2 says when the last ACK is back, whose way is taken off."""
        return [
            1e3 * float(seconds) - (self.delays_us[int(flow)] + self.delay_us) / 1e3
            for flow, seconds in zip(took[::2], took[1::2], strict=True)
        ]

    def here(self, seed: int) -> Numbers:
        """In fanin."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "star.toml"
            file.write_text(self.scenario)
            result = fanin.run(file, cc=self.cc, seed=seed)
        port = result.ports.filter(port="switch->client")
        found = {
            "drops": float(port["drops"].sum()),
            "queue": float(port["mean_queue_packets"].sum()),
            "timeouts": float(result.flows["timeouts"].sum()),
        }
        took = [float(ms) for ms in result.messages["completion_ms"].drop_nulls()]
        return self.numbers(float(result.flows["bytes_acked"].sum()), found, took)

    def numbers(self, data: float, found: Numbers, took: list[float]) -> Numbers:
        """What is compared: of flows without end their rate and the queue, of others their times."""
        kept = {"drops": found["drops"], "timeouts": found["timeouts"]}
        if self.packets < 0:
            return {"goodput": data * 8e-6 / self.duration_s, "queue": found["queue"], **kept}
        return {"p50": median(took) if took else 0.0, "longest": max(took, default=0.0), "finished": len(took), **kept}

    @property
    def scenario(self) -> str:
        """The same star for fanin."""
        size = f'bytes = "{self.packets * self.mss}B"\n' if self.packets > 0 else ""
        names = [f"s{n + 1}" for n in range(self.senders)]
        hosts = ", ".join(f'"{name}"' for name in names)
        links = "".join(
            f'[[topology.link]]\nbetween = ["{name}", "switch"]\ndelay = "{us}us"\n'
            for name, us in zip(names, self.delays_us, strict=True)
        )
        slow = f'[[topology.link]]\nbetween = ["client", "switch"]\nrate = "{self.slow_mbps}Mbps"\n'
        return (
            f'[topology]\nkind = "graph"\nhosts = [{hosts}, "client"]\nswitches = ["switch"]\nrate = "{self.mbps}Mbps"\ndelay = "{self.delay_us}us"\n'
            f'buffer = "{self.buffer}p"\n{links}{slow}[stack]\nprofile = "ns2"\nmss = {self.mss}\ninitial_window = {self.window}\n'
            f'min_rto = "{self.min_rto_ms}ms"\ndelack_segments = {2 if self.delayed_acks else 1}\nsend_jitter = "{self.noise_us}us"\n'
            f'[[workload]]\nkind = "long"\nfrom = [{hosts}]\nto = "client"\nstagger = "{self.stagger_us}us"\n{size}[run]\nduration = "{self.duration_s}s"\n'
        )


def case(number: int) -> Case:
    """The same for the same number."""
    rng = random.Random(number)
    slow = rng.choice((10, 100, 1000))
    endless = rng.random() < 0.5
    return Case(
        number=number,
        cc=rng.choice(list(AGENTS)),
        senders=rng.choice((1, 2, 4, 8, 16, 30)),
        mbps=slow * rng.choice((2, 2, 10)),
        slow_mbps=slow,
        delay_us=rng.choice((10, 25, 100, 1000, 5000)),
        unequal=rng.random() < 0.5,
        buffer=rng.choice((10, 30, 64, 100, 250)),
        mss=rng.choice((536, 1000, 1460)),
        window=rng.choice((1, 2, 4, 10)),
        min_rto_ms=rng.choice((10, 200, 1000)),
        delayed_acks=rng.random() < 0.3,
        noise_us={10: 50, 100: 5, 1000: 1}[slow],
        stagger_us=rng.choice((0, 7, 113)) if not endless else rng.choice((137, 7300)),
        packets=-1 if endless else rng.choice((10, 40, 150)),
        duration_s={10: 40.0, 100: 10.0, 1000: 2.0}[slow] if endless else 60.0,
    )


def apart(name: str, there: list[float], here: list[float]) -> bool:
    """Beyond the bound, and beyond what the seeds of either differ by."""
    a, b = fmean(there), fmean(here)
    allowed = WITHIN.get(name, 0.0) * max(a, b) + SLACK.get(name, 0.0)
    return abs(a - b) > allowed and not (min(there) <= max(here) and min(here) <= max(there))


def main(numbers: range) -> None:
    """A line each, and a summary."""
    agree = 0
    for number in numbers:
        made = case(number)
        with ThreadPoolExecutor(2) as pool:
            there = list(pool.map(made.there, SEEDS))
        here = [made.here(seed) for seed in SEEDS]
        far = [name for name in there[0] if apart(name, [run[name] for run in there], [run[name] for run in here])]
        agree += not far
        cells = ", ".join(
            f"{name} {fmean(run[name] for run in there):.4g}/{fmean(run[name] for run in here):.4g}"
            for name in there[0]
        )
        print(f"{number:4} {'agrees' if not far else 'APART in ' + ' and '.join(far)}: {cells} | {made}", flush=True)
    print(f"{agree} of {len(numbers)} agree")


if __name__ == "__main__":
    first, dash, end = (sys.argv[1] if len(sys.argv) > 1 else "60").partition("-")
    main(range(int(first), int(end)) if dash else range(int(first)))
