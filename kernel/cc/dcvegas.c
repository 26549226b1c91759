/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * DCVegas (Chan and Chang, "A Delay-Based TCP for Data Center Networks", section III): Vegas with a start of 1.5 packets per ACK and a
 * step that grows with every round trip on an idle path. Twin of `dcvegas`. Windows are kept in 1/2^20 packet, delta in the same, round
 * trips in whole microseconds; only what follows a timeout, whose ssthresh has no fraction here, differs (figures: docs/reference/linux.md).
 */
#include "fanin_cc.h"

CC_PARAM(alpha, 1024, "fewer queued: speed up, in 1/1024 packet (section III-B)");
CC_PARAM(beta, 2048, "more queued: slow down by more than 1, in 1/1024 packet (section III-B)");
CC_PARAM(gamma, 512, "more queued: slow start ends, in 1/1024 packet (section III-A)");
CC_PARAM(start_step, 1536, "growth per ACK in slow start, in 1/1024 packet (equation 5)");

#define MIN_CWND 2u
#define TO_Q(x) ((u64)(x) << (CC_Q - 10))	/* a parameter in 1/1024 */

struct dcvegas {
	struct cc_frac frac;
	u64 sum_us;		/* of the samples since the last decision */
	u32 base_us;		/* smallest round trip; 0 before the first */
	u32 samples;
	s32 pending_us;		/* sample of this ACK: it belongs to the window after a decision; -1: none */
	u32 mark;		/* snd_nxt at the last decision */
	u32 next_mark;		/* snd_nxt at the ACK that ended the round trip */
	u32 una;
	u32 incr;		/* packets per acknowledged packet, in 1/2^24 */
	u32 succ;		/* decisions in a row that found the path idle */
	u32 before;		/* cwnd before the last reduction */
	u8 marked;		/* mark is set */
	u8 due;			/* a round trip ended and its decision is not made */
};

CC(void, dcvegas_init, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct dcvegas *v = inet_csk_ca(sk);

	v->frac.whole = v->frac.frac = 0;
	v->sum_us = 0;
	v->base_us = v->samples = v->incr = v->succ = v->before = 0;
	v->pending_us = -1;
	v->marked = v->due = 0;
	v->mark = v->next_mark = tp->snd_nxt;
	v->una = tp->snd_una;
	cc_count(COUNT_SOCKETS);
}

/* Congestion avoidance (section III-B), for delta packets queued, in 1/2^20. */
static __always_inline void avoid(struct tcp_sock *tp, struct dcvegas *v, u64 delta, u64 cwnd)
{
	u64 middle = (TO_Q(alpha) + TO_Q(beta)) / 2, least = (u64)MIN_CWND << CC_Q, step;

	v->incr = 0;
	if (delta < TO_Q(alpha)) {
		/* equation 6: (beta - delta) x succ packets per round trip, at most cwnd */
		if (v->succ < 1u << 20)
			v->succ++;
		step = min_t(u64, (TO_Q(beta) - delta) * v->succ, cwnd);
		v->incr = (step << 24) / cwnd;
		return;
	}
	v->succ = 0;
	if (delta < middle)
		/* one packet per round trip */
		v->incr = ((u64)CC_ONE << 24) / cwnd;
	else if (delta > middle && delta <= TO_Q(beta))
		/* cwnd - 1 */
		cc_write(tp, &v->frac, cwnd > least + CC_ONE ? cwnd - CC_ONE : least);
	else if (delta > middle)
		/* equation 7: cwnd - (delta - middle) */
		cc_write(tp, &v->frac, cwnd > least + (delta - middle) ? cwnd - (delta - middle) : least);
}

/* Once per round trip. */
static __always_inline void decide(struct sock *sk, struct dcvegas *v)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u64 cwnd = max_t(u64, cc_cwnd(tp, &v->frac), CC_ONE), mean, base, delta;

	if (!v->samples)
		return;
	/* equation 1: delta = cwnd (1 - base/mean), round trips in 1/1024 us */
	mean = max_t(u64, (v->sum_us << 10) / v->samples, 1);
	base = (u64)v->base_us << 10;
	delta = mean > base ? cwnd * (mean - base) / mean : 0;
	v->sum_us = 0;
	v->samples = 0;
	if (!tcp_in_slow_start(tp))
		avoid(tp, v, delta, cwnd);
	else if (delta > TO_Q(gamma))
		/* ssthresh has no use but to end slow start. */
		tp->snd_ssthresh = MIN_CWND;
}

