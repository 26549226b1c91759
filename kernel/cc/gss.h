/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Gentle Slow Start ("Gentle Slow Start to Alleviate TCP Incast in Data Center Networks", Algorithm 1) over Reno, CUBIC or DCTCP:
 * gss_reno.c, gss_cubic.c and gss_dctcp.c say which. Twin of `gss+newreno`, `gss+cubic`, `gss+dctcp`.
 *
 * Once per window cwnd grows by cwnd^(1 - alpha), alpha = (rtt - rtt_min) / (rtt_max - rtt_min). The power is within 6e-5 of exact;
 * where that moves the whole part of a window, the window completes on another ACK (crates/kernelcc/tests/lockstep.rs has the figures).
 */
#include "fixed.h"
#ifdef GSS_OVER_DCTCP
#include "dctcp.h"
CC_PARAM(alpha0, ALPHA_ONE, "DCTCP's alpha before the first window, in 1/1024");
#endif
#ifdef GSS_OVER_CUBIC
#include "cubic.h"
#endif

CC_PARAM(first_window, 2, "packets that a connection begins with (Algorithm 1); 0: the route's initcwnd");

struct gss {
	struct cc_frac frac;
	u32 min_us, max_us, last_us;	/* round trips; min 0: none yet */
	u32 una;
	u32 mark;			/* end of the window whose ACKs are awaited */
	u32 before;			/* cwnd before the last reduction */
	u8 marked;			/* mark is set */
	u8 due;				/* this ACK completed the window */
#ifdef GSS_OVER_DCTCP
	struct dctcp dctcp;
#endif
#ifdef GSS_OVER_CUBIC
	struct cubic cubic;
	u64 idle_ns;			/* when nothing was outstanding any more; 0: something is */
#endif
};

CC(void, gss_init, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct gss *g = inet_csk_ca(sk);

	g->frac.whole = g->frac.frac = 0;
	g->min_us = g->max_us = g->last_us = g->mark = g->before = 0;
	g->marked = g->due = 0;
	g->una = tp->snd_una;
	/* cwnd = 2 */
	if (first_window && !tp->data_segs_out)
		tp->snd_cwnd = min_t(u32, tp->snd_cwnd, first_window);
#ifdef GSS_OVER_DCTCP
	dctcp_start(sk, &g->dctcp, alpha0);
#else
	cc_count(COUNT_SOCKETS);
#endif
#ifdef GSS_OVER_CUBIC
	cubic_reset(&g->cubic);
	g->idle_ns = 0;
#endif
}

CC(void, gss_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct gss *g = inet_csk_ca(sk);
	s32 rtt = sample->rtt_us;
	u32 sent, first;

	cc_check_skipped(sk);
	cc_count(COUNT_ACKS);
	if (rtt >= 0) {
		rtt = max_t(s32, rtt, 1);
		g->last_us = rtt;
		g->min_us = g->min_us ? min_t(u32, g->min_us, rtt) : rtt;
		g->max_us = max_t(u32, g->max_us, rtt);
	}
#ifdef GSS_OVER_CUBIC
	{
		u64 now = cc_now_ns();

		/* The curve's clock stops while nothing is outstanding (RFC 9438 section 5.8). */
		if (g->idle_ns && rtt >= 0 && now - (u64)rtt * 1000 > g->idle_ns && g->cubic.epoch_ns)
			g->cubic.epoch_ns = min_t(u64, g->cubic.epoch_ns + now - (u64)rtt * 1000 - g->idle_ns, now);
		g->idle_ns = tp->snd_una == tp->snd_nxt ? now : 0;
		cubic_sample(&g->cubic, now, rtt);
	}
#endif
	g->due = 0;
	if (tp->snd_una == g->una)
		return;
	if (!g->marked) {
		/* The window in flight at its first ACK, at most cwnd packets from its first byte. */
		sent = max_t(u32, tp->snd_cwnd, 1) * tp->mss_cache;
		first = g->una + sent;
		g->mark = before(tp->snd_nxt, first) ? tp->snd_nxt : first;
		g->marked = 1;
	}
	g->una = tp->snd_una;
	if (!before(tp->snd_una, g->mark)) {
		g->due = 1;
		g->marked = 0;
	}
}

