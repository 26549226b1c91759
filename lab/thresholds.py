"""Every threshold of ``crates/capture``: its value, why, and the tests that fail where it is halved or doubled.

python -m lab.thresholds                 # all (an hour of processor time): results/thresholds.csv
python -m lab.thresholds bursts.rs GAIN  # those of a file, or of a name

A copy of the sources is compiled once, with each constant read from the environment: what a move costs is a run of the tests. Those few that are
lengths of arrays are moved in the copy's sources, which are compiled anew.
"""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "crates/capture/src"
DATA = ROOT / "results/thresholds.csv"
COPY = ROOT / "target/thresholds"
COLUMNS = ("file", "name", "value", "halved", "doubled")
NOTHING = "nothing"
DECLARED = re.compile(
    r"(?P<doc>(?:^///.*\n)*)^(?P<visible>(?:pub(?:\([a-z]+\))? )?)const (?P<name>[A-Z]\w+): (?P<type>u8|u16|u32|u64|usize|i64|f64) =\s*(?P<value>[^;]+);",
    re.MULTILINE,
)
USE = re.compile(r"^\s*(?:pub(?:\([a-z]+\))? )?use ([^;]+);", re.MULTILINE)
TESTS = ("tests.rs", "patterns.rs", "waited.rs", "edges.rs")
FORMATS = {
    "arrivals.rs": ("HEADERS",),
    "conn/sequence.rs": ("ORIGIN",),
    "conn.rs": ("TIMESTAMPS",),
    "decode/tcp.rs": ("WIRE_OVERHEAD",),
    "file/pcap.rs": ("FILE_HEADER",),
    "file/pcapng.rs": (
        "INTERFACE",
        "OBSOLETE_PACKET",
        "SIMPLE_PACKET",
        "INTERFACE_STATISTICS",
        "ENHANCED_PACKET",
        "IF_TSRESOL",
        "IF_TSOFFSET",
        "ISB_IFDROP",
        "ISB_OSDROP",
        "EPB_DROPCOUNT",
    ),
    "limit.rs": ("DROPPED",),
    "offload.rs": ("LONGEST",),
    "ports.rs": ("EPHEMERAL",),
    "protocol/frames.rs": ("OP_REPLY", "OP_MSG", "MORE_TO_COME", "THRIFT", "CALL", "ONEWAY"),
    "protocol/http1.rs": ("NO_BODY", "TUNNEL"),
    "protocol/http2.rs": (
        "PREFIX",
        "HEADER",
        "KIND",
        "DATA",
        "HEADERS",
        "RST_STREAM",
        "SETTINGS",
        "PUSH_PROMISE",
        "PING",
        "GOAWAY",
        "WINDOW_UPDATE",
        "CONTINUATION",
        "END_STREAM",
        "SAYS",
    ),
    "protocol/in_flight.rs": ("BY_THE_WAY",),
    "protocol/memcached.rs": ("UNTIL_MN",),
    "protocol/mod.rs": ("CLIENT", "SERVER"),
    "protocol/mysql.rs": ("PROTOCOL_41", "SSL", "SSL_REQUEST", "QUERY"),
    "protocol/postgres.rs": ("VERSION_3", "SSL", "GSS", "FLUSHED"),
    "protocol/resp.rs": ("TRANSACTION",),
    "protocol/tls.rs": ("CHANGE_CIPHER", "ALERT", "HANDSHAKE", "DATA", "CLIENT_HELLO", "ENCRYPTED_ALERT", "KEY_UPDATE"),
    "protocol/websocket.rs": ("FIN", "RESERVED", "MASK", "BINARY", "CLOSE", "PONG", "IN_TWO", "IN_EIGHT"),
    "rack.rs": ("OVERHEAD",),
    "service.rs": ("GOLDEN",),
    "workload.rs": ("WORKLOAD_VERSION", "OLDEST_VERSION"),
    "write.rs": ("PLAIN_HEADERS", "TRANSPORT", "OPTION_SPACE"),
}
"""Numbers of a format or of mathematics, which are no choice."""

