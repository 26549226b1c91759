"""No dependency needs a newer Rust than this workspace promises (`rust-version`); clippy's `incompatible_msrv` looks at fanin's own code."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def version(text: str) -> tuple[int, ...]:
    """`1.88` and `1.88.0` are the same."""
    numbers = tuple(int(part) for part in text.split("."))
    return numbers + (0,) * (3 - len(numbers))


def main() -> int:
    """Print each crate that asks for more; 1 if there is one."""
    promised = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["rust-version"]
    command = [
        "cargo",
        "metadata",
        "--locked",
        "--format-version",
        "1",
        "--filter-platform",
        "x86_64-unknown-linux-gnu",
    ]
    found = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)
    used = {node["id"] for node in found["resolve"]["nodes"]}
    newer = [
        f"{package['name']} {package['version']} needs Rust {package['rust_version']}, and Cargo.toml promises {promised}"
        for package in found["packages"]
        if package["id"] in used and package["rust_version"] and version(package["rust_version"]) > version(promised)
    ]
    print("\n".join(newer) or f"every dependency builds with Rust {promised}")
    return 1 if newer else 0


if __name__ == "__main__":
    sys.exit(main())
