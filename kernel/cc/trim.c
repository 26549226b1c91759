/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * TCP-TRIM ("Tuning the Aggressive TCP Behavior for Highly Concurrent HTTP Connections in Intra-datacenter", section III). Twin of `trim`
 * with trim_async = false: no callback can postpone a transmission, so the random waits AD and AS are left out.
 *
 * min_tso_segs runs before every transmission attempt and is the hook of Algorithm 1: CA_EVENT_TX_START comes after the burst is chosen.
 * The kernel sends both probes in one attempt; the window is 1 once the first is back, so that a third does not leave.
 * Times are nanoseconds, smoothed ones in 1/256 ns; windows 1/2^20 packet: windows are those of `trim` but for verdicts on an edge (docs/reference/linux.md).
 */
#include "fixed.h"

CC_PARAM(rate_pps, 0, "C: the bottleneck's rate in packets/s; 0: unknown, K is then twice the least round trip");
CC_PARAM(buffer_packets, 0, "B: the bottleneck's buffer in packets, for the upper end of K's interval; 0: unknown");
CC_PARAM(base_rtt_us, 0, "D: round trip through empty queues in us; 0: the smallest sample");
CC_PARAM(k_us, 0, "threshold K in us; 0: from C and D (equations 22 to 26)");

#define MIN_CWND 2u		/* section III-C */

struct trim {
	struct cc_frac frac;
	u64 smooth;		/* smoothed round trip, 1/256 ns; 0 before the first sample */
	u64 min_ns;		/* least round trip */
	u64 k_ns;		/* threshold K; 0: none yet */
	u64 last_call;		/* time of the last transmission attempt */
	u64 last_tx;		/* time of the last transmission of data, or when a verdict let the train go on */
	u64 saved;		/* window at the start of the probed train, 1/2^20 packet */
	u64 deadline;		/* what a probe may take: smooth when the train started */
	u64 probe_sum;		/* round trips of the probes that are back, ns */
	u32 segs;		/* data_segs_out at the last attempt */
	u32 probe;		/* first byte of the first probe */
	u32 una;
	u32 cut_mark;		/* snd_nxt at the last delay cut */
	u32 before;		/* cwnd before the last reduction */
	u8 probing;		/* 1: probes are out; */
	u8 acked;		/* so many of them are back */
	u8 has_cut;
	u8 hold;		/* this ACK's round trip is not below K, or it settled probes: no growth */
};

/* K for the present least round trip. */
static __always_inline void update_k(struct trim *t)
{
	u64 twice_cd, root, lower, upper;

	if (k_us) {
		t->k_ns = (u64)k_us * 1000;
		return;
	}
	if (!rate_pps) {
		/* the limit of equation 22 for a fast path: 2 D */
		t->k_ns = 2 * t->min_ns;
		return;
	}
	/* 2 C D in packets, 1/2^32: in two parts, so that nothing overflows below 10^9 packets/s x ns */
	twice_cd = 2 * (u64)rate_pps * t->min_ns;
	twice_cd = (twice_cd / 1000000000 << 32) + (twice_cd % 1000000000 << 32) / 1000000000;
	/* equation 22: K >= (sqrt(2 C D) - 1)^2 / C, and not below D; the root is in 1/2^16 */
	root = cc_sqrt(twice_cd);
	root = root > 1 << 16 ? root - (1 << 16) : 0;
	/* (root^2 / 2^32) 10^9 / C, with 10^9 = 2^9 x 1953125 */
	lower = (root * root >> 14) * 1953125 / ((u64)rate_pps << 9);
	lower = max_t(u64, lower, t->min_ns);
	/* equation 25: K <= (B + C D) / (2 C); twice_cd is 2 C D in 1/2^32 */
	if (buffer_packets) {
		upper = ((u64)buffer_packets * 1000000000 / rate_pps + t->min_ns) / 2;
		lower = min_t(u64, lower, upper);
	}
	t->k_ns = lower;
}

CC(void, trim_init, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct trim *t = inet_csk_ca(sk);

	t->frac.whole = t->frac.frac = 0;
	t->smooth = t->k_ns = t->last_call = t->last_tx = t->saved = t->deadline = t->probe_sum = 0;
	t->min_ns = (u64)base_rtt_us * 1000;
	t->segs = tp->data_segs_out;
	t->probe = t->una = tp->snd_una;
	t->cut_mark = t->before = 0;
	t->probing = t->acked = t->has_cut = t->hold = 0;
	if (t->min_ns)
		update_k(t);
	cc_count(COUNT_SOCKETS);
}

/* Algorithm 2 lines 2 to 6. */
static __always_inline void take_sample(struct trim *t, u64 rtt_ns)
{
	u64 rtt = rtt_ns << 8;

	/* smooth = 3/4 smooth + 1/4 rtt */
	t->smooth = t->smooth ? t->smooth - t->smooth / 4 + rtt / 4 : rtt;
	if (!t->min_ns || rtt_ns < t->min_ns) {
		t->min_ns = rtt_ns;
		update_k(t);
	}
}

/* Sets the window, at least 2, and ssthresh not above it. */
static __always_inline void set_cwnd(struct tcp_sock *tp, struct trim *t, u64 cwnd)
{
	cc_write(tp, &t->frac, max_t(u64, cwnd, (u64)MIN_CWND << CC_Q));
	tp->snd_ssthresh = min_t(u32, tp->snd_ssthresh, tp->snd_cwnd);
}

