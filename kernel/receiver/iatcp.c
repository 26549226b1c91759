/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * IA-TCP as "A Delay-Based TCP for Data Center Networks" (DCVegas) describes it: all of a host's connections get the same window, such that
 * together they fill the link (equation 4). Counterpart of `iatcp` in crates/cc.
 *
 * Left out: the delay of ACKs (equation 3), since ACKs leave when the kernel sends them. Where a share is below one packet the windows
 * stay at one and the switch queues the rest. A connection counts while it had a request or data in this or the last `active_us`:
 * a kernel does not know when a response is over.
 */
#include "receiver.h"

PARAM(rate_mbps, 1000, "capacity of the host's link, Mbps");
PARAM(base_rtt_us, 0, "round trip through empty queues; 0: the least that was measured");
PARAM(mss, 1448, "payload of a full segment, bytes");
PARAM(overhead, 90, "bytes that a full segment has on the wire besides its payload");
PARAM(active_us, 10000, "how long a connection counts after its last request or data");
PARAM(rounding, 0, "of a share in packets: 0 nearest, 1 down, 2 up");
PARAM(remote_port, 0, "only connections to this port of the other host; 0: all");

struct flow {
	struct common p;
	u64 period;		/* the last period it was counted in, plus 1 */
};

struct host {
#ifdef __bpf__
	struct bpf_spin_lock lock;
#endif
	u64 period;		/* now / active_us */
	u32 count;		/* connections seen in it */
	u32 before;		/* connections seen in the one before */
	u64 least_rtt;		/* ns; 0: none yet */
	u64 counts[COUNTERS];	/* the last member: `status` finds them at the end */
};

/* Equation 4: W = C RTTmin / n packets, at least 1. */
static __always_inline void share(struct host *h, struct flow *f)
{
	u64 n = max64(max64(h->count, h->before), 1);
	u64 rtt = base_rtt_us ? (u64)base_rtt_us * 1000 : h->least_rtt;
	/* bytes in flight on an empty path; below 2^64 up to 100 Gbps and 1 s */
	u64 pipe = (u64)rate_mbps * (rtt / 8) / 1000;
	u64 part = n * (mss + overhead);
	u64 round = rounding == 0 ? part / 2 : rounding == 1 ? 0 : part - 1;

	f->p.window = max64((pipe + round) / part, 1) * mss;
}

static __always_inline void policy_use(struct host *h, struct flow *f, u64 now)
{
	u64 period = now / ((u64)active_us * 1000);

	if (period != h->period) {
		h->before = period == h->period + 1 ? h->count : 0;
		h->count = 0;
		h->period = period;
	}
	if (f->period != period + 1) {
		f->period = period + 1;
		h->count++;
	}
	share(h, f);
}

static __always_inline void sample_rtt(struct host *h, u64 rtt)
{
	if (rtt && (!h->least_rtt || rtt < h->least_rtt))
		h->least_rtt = rtt;
}

static __always_inline void policy_open(struct host *h, struct flow *f, u64 now, u64 rtt)
{
	sample_rtt(h, rtt);
	policy_use(h, f, now);
}

static __always_inline void policy_data(struct host *h, struct flow *f, u64 now, u32 wire, u32 payload, u64 sample)
{
	sample_rtt(h, sample);
	policy_use(h, f, now);
}

#include "attach.h"
