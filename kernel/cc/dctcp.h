/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What DCTCP, D2TCP, L2DCT and GSS over DCTCP share: alpha and the echo of marks (RFC 8257 sections 3.2 and 3.3).
 */
#ifndef FANIN_DCTCP_H
#define FANIN_DCTCP_H

#include "fanin_cc.h"

#define ALPHA_ONE 1024u		/* alpha is in 1/1024 */
#define G_SHIFT 4		/* g = 1/16 (RFC 8257 section 4.2) */

struct dctcp {
	u32 alpha;
	u32 old_delivered, old_delivered_ce;
	u32 window_end;		/* snd_nxt when this window of data began */
	u32 loss_cwnd;		/* cwnd before the last reduction */
	u32 prior_rcv_nxt;	/* receiver: what the last data packet left */
	u8 ce;			/* receiver: DCTCP.CE */
	u8 has_ecn;
};

static __always_inline void dctcp_begin_window(const struct tcp_sock *tp, struct dctcp *d)
{
	d->window_end = tp->snd_nxt;
	d->old_delivered = tp->delivered;
	d->old_delivered_ce = tp->delivered_ce;
}

static __always_inline void dctcp_start(struct sock *sk, struct dctcp *d, u32 alpha0)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u8 state = cc_tcp_state(sk);

	d->alpha = min_t(u32, alpha0, ALPHA_ONE);
	d->loss_cwnd = 0;
	d->prior_rcv_nxt = tp->rcv_nxt;
	d->ce = 0;
	/* Before the handshake nothing is negotiated yet. */
	d->has_ecn = (tp->ecn_flags & TCP_ECN_OK) || state == TCP_LISTEN || state == TCP_CLOSE;
	dctcp_begin_window(tp, d);
	cc_count(COUNT_SOCKETS);
}

/* Once per window of data: alpha = (1 - g) alpha + g F, with F the fraction of delivered packets that were marked. */
static __always_inline void dctcp_update_alpha(struct sock *sk, struct dctcp *d)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 delivered, marked, shrunk;

	if (before(tp->snd_una, d->window_end))
		return;
	delivered = max_t(u32, tp->delivered - d->old_delivered, 1);
	marked = tp->delivered_ce - d->old_delivered_ce;
	/* (1 - g) alpha; below 1/64 the shift gives 0 and alpha falls to 0 at once. */
	shrunk = d->alpha >> G_SHIFT;
	d->alpha -= shrunk ? shrunk : d->alpha;
	/* + g F */
	d->alpha = min_t(u32, d->alpha + (u32)(((u64)marked << (10 - G_SHIFT)) / delivered), ALPHA_ONE);
	dctcp_begin_window(tp, d);
}

/* cwnd (1 - alpha/2), at least 2. */
static __always_inline u32 dctcp_cut(const struct tcp_sock *tp, const struct dctcp *d)
{
	u32 w = tp->snd_cwnd;

	return max_t(u32, w - (u32)(((u64)w * d->alpha) >> 11), 2);
}

/* RFC 8257 section 3.5: a loss is answered as by any TCP. The kernel calls ssthresh() for a loss too, so this overrides it. */
static __always_inline void dctcp_on_loss(struct sock *sk, struct dctcp *d)
{
	struct tcp_sock *tp = tcp_sk(sk);

	d->loss_cwnd = tp->snd_cwnd;
	tp->snd_ssthresh = max_t(u32, tp->snd_cwnd >> 1, 2);
}

static __always_inline void dctcp_on_state(struct sock *sk, struct dctcp *d, u8 next)
{
	if (next == TCP_CA_Recovery && cc_state(sk) != next)
		dctcp_on_loss(sk, d);
}

/* The receiver's side, section 3.2: ACKs carry ECE exactly while marked packets arrive; a change is told at once. */
static __always_inline void dctcp_echo(struct sock *sk, struct dctcp *d, bool ce)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (d->ce != ce) {
		if (inet_csk(sk)->icsk_ack.pending & ICSK_ACK_TIMER) {
			/* A delayed ACK covers packets of the old state only. */
			if (d->ce)
				tp->ecn_flags |= TCP_ECN_DEMAND_CWR;
			else
				tp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
			cc_ack_now(sk, d->prior_rcv_nxt);
		}
		inet_csk(sk)->icsk_ack.pending |= ICSK_ACK_NOW;
	}
	d->prior_rcv_nxt = tp->rcv_nxt;
	d->ce = ce;
	if (ce)
		tp->ecn_flags |= TCP_ECN_DEMAND_CWR;
	else
		tp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
}

static __always_inline void dctcp_on_event(struct sock *sk, struct dctcp *d, enum tcp_ca_event event)
{
	if (event == CA_EVENT_ECN_IS_CE)
		dctcp_echo(sk, d, true);
	else if (event == CA_EVENT_ECN_NO_CE)
		dctcp_echo(sk, d, false);
	else if (event == CA_EVENT_LOSS)
		dctcp_on_loss(sk, d);
}

#endif
