/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Vegas (Brakmo and Peterson, JSAC 1995) as NS2 decides: by the mean round trip of a window. Twin of `vegas` with vegas_form = ns2; for
 * the kernel's own form there is the kernel's own tcp_vegas. Round trips are whole microseconds, their mean and the window's fraction
 * rounded: a decision on an edge may differ by a packet (figures: docs/reference/linux.md).
 */
#include "fanin_cc.h"

CC_PARAM(alpha, 1, "fewer packets queued: one more per round trip (section III-C)");
CC_PARAM(beta, 3, "more packets queued: one less (section III-C)");
CC_PARAM(gamma, 1, "more packets queued: slow start ends (section III-D)");

#define MIN_CWND 2u

struct vegas {
	struct cc_frac frac;
	u64 base_q;		/* smallest round trip, 1/1024 us; 0 before the first */
	u64 sum_us;		/* of the samples since the last decision */
	u32 samples;
	u32 mark;		/* snd_nxt at the last decision */
	u32 una;
	u32 incr;		/* packets per acknowledged packet until the next decision, in 1/2^24 */
	u32 before;		/* cwnd before the last reduction */
	s32 queued;		/* packets queued at the last decision: delta */
	u8 decided;		/* mark is set */
	u8 grow_round;		/* slow start doubles every other round trip: in this one? */
	u8 doubling;		/* incr is slow start's 1 */
};

CC(void, vegas_init, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct vegas *v = inet_csk_ca(sk);

	v->frac.whole = v->frac.frac = 0;
	v->base_q = v->sum_us = 0;
	v->samples = v->incr = v->before = 0;
	v->queued = 0;
	v->decided = v->doubling = 0;
	v->grow_round = 1;
	v->mark = tp->snd_nxt;
	v->una = tp->snd_una;
	cc_count(COUNT_SOCKETS);
}

/* Once per round trip. */
static __always_inline void decide(struct sock *sk, struct vegas *v, u32 sent_bytes)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u64 cwnd = cc_cwnd(tp, &v->frac), sent_q, mean_q, want_q, window_q;

	if (v->samples) {
		/* mean round trip, and what was sent since the last decision, in packets/1024 */
		mean_q = max_t(u64, (v->sum_us << 10) / v->samples, 1);
		sent_q = ((u64)sent_bytes << 10) / max_t(u32, tp->mss_cache, 1);
		/* One packet on its own sees the path as it is now. */
		if (sent_q <= 1024 || !v->base_q || mean_q < v->base_q)
			v->base_q = mean_q;
		/* delta = (expected - actual) x base = window - sent x base / mean, rounded to a whole packet */
		window_q = ((u64)tcp_packets_in_flight(tp) + 1) << 10;
		want_q = sent_q * v->base_q / mean_q;
		if (window_q + 512 >= want_q)
			v->queued = (window_q + 512 - want_q) >> 10;
		else
			v->queued = -(s32)((want_q - window_q - 512) >> 10);
		v->sum_us = 0;
		v->samples = 0;
	}
	v->incr = 0;
	v->doubling = 0;
	if (tcp_in_slow_start(tp)) {
		v->grow_round = !v->grow_round;
		if (!v->grow_round)
			return;
		if (v->queued > (s32)gamma) {
			/* cwnd - cwnd/8; ssthresh has no use but to end slow start. */
			cc_write(tp, &v->frac, max_t(u64, cwnd - cwnd / 8, (u64)MIN_CWND << CC_Q));
			tp->snd_ssthresh = MIN_CWND;
		} else {
			v->doubling = 1;
		}
	} else if (v->queued > (s32)beta) {
		/* cwnd - 1 */
		if (tp->snd_cwnd > MIN_CWND)
			cc_write(tp, &v->frac, max_t(u64, cwnd - CC_ONE, (u64)MIN_CWND << CC_Q));
	} else if (v->queued < (s32)alpha) {
		/* 1/cwnd per packet: one packet per round trip */
		v->incr = (1ull << (24 + CC_Q)) / max_t(u64, cwnd, CC_ONE);
	}
}

