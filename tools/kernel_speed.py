"""Time that the virtual kernel takes per data packet: `python tools/kernel_speed.py` (needs `fanin kernel build`).

Processor time is that of the kernel's processes; it depends less on what else the machine does than wall time.
"""

from __future__ import annotations

import os
import resource
import time

import fanin

SCENARIO = """
[topology]
senders = {senders}
rate = "{rate}"
delay = "25us"
buffer = "100p"
mark = "{mark}p"
[stack]
profile = "linux"
[[workload]]
kind = "long"
jitter = "1ms"
[run]
duration = "{duration}"
"""

CASES = (
    ("dctcp", 2, "1Gbps", 20, "1s"),
    ("dctcp", 20, "1Gbps", 20, "1s"),
    ("dctcp", 40, "1Gbps", 20, "1s"),
    ("dctcp", 20, "10Gbps", 65, "100ms"),
    ("trim", 20, "1Gbps", 20, "1s"),
)


def processor_s() -> float:
    """Processor time of processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured(cc: str, senders: int, rate: str, mark: int, duration: str) -> tuple[int, float, float]:
    """Data packets, processor time and wall time of a run."""
    text = SCENARIO.format(senders=senders, rate=rate, mark=mark, duration=duration)
    began, used = time.monotonic(), processor_s()
    run = fanin.run("speed.toml", text=text, cc=cc, engine="kernel")
    packets = run.ports.filter(port="switch->client").row(0, named=True)["packets"]
    return packets, processor_s() - used, time.monotonic() - began


if __name__ == "__main__":
    _, boot, wall = measured("dctcp", 40, "1Gbps", 20, "2ms")
    print(f"start, 41 hosts, power-off: {boot:.2f} s of processor time, {wall:.2f} s")
    for case in CASES:
        _, start, _ = measured(*case[:4], "2ms")
        packets, used, wall = measured(*case)
        each = (used - start) / packets * 1e6
        print(
            f"{case[0]}, N = {case[1]}, {case[2]}: {packets} data packets, {each:.1f} us of processor time each; {wall:.1f} s"
        )
    print(f"load average {os.getloadavg()[0]:.0f} on {os.cpu_count()} processors")
