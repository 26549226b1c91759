/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * ICTCP (Wu, Feng, Guo, Zhang, CoNEXT 2010): the receiving host measures what its link has left and lets each connection's window grow into
 * that, by how much of its present window the connection uses. Counterpart of `ictcp` in crates/cc, in integers.
 *
 * Departure from it, since a program here cannot walk over all connections: the average window of the fairness rule is that of the
 * connections that sent in the slot's first half. With equal histories the windows are equal (crates/linux/tests/receivers.rs).
 */
#include "receiver.h"

PARAM(rate_mbps, 1000, "capacity C of the host's link, Mbps");
PARAM(mss, 1448, "payload of a full segment, bytes");
PARAM(share_pm, 900, "part of the capacity that may be given out, 1/1000");
PARAM(beta_pm, 750, "weight of the past in the measured throughput, 1/1000");
PARAM(gamma1_pm, 100, "unused part of the expected throughput up to which a window grows, 1/1000");
PARAM(gamma2_pm, 500, "unused part of it from which a window shrinks, 1/1000");
PARAM(patience, 3, "intervals in a row that must be unused before a window shrinks");
PARAM(fair_below_pm, 200, "part of the capacity left below which windows above the average are cut, 1/1000");
PARAM(min_window, 2, "first and least window of a connection, packets");
PARAM(idle_us, 10000, "silence after which what was measured of a connection says nothing");
PARAM(remote_port, 0, "only connections to this port of the other host; 0: all");

#define FINE 8			/* times that are compared with others have 1/256 ns */
#define LEAST_RTT (1000ull << FINE)	/* rates are divided by it */

struct flow {
	struct common p;
	u64 rtt;		/* smoothed round trip, 1/256 ns */
	u64 fine_rtt;		/* the same in 1/2^20 ns */
	u64 interval;		/* start, ns, of the control interval of two round trips; only the second is measured */
	u64 bytes;		/* measured in it */
	u64 measured;		/* throughput, bytes/s */
	u64 slot;		/* the last slot it was counted in */
	u64 slot_bytes;		/* bytes on the wire in it */
	u32 unused;		/* intervals in a row with most of the window unused */
	u8 slow_start;		/* receiver slow start: the window may double */
	u8 wants_more;		/* the last interval asked for more */
};

struct host {
#ifdef __bpf__
	struct bpf_spin_lock lock;
#endif
	u64 start, half;	/* the slot: two halves of length T; 1/256 ns, which wraps */
	u64 slot;		/* its number */
	u64 arrived;		/* bytes in its first half */
	u64 available;		/* bandwidth left at the last measurement */
	u64 quota;		/* what of it is not given out yet */
	u64 weighted, weight;	/* sum of bytes x round trip, and of bytes, of the slot */
	u64 windows, flows;	/* sum of windows and number of connections that sent in the slot */
	u64 average;		/* their mean at the last measurement */
	u8 measured;		/* the first half is over and was evaluated */
	u64 counts[COUNTERS];	/* the last member: `status` finds them at the end */
};

static __always_inline u64 capacity(void) { return (u64)rate_mbps * 125000; }
/* Bytes per second; of more than 2^24 bytes the last 2^FINE do not matter. */
static __always_inline u64 rate_of(u64 bytes, const struct flow *f)
{
	return bytes >> 24 ? bytes * SECOND / (f->rtt >> FINE) : ((bytes * SECOND) << FINE) / f->rtt;
}
/* So many round trips have passed in its control interval. */
static __always_inline bool passed(const struct flow *f, u64 now, u32 round_trips)
{
	return (now - f->interval) << FINE >= round_trips * f->rtt;
}

static __always_inline void begin_interval(struct flow *f, u64 now)
{
	f->interval = now;
	f->bytes = 0;
}

/* Moves the slot to now: the first half measures BW_A, the second gives it out. */
static __always_inline void advance_slot(struct host *h, const struct flow *f, u64 now)
{
	u64 fine = now << FINE, end = h->start + 2 * h->half;

	if ((s64)(fine - end) >= 0) {
		/* T = sum of w_i RTT_i */
		u64 half = h->weight ? h->weighted / h->weight : f->rtt;

		h->half = max64(half, LEAST_RTT);
		/* a slot follows the last one, unless it would have passed in silence too */
		h->start = (s64)(fine - end) < (s64)(2 * h->half) ? end : fine;
		h->arrived = h->weighted = h->weight = h->windows = h->flows = 0;
		h->measured = 0;
		h->slot++;	/* from 1 on: 0 is a connection that has not sent */
	}
	if (!h->measured && (s64)(fine - h->start) >= (s64)h->half) {
		u64 total = h->arrived >> 24 ? h->arrived * SECOND / (h->half >> FINE) : ((h->arrived * SECOND) << FINE) / h->half;
		u64 given = capacity() / 1000 * share_pm;

		/* BW_A = max(0, a C - BW_T) */
		h->available = given > total ? given - total : 0;
		h->quota = h->available;
		h->average = h->flows ? h->windows / h->flows : 0;
		h->measured = 1;
	}
}

