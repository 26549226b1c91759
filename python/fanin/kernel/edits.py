"""What is changed in Linux's own files before a virtual kernel is compiled. Each edit is marked in the source, and its pattern must be found."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from fanin.errors import EngineError

MARK = "/* fanin */"


@dataclass(frozen=True, slots=True)
class Edit:
    """A replacement of the first match in a file of the kernel's source."""

    file: str
    pattern: str
    new: str


EDITS = (
    # The clock counts nanoseconds, and a timer fires at its own: Linux has 256 ns, 500 ns, and one more.
    Edit("arch/um/include/linux/time-internal.h", r"(TIMER_MULTIPLIER\s+)\d+", r"\g<1>1"),
    Edit("arch/um/include/linux/time-internal.h", r"(TIMER_MIN_DELTA\s+)\d+", r"\g<1>1"),
    Edit("arch/um/kernel/time.c", r"(static int itimer_next_event\([^{]*\{)\s*delta \+= 1;", r"\g<1>"),
    Edit("net/Makefile", r"\Z", "obj-y += fanin/\n"),
    # What congestion control cannot ask for through tcp_congestion_ops (kernel/net/cc.c): holds, sizes of segments, times of transmission.
    Edit(
        "net/ipv4/tcp_output.c",
        r"#include <trace/events/tcp.h>\n",
        rf"\g<0>\n{MARK}\nbool fanin_may_send(struct sock *sk);\nu32 fanin_segment_size(struct sock *sk, u32 mss);\n"
        r"void fanin_data_sent(struct sock *sk);\n",
    ),
    Edit("net/ipv4/tcp_output.c", r"\ttp->lsndtime = now;\n", rf"\g<0>\tfanin_data_sent(sk); {MARK}\n"),
    Edit(
        "net/ipv4/tcp_output.c",
        r"\t\tlimit = mss_now;\n(?=\t\tif \(tso_segs > 1 && !tcp_urg_mode\(tp\)\)\n\t\t\tlimit = tcp_mss_split_point\()",
        rf"\t\tlimit = fanin_segment_size(sk, mss_now); {MARK}\n",
    ),
    Edit(
        "net/ipv4/tcp_output.c",
        r"\t\tif \(unlikely\(tcp_transmit_skb\(sk, skb, 1, gfp\)\)\)\n\t\t\tbreak;\n\nrepair:",
        rf"\t\tif (push_one != 2 && !fanin_may_send(sk)) {MARK}\n\t\t\tbreak;\n\n\g<0>",
    ),
)


def apply(tree: Path, hertz: int, series: str) -> None:
    """Make every edit.

    Raises
    ------
    fanin.EngineError
        When this is not the source that they are written for.
    """
    for edit in (Edit("arch/um/Kconfig", r"(config HZ\n\tint\n\tdefault )\d+", rf"\g<1>{hertz}"), *EDITS):
        file = tree / edit.file
        text = file.read_text() if file.is_file() else ""
        changed, count = re.subn(edit.pattern, edit.new, text, count=1)
        if not count:
            raise EngineError(
                f"{file.name} of this kernel source is not as expected; use Debian's linux-source-{series}"
            )
        file.write_text(changed)