static __always_inline void drop(struct dcvegas *v)
{
	v->sum_us = 0;
	v->samples = 0;
	v->incr = 0;
}

CC(void, dcvegas_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct dcvegas *v = inet_csk_ca(sk);

	cc_check_skipped(sk);
	cc_count(COUNT_ACKS);
	if (v->due) {
		/* cong_avoid was not called: a window in repair says nothing about the path. */
		drop(v);
		v->mark = v->next_mark;
		v->due = 0;
	}
	if (v->pending_us >= 0) {
		u32 rtt = max_t(u32, v->pending_us, 1);

		if (!v->base_us || rtt < v->base_us)
			v->base_us = rtt;
		v->sum_us += rtt;
		v->samples++;
		v->pending_us = -1;
	}
	if (tp->snd_una == v->una)
		return;
	v->una = tp->snd_una;
	v->pending_us = sample->rtt_us;
	if (!v->marked || after(tp->snd_una, v->mark)) {
		v->marked = 1;
		v->due = 1;
		v->next_mark = tp->snd_nxt;
	}
}

CC(void, dcvegas_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct dcvegas *v = inet_csk_ca(sk);
	u64 cwnd;

	if (!cc_cwnd_limited(sk))
		return;
	if (v->due) {
		decide(sk, v);
		v->mark = v->next_mark;
		v->due = 0;
	}
	cwnd = cc_cwnd(tp, &v->frac);
	/* NS2 grows only while the window is used; the places of this ACK count as used. */
	if (cwnd > ((u64)tcp_packets_in_flight(tp) + acked + 1) << CC_Q)
		return;
	if (tcp_in_slow_start(tp))
		/* equation 5: 1.5 packets per acknowledged packet */
		cwnd += TO_Q(start_step) * acked;
	else
		cwnd += ((u64)v->incr * acked) >> (24 - CC_Q);
	cc_write(tp, &v->frac, cwnd);
}

/* As NS2's Vegas: a quarter less for a loss, 2 from windows up to 3. */
CC(u32, dcvegas_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct dcvegas *v = inet_csk_ca(sk);
	u64 cwnd = cc_cwnd(tp, &v->frac), least = (u64)MIN_CWND << CC_Q;

	cc_count(COUNT_CUTS);
	v->before = tp->snd_cwnd;
	v->incr = v->succ = 0;
	/* 3/4 cwnd */
	return cc_remember(&v->frac, tp->snd_cwnd <= 3 ? least : cwnd - cwnd / 4);
}

CC(void, dcvegas_event, struct sock *sk, enum tcp_ca_event event)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct dcvegas *v = inet_csk_ca(sk);

	if (event == CA_EVENT_LOSS)
		/* half of the window for a timeout */
		tp->snd_ssthresh = max_t(u32, v->before / 2, MIN_CWND);
	else if (event == CA_EVENT_COMPLETE_CWR && cc_state(sk) == TCP_CA_Recovery)
		/* No slow start after a loss: NS2 sets ssthresh to 2. */
		tp->snd_ssthresh = MIN_CWND;
	else if (event == CA_EVENT_CWND_RESTART)
		v->incr = v->succ = 0;
}

CC(void, dcvegas_set_state, struct sock *sk, u8 next)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct dcvegas *v = inet_csk_ca(sk);

	if (next == TCP_CA_CWR)
		tp->snd_ssthresh = cc_remember(&v->frac, max_t(u64, (u64)v->before << (CC_Q - 1), (u64)MIN_CWND << CC_Q));
	else if (next == TCP_CA_Loss) {
		v->incr = v->succ = 0;
		/* Vegas slow-starts from 2. */
		cc_write(tp, &v->frac, (u64)min_t(u32, max_t(u32, v->before, 1), MIN_CWND) << CC_Q);
	}
}

CC(u32, dcvegas_undo, struct sock *sk)
{
	struct dcvegas *v = inet_csk_ca(sk);

	return max_t(u32, tcp_sk(sk)->snd_cwnd, v->before);
}

CC_REGISTER(fanin_dcvegas, "fanin_dcvegas", TCP_CONG_NON_RESTRICTED,
	    .init = CC_FN(dcvegas_init), .ssthresh = CC_FN(dcvegas_ssthresh), .cong_avoid = CC_FN(dcvegas_cong_avoid),
	    .pkts_acked = CC_FN(dcvegas_acked), .cwnd_event = CC_FN(dcvegas_event), .set_state = CC_FN(dcvegas_set_state),
	    .undo_cwnd = CC_FN(dcvegas_undo));