static __always_inline void set_window(struct host *h, struct flow *f, u64 window)
{
	if (f->slot == h->slot)
		h->windows += window - f->p.window;
	f->p.window = window;
}

/* One packet less, if the floor allows; ends receiver slow start. */
static __always_inline bool shrink(struct host *h, struct flow *f)
{
	if (f->p.window < (u64)(min_window + 1) * mss)
		return false;
	set_window(h, f, f->p.window - mss);
	f->slow_start = 0;
	h->counts[COUNT_DOWN]++;
	return true;
}

/* End of a control interval; the fairness cut comes first. */
static __always_inline void evaluate(struct host *h, struct flow *f)
{
	u64 sample = rate_of(f->bytes, f), expected, unused;	/* the latter in bytes/s */
	bool scarce = h->measured && h->available < capacity() / 1000 * fair_below_pm;

	/* b_m = max(b_s, beta b_m + (1 - beta) b_s) */
	f->measured = max64(sample, (beta_pm * f->measured + (1000 - beta_pm) * sample) / 1000);
	/* b_e = max(b_m, rwnd / RTT), d = (b_e - b_m) / b_e */
	expected = max64(max64(f->measured, rate_of(f->p.window, f)), 1);
	unused = expected - f->measured;
	f->wants_more = 0;
	if (scarce && h->average && f->p.window > h->average && shrink(h, f)) {
		h->quota += rate_of(mss, f);
		f->unused = 0;
		return;
	}
	f->wants_more = unused * 1000 <= gamma1_pm * expected || unused * f->p.window <= mss * expected;
	f->unused = unused * 1000 > gamma2_pm * expected ? f->unused + 1 : 0;
	if (!f->wants_more && f->unused >= patience) {
		shrink(h, f);
		f->unused = 0;
	}
}

/* Grows a window that asked for it, as far as the quota of the slot's second half goes. */
static __always_inline void grow(struct host *h, struct flow *f, u64 now)
{
	u64 step;

	if (!f->wants_more || !h->measured)
		return;
	if (f->slow_start && h->quota < rate_of(f->p.window, f))
		f->slow_start = 0;
	step = f->slow_start ? f->p.window : mss;
	if (h->quota < rate_of(step, f))
		return;
	h->quota -= rate_of(step, f);
	set_window(h, f, f->p.window + step);
	f->wants_more = 0;
	h->counts[COUNT_UP]++;
	begin_interval(f, now);
}

static __always_inline void policy_open(struct host *h, struct flow *f, u64 now, u64 rtt)
{
	f->p.window = (u64)min_window * mss;
	f->rtt = max64(rtt << FINE, LEAST_RTT);
	f->fine_rtt = f->rtt << 12;
	f->slow_start = 1;
	begin_interval(f, now);
}

static __always_inline void policy_use(struct host *h, struct flow *f, u64 now)
{
	if (now - f->p.last < (u64)idle_us * 1000)
		return;
	f->measured = 0;
	f->unused = 0;
	f->wants_more = 0;
	begin_interval(f, now);
}

/* 1/8 of what is new, as in RFC 6298; all of it where the opening gave none. */
static __always_inline void smooth(struct host *h, struct flow *f, u64 sample)
{
	u64 rtt;

	f->fine_rtt = f->rtt > LEAST_RTT ? f->fine_rtt - f->fine_rtt / 8 + (sample << (FINE + 12)) / 8 : sample << (FINE + 12);
	rtt = max64(f->fine_rtt >> 12, LEAST_RTT);
	h->weighted += f->slot_bytes * (rtt - f->rtt);
	f->rtt = rtt;
}

static __always_inline void policy_data(struct host *h, struct flow *f, u64 now, u32 wire, u32 payload, u64 sample)
{
	policy_use(h, f, now);
	advance_slot(h, f, now);
	if (!h->measured)
		h->arrived += wire;
	if (f->slot != h->slot) {
		f->slot = h->slot;
		f->slot_bytes = 0;
		h->windows += f->p.window;
		h->flows++;
	}
	f->slot_bytes += wire;
	h->weight += wire;
	h->weighted += wire * f->rtt;
	if (sample)
		smooth(h, f, sample);
	if (passed(f, now, 2)) {
		evaluate(h, f);
		begin_interval(f, now);
	}
	grow(h, f, now);
	if (passed(f, now, 1))
		f->bytes += payload;
}

#include "attach.h"