MOVED = """
pub(crate) trait Moved { fn by(self, factor: f64) -> Self; }
macro_rules! moved { ($($t:ty)*) => { $(impl Moved for $t { fn by(self, factor: f64) -> Self { (self as f64 * factor) as $t } })* } }
moved!(u8 u16 u32 u64 usize i64 f64);
pub(crate) fn moved<T: Moved>(name: &str, value: T) -> T {
    match std::env::var("FANIN_MOVED") {
        Ok(which) => match which.split_once('=') {
            Some((which, factor)) if which == name => value.by(factor.parse().unwrap()),
            _ => value,
        },
        Err(_) => value,
    }
}
"""


class Threshold(NamedTuple):
    """A constant of the crate."""

    file: str
    name: str
    value: str
    why: str

    @property
    def key(self) -> str:
        """What the environment calls it."""
        return f"{self.file}:{self.name}"


def declared() -> list[Threshold]:
    """The thresholds of the sources, in the order of files and lines."""
    found = []
    for path in sorted(SOURCES.rglob("*.rs")):
        if path.name in TESTS:
            continue
        file = path.relative_to(SOURCES).as_posix()
        for each in DECLARED.finditer(path.read_text(encoding="utf-8")):
            if each["name"] not in FORMATS.get(file, ()):
                why = " ".join(line[3:].strip() for line in each["doc"].splitlines())
                found.append(Threshold(file, each["name"], " ".join(each["value"].split()), why))
    return found


def movable(folder: Path) -> set[str]:
    """Let each threshold of the copied sources be read from the environment; the keys of those that can."""
    sources = folder / "crates/capture/src"
    texts = {path.relative_to(sources).as_posix(): path.read_text(encoding="utf-8") for path in sources.rglob("*.rs")}
    done = {each.key for each in declared() if not is_fixed(each.name, texts[each.file])}
    for file, text in texts.items():
        imported = "\n".join(USE.findall(text))
        names = {
            name for key in done for at, name in [key.split(":")] if at == file or re.search(rf"\b{name}\b", imported)
        }
        changed = declarations_moved(used_through(text, names, done), file, done)
        (sources / file).write_text(changed + MOVED * (file == "lib.rs"), encoding="utf-8")
    return done


def is_fixed(name: str, text: str) -> bool:
    """A constant that must be known when the sources are compiled: the length of an array, a pattern, or part of a constant that stays one.

    >>> [is_fixed("N", text) for text in ("[u8; N]", "    N | 7 => 1,", "vec![[0; 4]; N]", "x if x >= N => 1,")]
    [True, True, False, False]
    """
    # A vector takes a length that is not known before, and what a guard compares with is no pattern.
    text = re.sub(r"(vec!\[(?:[^\[\];]|\[[^\]]*\])*); \w+\]", r"\1]", text)
    text = re.sub(r"[<>=]=? \w+ =>", "", text)
    fixed = (
        rf";\s*{name}\]|{name}\s*(?:=>|\|(?!\|))|^\s*(?:pub(?:\([a-z]+\))? )?const \w+: (?:\[|&)[^=]*=[^;]*\b{name}\b"
    )
    return re.search(fixed, text, re.MULTILINE) is not None


def used_through(text: str, names: set[str], done: set[str]) -> str:
    """A source in which uses of these constants, by name or by path, read what stands behind a `LazyLock`."""
    qualified = {(module(key), key.split(":")[1]) for key in done} | {("super", key.split(":")[1]) for key in done}

    def read(use: re.Match[str]) -> str:
        mine = (use[1].split("::")[-2], use[2]) in qualified if use[1] else use[2] in names
        return f"(*{use[0]})" if mine else use[0]

    lines, inside = [], False
    for line in text.split("\n"):
        inside = inside or re.match(r"\s*(?:pub(?:\([a-z]+\))? )?use ", line) is not None
        plain = inside or line.lstrip().startswith("//")
        lines.append(line if plain else re.sub(r"(?<![\w:])((?:\w+::)*)([A-Z][A-Z_0-9]+)\b(?!:)", read, line))
        inside = inside and ";" not in line
    return "\n".join(lines)


def declarations_moved(text: str, file: str, done: set[str]) -> str:
    """A source whose constants are made when they are first read."""

    def made(found: re.Match[str]) -> str:
        key = f"{file}:{found['name']}"
        if key not in done:
            return found[0]
        kind = f"std::sync::LazyLock<{found['type']}>"
        body = f'|| crate::moved("{key}", {found["value"]})'
        return f"{found['doc']}{found['visible']}static {found['name']}: {kind} = std::sync::LazyLock::new({body});"

    return DECLARED.sub(made, text)


