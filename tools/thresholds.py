"""Changes each threshold of the inference of who waits for what and of a capture's fitness, and runs their tests: one of them at least must fail.

python tools/thresholds.py            # minutes: every change is compiled; exits with 1 when a change breaks no test
python tools/thresholds.py SEEN GAIN  # those of these constants
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
RELEASE = "crates/capture/src/release"
CHANGES = (
    ("mod.rs", "LEAST_ROUNDS", "2"),
    ("mod.rs", "LEAST_ROUNDS", "200"),
    ("mod.rs", "FULL", "0.1"),
    ("mod.rs", "FULL_SHARE", "1.1"),
    ("mod.rs", "NEARLY_ALL", "1.1"),
    ("mod.rs", "ON_A_TICK", "0.0"),
    ("mod.rs", "ON_A_TICK", "9.0"),
    ("mod.rs", "SEEN", "0"),
    ("mod.rs", "SEEN", "50_000_000"),
    ("bursts.rs", "TOGETHER", "5_000"),
    ("bursts.rs", "TOGETHER", "500_000_000"),
    ("bursts.rs", "AT_ONCE", "0"),
    ("bursts.rs", "COMPANY", "0.0"),
    ("bursts.rs", "COMPANY", "1.1"),
    ("bursts.rs", "NEIGHBOURS", "0"),
    ("candidates.rs", "GAIN", "0.0"),
    ("candidates.rs", "GAIN", "9.0"),
    ("candidates.rs", "MARGIN", "9.0"),
    ("candidates.rs", "COVERAGE", "0.0"),
    ("candidates.rs", "COVERAGE", "1.1"),
    ("candidates.rs", "OTHERS", "0"),
    ("steady.rs", "RESOLUTION", "1e12"),
    ("../arrivals.rs", "FASTER", "1.0"),
    ("../arrivals.rs", "FASTER", "9.0"),
    ("../arrivals.rs", "FEWEST_PACED", "4"),
    ("../arrivals.rs", "FEWEST_PACED", "40"),
    ("../inflight.rs", "SHOWN", "2"),
    ("../inflight.rs", "SHOWN", "200"),
    ("../inflight.rs", "SHOWN_BY_WRITES", "1"),
    ("../inflight.rs", "SHOWN_BY_WRITES", "100"),
    ("../inflight.rs", "ODD", "0"),
    ("../inflight.rs", "ODD", "1_000"),
    ("../conn/writes.rs", "LONG", "2"),
    ("../conn/writes.rs", "LONG", "200"),
    ("../conn/writes.rs", "TOGETHER", "0"),
    ("../conn/writes.rs", "TOGETHER", "50_000_000"),
    ("../conn/writes.rs", "RARE", "0"),
    ("../conn/writes.rs", "RARE", "1_000"),
    ("../conn/writes.rs", "MOST", "8"),
    ("../conn/writes.rs", "MOST", "1_000_000"),
    ("../conn/writes.rs", "UNANSWERED", "4"),
    ("../conn/writes.rs", "UNANSWERED", "100_000"),
    ("../conn/writes.rs", "DEFAULT_MSS", "1"),
    ("../conn/writes.rs", "DEFAULT_MSS", "5_000"),
    ("../fitness.rs", "MISSING_SOME", "0.0025"),
    ("../fitness.rs", "MISSING_SOME", "0.0035"),
    ("../fitness.rs", "MISSING_MUCH", "0.2"),
    ("../fitness.rs", "MISSING_MUCH", "0.3"),
    ("../fitness.rs", "FEWEST_PACKETS", "30"),
    ("../fitness.rs", "FEWEST_PACKETS", "50"),
    ("../fitness.rs", "COARSE", "40_000"),
    ("../fitness.rs", "COARSE", "60_000"),
    ("../fitness.rs", "VERY_COARSE", "900_000"),
    ("../fitness.rs", "VERY_COARSE", "1_100_000"),
    ("../fitness.rs", "CLOCK_OFF", "0.008"),
    ("../fitness.rs", "CLOCK_OFF", "0.012"),
    ("../fitness.rs", "LONG", "4_000_000_000"),
    ("../fitness.rs", "LONG", "6_000_000_000"),
    ("../fitness.rs", "NEAR", "0.1"),
    ("../fitness.rs", "AGREEING", "3"),
    ("../fitness.rs", "AGREEING", "5"),
    ("../fitness.rs", "ACKS_MISSING", "0.4"),
    ("../fitness.rs", "ACKS_MISSING", "0.5"),
    ("../fitness.rs", "DATA_PER_ACK", "150"),
    ("../fitness.rs", "DATA_PER_ACK", "250"),
    ("../fitness.rs", "FEWEST_ACKS", "50"),
    ("../fitness.rs", "ONE_SIDED", "0.08"),
    ("../fitness.rs", "ONE_SIDED", "0.12"),
    ("../fitness.rs", "SPOILT", "0.008"),
    ("../fitness.rs", "SPOILT", "0.012"),
    ("../fitness.rs", "TRANSLATED", "0.08"),
    ("../fitness.rs", "TRANSLATED", "0.12"),
    ("../copies.rs", "COPY_WINDOW_STAMPED", "900_000_000"),
    ("../copies.rs", "COPY_WINDOW_STAMPED", "1_100_000_000"),
    ("../copies.rs", "COPY_WINDOW", "900_000"),
    ("../copies.rs", "COPY_WINDOW", "1_100_000"),
    ("../copies.rs", "COPY_WINDOW_UNNUMBERED", "9_000"),
    ("../copies.rs", "COPY_WINDOW_UNNUMBERED", "11_000"),
    ("../copies.rs", "STAMP_MOVED", "11_000_000"),
    ("../copies.rs", "STAMP_MOVED", "13_000_000"),
    ("../copies.rs", "FEWEST_TWINS", "16"),
    ("../copies.rs", "FEWEST_TWINS", "48"),
    ("../copies.rs", "TWINS", "0.2"),
    ("../copies.rs", "TWINS", "0.28"),
    ("../copies.rs", "MOST_PIECES", "2"),
    ("../rack.rs", "TRAIN", "4"),
    ("../rack.rs", "TRAIN", "16"),
    ("../rack.rs", "BURST", "0"),
    ("../rack.rs", "FULL", "1_500"),
    ("../rack.rs", "PAUSE", "20_000"),
    ("../rack.rs", "PAUSE", "200_000_000"),
)
"""File, constant, another value."""


def main(named: list[str]) -> int:
    """Try all, or those of the constants that are named; the number of those that no test saw, at most 1."""
    survived = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for part in ("Cargo.toml", "Cargo.lock", "crates", "benches", "data"):
            source = ROOT / part
            shutil.copytree(source, copy / part) if source.is_dir() else shutil.copy(source, copy / part)
        for file, name, value in (change for change in CHANGES if not named or change[1] in named):
            path = copy / RELEASE / file
            text = path.read_text()
            changed, count = re.subn(rf"(const {name}: \w+ = )[^;]+;", rf"\g<1>{value};", text)
            if count != 1:
                print(f"{file}: no constant {name}", flush=True)
                return 1
            path.write_text(changed)
            broken = tests(copy)
            path.write_text(text)
            survived += not broken
            print(f"{name} = {value}: {'breaks ' + ', '.join(broken) if broken else 'BREAKS NOTHING'}", flush=True)
    return min(survived, 1)


def tests(folder: Path) -> list[str]:
    """Names of the inference's tests that fail."""
    command = [
        "cargo",
        "test",
        "--package",
        "fanin-capture",
        "--lib",
        "--test",
        "it",
        "--no-fail-fast",
        "--target-dir",
        str(ROOT / "target/thresholds"),
        "--",
        "release",
        "arrivals",
        "inflight",
        "writes",
        "fitness::",
        "copies::",
        "rack::",
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    failed = re.findall(r"^test (\S+) \.\.\. FAILED", done.stdout, re.MULTILINE)
    if done.returncode and not failed:
        sys.exit(done.stderr)
    return [name.rsplit("::", 1)[-1] for name in failed]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
