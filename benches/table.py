"""Prints every row of the table in docs/performance.md as this machine has it now: `make performance`.

Figures of instructions and memory hold on any machine; times only where nothing else runs. A row that fails says so, and the others go on.
"""

import os
import re
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FANIN = ROOT / ".venv" / "bin" / "fanin"
CAPTURE = ROOT / "data" / "captures" / "http_onoff_8to1.pcap.gz"
RACK = ROOT / "examples" / "rack.toml"
GIGABYTE = 1 << 30
CONNECTIONS = 1_000_000
PCAP_HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)


def used(command: list[str | Path]) -> tuple[float, float, float]:
    """Seconds, seconds of processor time and megabytes at the peak of a command that finds nothing stored."""
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="fanin-store-") as store, tempfile.TemporaryFile("w+") as errors:
        environment = os.environ | {"FANIN_STORE": store}
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=errors, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if status:
            errors.seek(0)
            raise RuntimeError((errors.read().strip() or f"exit code {process.returncode}").splitlines()[-1])
    return time.perf_counter() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def cost(command: list[str | Path]) -> str:
    """The same as text."""
    seconds, processor, memory = used(command)
    return f"{seconds:.2f} s, {processor:.2f} s of processor time, {memory:.0f} MB"


def bench(name: str, **environment: str) -> str:
    """What a benchmark prints, its lines joined."""
    command = ["cargo", "bench", "--quiet", "-p", "fanin-benches", "--bench", name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=os.environ | environment, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return done.stdout


def engine() -> str:
    """Packet-hops per second: Criterion's middle estimate of each scene."""
    text = bench("engine")
    found = re.findall(r"packet-hops/(.+?)\n?\s+time:.*?thrpt:\s+\[\S+ \S+ (\S+ \S+)", text, re.DOTALL)
    return "; ".join(f"{scene.strip()}: {rate}" for scene, rate in found)


def lines(text: str) -> str:
    """Lines as one."""
    return "; ".join(line.strip() for line in text.splitlines() if line.strip())


def repeated(target: Path) -> Path:
    """The shipped capture, one copy after the other in time, until there is a gigabyte."""
    import gzip

    data = gzip.decompress(CAPTURE.read_bytes())
    order = "<" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    records, at, last = [], 24, 0
    while at + 16 <= len(data):
        seconds, fraction, length, whole = struct.unpack_from(order + "IIII", data, at)
        records.append((seconds, fraction, length, whole, data[at + 16 : at + 16 + length]))
        at, last = at + 16 + length, seconds
    span = last - records[0][0] + 2
    with target.open("wb") as file:
        file.write(data[:24])
        copy = 0
        while file.tell() < GIGABYTE:
            for seconds, fraction, length, whole, packet in records:
                file.write(struct.pack(order + "IIII", seconds + copy * span, fraction, length, whole) + packet)
            copy += 1
    return target


def tiny(target: Path) -> Path:
    """As many connections of one small segment and its ACK each."""

    def packet(source: int, sport: int, to: int, dport: int, seq: int, ack: int, size: int) -> bytes:
        ip = struct.pack(">BBHHHBBHII", 0x45, 0, 40 + size, 0, 0x4000, 64, 6, 0, source, to)
        return (
            bytes(12)
            + b"\x08\x00"
            + ip
            + struct.pack(">HHIIBBHHH", sport, dport, seq, ack, 0x50, 0x10, 512, 0, 0)
            + bytes(size)
        )

    server = 0x0A000001
    with target.open("wb") as file:
        file.write(PCAP_HEADER)
        for n in range(CONNECTIONS):
            client, port = 0x0A010000 + n // 50_000, 1024 + n % 50_000
            microseconds = n * 20
            for late, data in (
                (0, packet(client, port, server, 80, 1, 1, 8)),
                (10, packet(server, 80, client, port, 1, 9, 0)),
            ):
                at = microseconds + late
                file.write(struct.pack("<IIII", at // 1_000_000, at % 1_000_000, len(data), len(data)) + data)
    return target


def main() -> int:
    """All rows."""
    with tempfile.TemporaryDirectory(prefix="fanin-table-") as folder:
        out = Path(folder)

        def compare(capture: Path, *more: str | Path) -> str:
            return cost([FANIN, "compare", capture, "--rack", RACK, "--out", out / capture.stem, *more])

        one = ("--cc", "cubic")
        rows: list[tuple[str, Callable[[], str]]] = [
            ("instructions per hop", lambda: lines(bench("instructions"))),
            ("packet-hops per second", engine),
            ("by size", lambda: lines(bench("scale"))),
            ("8192 hosts, one thread and two", lambda: lines(bench("large"))),
            ("set-up at k = 32", lambda: lines(bench("large", FANIN_BENCH_SETUP="1"))),
            ("fanin --help", lambda: cost([FANIN, "--help"])),
            ("compare, shipped capture, report", lambda: compare(CAPTURE)),
            ("compare, 1 GB, one algorithm", lambda: compare(repeated(out / "big.pcap"), *one)),
            ("trains, 1 M tiny connections", lambda: cost([FANIN, "trains", tiny(out / "tiny.pcap")])),
            ("compare, 1 M tiny connections", lambda: compare(tiny(out / "tiny.pcap"), *one)),
        ]
        wanted = sys.argv[1:]
        for name, row in rows:
            if wanted and not any(word in name for word in wanted):
                continue
            try:
                told = row()
            except (OSError, RuntimeError) as error:
                told = f"failed: {error}"
            print(f"{name}: {told}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
