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


RECEIVER = (
    # What a receiving host's policy needs of a socket, and what TCP asks and tells it (kernel/net/receiver.c).
    Edit(
        "include/linux/tcp.h",
        r"\tstruct saved_syn \*saved_syn;\n\};",
        rf"\tstruct saved_syn *saved_syn;\n\tstruct {{\n\t\tu32 end, before, payload;\n\t\tbool duplicate;\n\t}} fanin; {MARK}\n}};",
    ),
    Edit(
        "include/net/tcp.h",
        r"#endif\s*/\* _TCP_H \*/",
        rf"{MARK}\nu32 fanin_first_window(const struct sock *sk, u32 window);\nu32 fanin_most_window(struct sock *sk);\n"
        r"void fanin_segment(struct sock *sk, const struct sk_buff *skb);\nvoid fanin_segment_done(struct sock *sk);\n"
        r"int fanin_setsockopt(struct sock *sk, int name, sockptr_t value, unsigned int length);\n\n\g<0>",
    ),
    # The window of a SYN or SYN-ACK, which is also how Linux's own receive window begins.
    Edit(
        "net/ipv4/tcp_output.c",
        r"\t\*rcv_wscale = 0;\n(?=\tif \(wscale_ok\) \{)",
        rf"\t*rcv_wnd = fanin_first_window(sk, *rcv_wnd); {MARK}\n\g<0>",
    ),
    # Every other window.
    Edit(
        "net/ipv4/tcp_output.c",
        r"\nu32 __tcp_select_window\(struct sock \*sk\)\n",
        rf"\nstatic u32 fanin_select_window(struct sock *sk); {MARK}\n\n"
        r"u32 __tcp_select_window(struct sock *sk)\n{\n\tu32 most = fanin_most_window(sk);\n\n"
        rf"\treturn min(fanin_select_window(sk), most);\n}}\n\nstatic u32 fanin_select_window(struct sock *sk) {MARK}\n",
    ),
    # Data arrive: on the fast path, on the slow one, and before the connection is established. Then TCP decides about an ACK.
    Edit(
        "net/ipv4/tcp_input.c",
        r"\t\t\ttcp_cleanup_skb\(skb\);\n\t\t\t__skb_pull\(skb, tcp_header_len\);\n",
        rf"\t\t\tfanin_segment(sk, skb); {MARK}\n\g<0>",
    ),
    Edit(
        "net/ipv4/tcp_input.c",
        r"\t\t\ttcp_event_data_recv\(sk, skb\);\n(?=\n\t\t\tif \(TCP_SKB_CB\(skb\)->ack_seq)",
        rf"\g<0>\t\t\tfanin_segment_done(sk); {MARK}\n",
    ),
    Edit(
        "net/ipv4/tcp_input.c",
        r"\ttcp_data_queue\(sk, skb\);\n(?=\n\ttcp_data_snd_check)",
        rf"\tfanin_segment(sk, skb); {MARK}\n\g<0>\tfanin_segment_done(sk); {MARK}\n",
    ),
    Edit(
        "net/ipv4/tcp_input.c",
        r"\t\ttcp_data_queue\(sk, skb\);\n(?=\t\tqueued = 1;)",
        rf"\t\tfanin_segment(sk, skb); {MARK}\n\g<0>\t\tfanin_segment_done(sk); {MARK}\n",
    ),
    # Options of fanin's own, by which an application says what it expects and what it sends.
    Edit(
        "net/ipv4/tcp.c",
        r"\tint err = 0;\n\n(?=\t/\* These are data/string values, all the others are ints \*/\n\tswitch \(optname\) \{\n\tcase TCP_CONGESTION)",
        rf"\g<0>\tif (optname >> 8 == 0x46414e) {MARK}\n\t\treturn fanin_setsockopt(sk, optname, optval, optlen);\n\n",
    ),
)
"""For algorithms that act at the receiver, and for those that need deadlines."""