/* Algorithm 2 lines 8 to 14. */
static __always_inline void resolve(struct tcp_sock *tp, struct trim *t, bool on_time)
{
	u64 probe_rtt, late, cwnd = 0;

	if (on_time) {
		/* saved (1 - (probe_rtt - min_rtt) / min_rtt) */
		probe_rtt = t->probe_sum / max_t(u32, t->acked, 1);
		late = probe_rtt > t->min_ns ? probe_rtt - t->min_ns : 0;
		if (late < t->min_ns)
			cwnd = t->saved - t->saved * (late >> 4) / max_t(u64, t->min_ns >> 4, 1);
	}
	t->probing = 0;
	t->last_tx = cc_now_ns();
	set_cwnd(tp, t, cwnd);
	cc_count(on_time ? COUNT_OWN1 : COUNT_OWN2);
}

/* What this ACK says about the probes: 0 nothing yet, 1 on time, 2 late. The deadline is the smoothed round trip at its start. */
static __always_inline u32 verdict(struct tcp_sock *tp, struct trim *t, s32 rtt_us)
{
	u32 mss = max_t(u32, tp->mss_cache, 1);
	u32 sent = after(tp->snd_nxt, t->probe) ? (tp->snd_nxt - t->probe > mss ? 2 : 1) : 0;
	u32 back = after(tp->snd_una, t->probe) ? (tp->snd_una - t->probe > mss ? 2 : 1) : 0;
	u64 rtt_ns;

	if (back <= t->acked)
		return 0;
	if (rtt_us < 0)
		return 2;
	rtt_ns = (u64)rtt_us * 1000;
	t->probe_sum += (back - t->acked) * rtt_ns;
	t->acked = back;
	if (rtt_ns << 8 > t->deadline)
		return 2;
	return back >= sent ? 1 : 0;
}

CC(void, trim_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct trim *t = inet_csk_ca(sk);
	s32 rtt = sample->rtt_us;
	u64 rtt_ns = (u64)max_t(s32, rtt, 1) * 1000, cwnd;
	u32 said = 0;

	cc_check_skipped(sk);
	cc_count(COUNT_ACKS);
	t->hold = t->probing;
	if (tp->snd_una == t->una)
		return;
	t->una = tp->snd_una;
	if (t->probing)
		said = verdict(tp, t, rtt);
	if (rtt >= 0)
		take_sample(t, rtt_ns);
	if (t->probing) {
		if (said)
			resolve(tp, t, said == 1);
		else if (t->acked)
			/* One probe is back and one is out: nothing else may leave. */
			cc_write(tp, &t->frac, CC_ONE);
		return;
	}
	/* Algorithm 2 lines 16 to 21: once per window, cwnd (1 - (rtt - K) / (2 rtt)). */
	if (rtt < 0 || !t->k_ns || rtt_ns < t->k_ns)
		return;
	t->hold = 1;
	if (cc_state(sk) == TCP_CA_Recovery || (t->has_cut && !after(tp->snd_una, t->cut_mark)))
		return;
	cwnd = cc_cwnd(tp, &t->frac);
	set_cwnd(tp, t, cwnd - cwnd * ((rtt_ns - t->k_ns) >> 4) / (rtt_ns >> 3));
	t->cut_mark = tp->snd_nxt;
	t->has_cut = 1;
}

CC(void, trim_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct trim *t = inet_csk_ca(sk);

	if (!t->hold && cc_cwnd_limited(sk))
		cc_reno_grow(sk, &t->frac, acked);
}

/* Algorithm 1: before the first transmission after a gap longer than the smoothed round trip, park the window and send two probes. */
CC(u32, trim_before_send, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct trim *t = inet_csk_ca(sk);
	u64 now = cc_now_ns();
	u8 state = cc_state(sk);

	if (tp->data_segs_out != t->segs) {
		/* What the last attempt sent, it sent at once. */
		t->segs = tp->data_segs_out;
		t->last_tx = max_t(u64, t->last_tx, t->last_call);
	}
	t->last_call = now;
	if (!t->probing && t->smooth && t->last_tx && now > t->last_tx && (now - t->last_tx) << 8 > t->smooth &&
	    state != TCP_CA_Recovery && state != TCP_CA_Loss && before(tp->snd_nxt, tp->write_seq)) {
		t->probing = 1;
		t->acked = 0;
		t->probe_sum = 0;
		t->probe = tp->snd_nxt;
		t->saved = cc_cwnd(tp, &t->frac);
		t->deadline = t->smooth;
		cc_write(tp, &t->frac, (u64)MIN_CWND << CC_Q);
	}
	/* The kernel's own answer: at least two segments per burst. */
	return 2;
}

CC(u32, trim_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct trim *t = inet_csk_ca(sk);
	u32 half = tp->snd_cwnd >> 1;

	cc_count(COUNT_CUTS);
	t->before = t->probing ? t->saved >> CC_Q : tp->snd_cwnd;
	if (t->probing) {
		/* A lost probe is a late one. */
		half = MIN_CWND;
		t->probing = 0;
		t->last_tx = cc_now_ns();
	}
	return cc_remember(&t->frac, (u64)max_t(u32, half, MIN_CWND) << CC_Q);
}

CC(u32, trim_undo, struct sock *sk)
{
	struct trim *t = inet_csk_ca(sk);

	return max_t(u32, tcp_sk(sk)->snd_cwnd, t->before);
}

CC_REGISTER(fanin_trim, "fanin_trim", TCP_CONG_NON_RESTRICTED,
	    .init = CC_FN(trim_init), .ssthresh = CC_FN(trim_ssthresh), .cong_avoid = CC_FN(trim_cong_avoid),
	    .pkts_acked = CC_FN(trim_acked), .min_tso_segs = CC_FN(trim_before_send), .undo_cwnd = CC_FN(trim_undo));