/* cwnd^(1 - alpha), in 1/2^20 packet. */
static __always_inline u64 increment(const struct gss *g, u64 cwnd)
{
	u32 range = g->max_us - g->min_us, rest = 1u << 24;
	u64 exponent;

	/* 1 - alpha in 1/2^24 */
	if (range)
		rest = ((u64)(g->max_us - g->last_us) << 24) / range;
	cwnd = max_t(u64, cwnd, CC_ONE);
	/* 2^((1 - alpha) log2 cwnd) */
	exponent = ((u64)(cc_log2(cwnd) - (CC_Q << 24)) * rest) >> 24;
	return cc_exp2(exponent) >> (24 - CC_Q);
}

CC(void, gss_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct gss *g = inet_csk_ca(sk);
	u64 cwnd, most;

	if (!cc_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp)) {
		if (g->due) {
			cwnd = cc_cwnd(tp, &g->frac);
			most = (u64)min_t(u32, tp->snd_ssthresh, 1u << 30) << CC_Q;
			cc_write(tp, &g->frac, min_t(u64, cwnd + increment(g, cwnd), most));
		}
		return;
	}
#ifdef GSS_OVER_CUBIC
	cubic_update(&g->cubic, tp->snd_cwnd, acked, cc_now_ns());
	cwnd = tp->snd_cwnd;
	tcp_cong_avoid_ai(tp, g->cubic.cnt, acked);
	if (g->frac.whole == cwnd)
		g->frac.whole = tp->snd_cwnd;
#else
	cc_reno_grow(sk, &g->frac, acked);
#endif
}

CC(u32, gss_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct gss *g = inet_csk_ca(sk);

	cc_count(COUNT_CUTS);
	g->before = tp->snd_cwnd;
	g->marked = g->due = 0;
#if defined(GSS_OVER_DCTCP)
	if (!g->dctcp.has_ecn)
		return tcp_reno_ssthresh(sk);
	g->dctcp.loss_cwnd = tp->snd_cwnd;
	return dctcp_cut(tp, &g->dctcp);
#elif defined(GSS_OVER_CUBIC)
	return cubic_cut(&g->cubic, tp->snd_cwnd);
#else
	/* RFC 5681 equation 4, at least 2 */
	return cc_remember(&g->frac, (u64)max_t(u32, tp->snd_cwnd >> 1, 2) << CC_Q);
#endif
}

CC(void, gss_event, struct sock *sk, enum tcp_ca_event event)
{
	struct gss *g = inet_csk_ca(sk);

	if (event == CA_EVENT_CWND_RESTART)
		g->marked = g->due = 0;
#ifdef GSS_OVER_DCTCP
	dctcp_on_event(sk, &g->dctcp, event);
#endif
#ifdef GSS_OVER_CUBIC
	if (event == CA_EVENT_LOSS)
		cubic_reset(&g->cubic);
#endif
}

#ifdef GSS_OVER_DCTCP
CC(void, gss_in_ack, struct sock *sk, u32 flags)
{
	struct gss *g = inet_csk_ca(sk);

	dctcp_update_alpha(sk, &g->dctcp);
}
#endif

CC(void, gss_set_state, struct sock *sk, u8 next)
{
	struct gss *g = inet_csk_ca(sk);

	/* Also for the timeouts after the first. */
	if (next == TCP_CA_Loss)
		g->marked = g->due = 0;
#ifdef GSS_OVER_DCTCP
	dctcp_on_state(sk, &g->dctcp, next);
#endif
}

CC(u32, gss_undo, struct sock *sk)
{
	struct gss *g = inet_csk_ca(sk);

	return max_t(u32, tcp_sk(sk)->snd_cwnd, g->before);
}