CC(void, vegas_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct vegas *v = inet_csk_ca(sk);
	s32 rtt = sample->rtt_us;

	cc_check_skipped(sk);
	cc_count(COUNT_ACKS);
	if (tp->snd_una == v->una)
		return;
	v->una = tp->snd_una;
	if (!v->decided || after(tp->snd_una, v->mark)) {
		if (cc_state(sk) == TCP_CA_Recovery) {
			v->sum_us = 0;
			v->samples = 0;
			v->incr = 0;
			v->doubling = 0;
		} else {
			decide(sk, v, tp->snd_nxt - v->mark);
		}
		v->mark = tp->snd_nxt;
		v->decided = 1;
	}
	/* The sample of the ACK that ends a round trip belongs to the next. */
	if (rtt < 0)
		return;
	if (!v->base_q || ((u64)rtt << 10) < v->base_q)
		v->base_q = max_t(u64, (u64)rtt << 10, 1);
	v->sum_us += rtt;
	v->samples++;
}

CC(void, vegas_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct vegas *v = inet_csk_ca(sk);
	u32 old = tp->snd_cwnd;

	/* NS2 grows only while at most two places of the window are free, those of this ACK aside. */
	if (!cc_cwnd_limited(sk) || cc_cwnd(tp, &v->frac) > ((u64)tcp_packets_in_flight(tp) + acked + 2) << CC_Q)
		return;
	if (tcp_in_slow_start(tp)) {
		if (v->doubling) {
			tcp_slow_start(tp, acked);
			if (v->frac.whole == old)
				v->frac.whole = tp->snd_cwnd;
		}
	} else if (v->incr) {
		cc_write(tp, &v->frac, cc_cwnd(tp, &v->frac) + (((u64)v->incr * acked) >> (24 - CC_Q)));
	}
}

/* A quarter less for a loss, 2 from windows up to 3; half for a mark or a timeout, which set_state and cwnd_event see to. */
CC(u32, vegas_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct vegas *v = inet_csk_ca(sk);
	u32 w = tp->snd_cwnd;

	cc_count(COUNT_CUTS);
	v->before = w;
	v->incr = 0;
	v->doubling = 0;
	return cc_remember(&v->frac, (u64)(w <= 3 ? MIN_CWND : w - w / 4) << CC_Q);
}

CC(void, vegas_event, struct sock *sk, enum tcp_ca_event event)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct vegas *v = inet_csk_ca(sk);

	if (event == CA_EVENT_LOSS)
		/* half of the window for a timeout */
		tp->snd_ssthresh = max_t(u32, v->before / 2, MIN_CWND);
	else if (event == CA_EVENT_COMPLETE_CWR && cc_state(sk) == TCP_CA_Recovery)
		/* No slow start after a loss: NS2 sets ssthresh to 2. */
		tp->snd_ssthresh = MIN_CWND;
}

CC(void, vegas_set_state, struct sock *sk, u8 next)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct vegas *v = inet_csk_ca(sk);

	if (next == TCP_CA_CWR)
		tp->snd_ssthresh = cc_remember(&v->frac, max_t(u64, (u64)v->before << (CC_Q - 1), (u64)MIN_CWND << CC_Q));
	else if (next == TCP_CA_Loss)
		/* Vegas slow-starts from 2. */
		cc_write(tp, &v->frac, (u64)min_t(u32, max_t(u32, v->before, 1), MIN_CWND) << CC_Q);
	if (next == TCP_CA_Loss) {
		v->incr = 0;
		v->doubling = 0;
	}
}

CC(u32, vegas_undo, struct sock *sk)
{
	struct vegas *v = inet_csk_ca(sk);

	return max_t(u32, tcp_sk(sk)->snd_cwnd, v->before);
}

CC_REGISTER(fanin_vegas, "fanin_vegas", TCP_CONG_NON_RESTRICTED,
	    .init = CC_FN(vegas_init), .ssthresh = CC_FN(vegas_ssthresh), .cong_avoid = CC_FN(vegas_cong_avoid),
	    .pkts_acked = CC_FN(vegas_acked), .cwnd_event = CC_FN(vegas_event), .set_state = CC_FN(vegas_set_state),
	    .undo_cwnd = CC_FN(vegas_undo));
