/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * L2DCT (Munir et al., INFOCOM 2013): DCTCP whose growth and cuts are weighted by what the flow has sent. Twin of `l2dct`.
 *
 * The weight w_c falls from 2.5 to 0.125 between 200 and 1000 segments. Powers are within 6e-5 of exact, so windows within one packet.
 */
#include "dctcp.h"
#include "fixed.h"

CC_PARAM(alpha0, ALPHA_ONE, "alpha before the first window, in 1/1024");
CC_PARAM(w_max, 2560, "weight of a young flow, in 1/1024 (section III)");
CC_PARAM(w_min, 128, "weight of an old flow, in 1/1024 (section III)");

#define YOUNG 200u		/* segments */
#define OLD 1000u

struct l2dct {
	struct dctcp d;
	struct cc_frac frac;
	u32 first;		/* first byte of the connection */
	u32 old;		/* OLD segments were sent: the sequence number may wrap now */
	u64 credit;		/* acknowledged packets x w_c/w_max towards the next packet of window, in 1/2^20 */
};

/* Attained service in segments of new data, at most OLD. */
static __always_inline u32 service(const struct tcp_sock *tp, struct l2dct *t)
{
	u32 sent = (tp->snd_nxt - t->first) / max_t(u32, tp->mss_cache, 1);

	if (sent >= OLD)
		t->old = 1;
	return t->old ? OLD : sent;
}

/* w_c in 1/1024: w_max - (w_max - w_min) (service - 200) / 800. */
static __always_inline u32 weight(const struct tcp_sock *tp, struct l2dct *t)
{
	u32 sent = max_t(u32, service(tp, t), YOUNG);

	return w_max - (w_max - w_min) * (sent - YOUNG) / (OLD - YOUNG);
}

CC(void, l2dct_init, struct sock *sk)
{
	struct l2dct *t = inet_csk_ca(sk);

	dctcp_start(sk, &t->d, alpha0);
	t->frac.whole = t->frac.frac = 0;
	t->first = tcp_sk(sk)->snd_nxt;
	t->old = 0;
	t->credit = 0;
}

CC(u32, l2dct_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct l2dct *t = inet_csk_ca(sk);
	u64 cwnd = cc_cwnd(tp, &t->frac), exponent, power = 0;

	cc_count(COUNT_CUTS);
	t->credit = 0;
	if (!t->d.has_ecn)
		return tcp_reno_ssthresh(sk);
	t->d.loss_cwnd = tp->snd_cwnd;
	if (t->d.alpha) {
		/* alpha^w_c in Q24, as 2^-(w_c (10 - log2(1024 alpha))). */
		exponent = ((u64)((10u << 24) - cc_log2(t->d.alpha)) * weight(tp, t)) >> 10;
		power = exponent >= 24ull << 24 ? 0 : cc_exp2((24ull << 24) - exponent) >> 24;
	}
	/* cwnd (1 - alpha^w_c / 2), at least 2. */
	return cc_remember(&t->frac, max_t(u64, cwnd - ((cwnd * power) >> 25), 2 * (u64)CC_ONE));
}

CC(void, l2dct_in_ack, struct sock *sk, u32 flags)
{
	struct l2dct *t = inet_csk_ca(sk);

	cc_check_skipped(sk);
	cc_count(COUNT_ACKS);
	dctcp_update_alpha(sk, &t->d);
}

CC(void, l2dct_set_state, struct sock *sk, u8 next)
{
	struct l2dct *t = inet_csk_ca(sk);

	dctcp_on_state(sk, &t->d, next);
}

CC(void, l2dct_event, struct sock *sk, enum tcp_ca_event event)
{
	struct l2dct *t = inet_csk_ca(sk);

	if (event == CA_EVENT_LOSS)
		t->credit = 0;
	dctcp_on_event(sk, &t->d, event);
}

CC(u32, l2dct_undo, struct sock *sk)
{
	struct l2dct *t = inet_csk_ca(sk);

	return max_t(u32, tcp_sk(sk)->snd_cwnd, t->d.loss_cwnd);
}

CC(void, l2dct_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct l2dct *t = inet_csk_ca(sk);
	u32 old = tp->snd_cwnd, w = weight(tp, t);
	u64 needed, whole;

	if (!cc_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp))
		acked = tcp_slow_start(tp, acked);
	/* Avoidance: w_c / w_max packets per window. */
	t->credit += ((u64)acked * w << 20) / max_t(u32, w_max, 1);
	needed = (u64)max_t(u32, tp->snd_cwnd, 1) << 20;
	if (!tcp_in_slow_start(tp) && t->credit >= needed) {
		whole = t->credit / needed;
		t->credit -= whole * needed;
		tp->snd_cwnd += whole;
	}
	if (t->frac.whole == old)
		t->frac.whole = tp->snd_cwnd;
}

CC_REGISTER(fanin_l2dct, "fanin_l2dct", TCP_CONG_NEEDS_ECN | TCP_CONG_NON_RESTRICTED,
	    .init = CC_FN(l2dct_init), .ssthresh = CC_FN(l2dct_ssthresh), .in_ack_event = CC_FN(l2dct_in_ack),
	    .set_state = CC_FN(l2dct_set_state), .cwnd_event = CC_FN(l2dct_event), .undo_cwnd = CC_FN(l2dct_undo),
	    .cong_avoid = CC_FN(l2dct_cong_avoid));