def module(key: str) -> str:
    """The module of a threshold.

    >>> module("release/mod.rs:FULL"), module("conn/rtt.rs:LATEST")
    ('release', 'rtt')
    """
    path = Path(key.split(":")[0])
    return path.parent.name if path.stem == "mod" else path.stem


def compiled(folder: Path) -> list[str]:
    """The crate's test programs, built from the copy."""
    # To optimise takes two minutes once, and saves two and a half in each of 400 runs of all tests.
    optimised = "profile.dev.package.fanin-capture.opt-level=1"
    command = [
        "cargo",
        "test",
        "--config",
        optimised,
        "--package",
        "fanin-capture",
        "--lib",
        "--test",
        "it",
        "--no-run",
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return re.findall(r"Executable .*\((.+)\)", done.stderr)


def broken(programs: list[str], folder: Path, moved: str, factor: str) -> list[str]:
    """The tests that fail: those of the constant's own module where any does, else of the first program that fails."""
    own = "::".join(part for part in moved.split(".rs:")[0].split("/") if part != "mod")
    for program, part in [(programs[0], [f"{own}::"]), *((program, []) for program in programs)]:
        command = [str(folder / program), *part, "--skip", "tshark", "--test-threads", "2"]
        environment = os.environ | {"FANIN_MOVED": f"{moved}={factor}", "INSTA_UPDATE": "no", "PROPTEST_RNG_SEED": "1"}
        try:
            done = subprocess.run(
                command,
                cwd=folder / "crates/capture",
                capture_output=True,
                text=True,
                env=environment,
                timeout=300,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return ["(no end)"]
        if done.returncode:
            return sorted(re.findall(r"^test (\S+) \.\.\. FAILED", done.stdout, re.MULTILINE)) or ["(abort)"]
    return []


def rewritten(folder: Path, fixed: Threshold, factor: str) -> list[str]:
    """The tests that fail where this constant has another value in the sources."""
    path = folder / "crates/capture/src" / fixed.file
    text = path.read_text(encoding="utf-8")
    declaration = rf"(\bconst {fixed.name}: \w+ =\s*)([^;]+);"
    moved = r"\1(\2) / 2;" if factor == "0.5" else rf"\1(\2) * {factor};"
    path.write_text(re.sub(declaration, moved, text, count=1), encoding="utf-8")
    found = broken(compiled(folder), folder, fixed.key, "1")
    path.write_text(text, encoding="utf-8")
    return found


def main(named: list[str]) -> int:
    """Move all, or those named, and write down what failed."""
    shutil.rmtree(COPY / "copy", ignore_errors=True)
    folder = COPY / "copy"
    for part in ("Cargo.toml", "Cargo.lock", "crates", "benches", "data", "tests/data"):
        source = ROOT / part
        (folder / part).parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(source, folder / part) if source.is_dir() else shutil.copy2(source, folder / part)
    os.environ["CARGO_TARGET_DIR"] = str(COPY / "target")
    keys = movable(folder)
    programs = compiled(folder)
    if failed := broken(programs, folder, "", "1"):
        sys.exit(f"fails unmoved: {failed}")
    rows = {f"{row['file']}:{row['name']}": row for row in data()}
    # Those that are moved in the sources come last: their programs take the place of the others.
    for each in sorted(declared(), key=lambda each: each.key not in keys):
        if named and not {each.name, each.file, each.key} & set(named):
            continue
        row = {"file": each.file, "name": each.name, "value": each.value}
        for side, factor in (("halved", "0.5"), ("doubled", "2")):
            fixed = each.key not in keys
            found = rewritten(folder, each, factor) if fixed else broken(programs, folder, each.key, factor)
            row[side] = f"{found[0]}{f' and {len(found) - 1} more' if len(found) > 1 else ''}" if found else NOTHING
        rows[each.key] = row
        write([rows[key.key] for key in declared() if key.key in rows])
        print(f"{each.key} {each.value}: {row['halved']} | {row['doubled']}", flush=True)
    return 0


def data() -> list[dict[str, str]]:
    """What the last moves broke."""
    if not DATA.exists():
        return []
    with DATA.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write(rows: list[dict[str, str]]) -> None:
    """Write what the moves broke."""
    with DATA.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