EDITS = (
    *RECEIVER,
    # The clock counts nanoseconds, and a timer fires at its own: Linux has 256 ns, 500 ns, and one more.
    Edit("arch/um/include/linux/time-internal.h", r"(TIMER_MULTIPLIER\s+)\d+", r"\g<1>1"),
    Edit("arch/um/include/linux/time-internal.h", r"(TIMER_MIN_DELTA\s+)\d+", r"\g<1>1"),
    Edit("arch/um/kernel/time.c", r"(static int itimer_next_event\([^{]*\{)\s*delta \+= 1;", r"\g<1>"),
    Edit("net/Makefile", r"\Z", "obj-y += fanin/\n"),
    # The registers of a process: PTRACE_SETREGSET takes all of them or none (EFAULT). Linux keeps 2,696 bytes, which is what a processor has with AVX-512;
    # one with AMX has 11,008.
    Edit("arch/x86/um/user-offsets.c", r"(DEFINE_LONGS\(HOST_FP_SIZE, )2696\)", r"\g<1>12288)"),
    # Merged ACKs leave when they are due. Linux lets a timer with slack expire with any other of its processor: one processor runs all hosts here,
    # so that every packet another host paced made these ACKs leave early.
    Edit(
        "net/ipv4/tcp_input.c",
        r"\thrtimer_start_range_ns\(&tp->compressed_ack_timer, ns_to_ktime\(delay\),\n"
        r"\s+(READ_ONCE\([^;]*tcp_comp_sack_slack_ns\)),\n\s+HRTIMER_MODE_REL_PINNED_SOFT\);\n",
        rf"\thrtimer_start(&tp->compressed_ack_timer, ns_to_ktime(delay + \g<1>), {MARK}\n"
        r"\t\t      HRTIMER_MODE_REL_PINNED_SOFT);\n",
    ),
    # What congestion control cannot ask for through tcp_congestion_ops (kernel/net/cc.c): holds, sizes of segments, times of transmission.
    Edit(
        "net/ipv4/tcp_output.c",
        r"#include <trace/events/tcp.h>\n",
        rf"\g<0>\n{MARK}\nbool fanin_may_send(struct sock *sk);\nbool fanin_draws_sizes(const struct sock *sk);\n"
        r"u32 fanin_segment_size(struct sock *sk, u32 mss);\nvoid fanin_data_sent(struct sock *sk);\n",
    ),
    Edit("net/ipv4/tcp_output.c", r"\ttp->lsndtime = now;\n", rf"\g<0>\tfanin_data_sent(sk); {MARK}\n"),
    # A size is drawn of what waits, not of the rest that the last one left of a buffer.
    Edit(
        "net/ipv4/tcp_output.c",
        r"\t\tif \(missing_bytes > 0\)\n\t\t\ttcp_grow_skb\(sk, skb, missing_bytes\);\n",
        rf"\g<0>\t\tif (fanin_draws_sizes(sk)) {MARK}\n"
        r"\t\t\tfor (u32 had = 0; had < skb->len && skb->len < mss_now;) {\n"
        r"\t\t\t\thad = skb->len;\n\t\t\t\ttcp_grow_skb(sk, skb, mss_now - had);\n\t\t\t}\n",
    ),
    Edit(
        "net/ipv4/tcp_output.c",
        r"\t\tlimit = mss_now;\n(?=\t\tif \(tso_segs > 1 && !tcp_urg_mode\(tp\)\)\n\t\t\tlimit = tcp_mss_split_point\()",
        rf"\t\tlimit = fanin_segment_size(sk, mss_now); {MARK}\n",
    ),
    # A drawn size is a full segment for Nagle's rule, or the end of a message would wait for the ACK of one that was drawn short.
    Edit(
        "net/ipv4/tcp_output.c",
        r"\t\tunsigned int limit;\n(?=\t\tint missing_bytes;)",
        rf"\t\tunsigned int limit = mss_now; {MARK}\n",
    ),
    Edit(
        "net/ipv4/tcp_output.c",
        r"\t\ttcp_minshall_update\(tp, mss_now, skb\);\n",
        rf"\t\ttcp_minshall_update(tp, fanin_draws_sizes(sk) ? limit : mss_now, skb); {MARK}\n",
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
