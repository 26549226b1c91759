/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* DCTCP (RFC 8257). Equals the kernel form of fanin's `dctcp` and the kernel's own tcp_dctcp at every step of the lock-step test. */
#include "dctcp.h"

CC_PARAM(alpha0, ALPHA_ONE, "alpha before the first window, in 1/1024");

CC(void, dctcp_init, struct sock *sk)
{
	dctcp_start(sk, inet_csk_ca(sk), alpha0);
}

CC(u32, dctcp_ssthresh, struct sock *sk)
{
	struct dctcp *d = inet_csk_ca(sk);

	cc_count(COUNT_CUTS);
	if (!d->has_ecn)
		return tcp_reno_ssthresh(sk);
	d->loss_cwnd = tcp_sk(sk)->snd_cwnd;
	return dctcp_cut(tcp_sk(sk), d);
}

CC(void, dctcp_in_ack, struct sock *sk, u32 flags)
{
	cc_check_skipped(sk);
	cc_count(COUNT_ACKS);
	dctcp_update_alpha(sk, inet_csk_ca(sk));
}

CC(void, dctcp_set_state, struct sock *sk, u8 next)
{
	dctcp_on_state(sk, inet_csk_ca(sk), next);
}

CC(void, dctcp_event, struct sock *sk, enum tcp_ca_event event)
{
	dctcp_on_event(sk, inet_csk_ca(sk), event);
}

CC(u32, dctcp_undo, struct sock *sk)
{
	struct dctcp *d = inet_csk_ca(sk);

	return max_t(u32, tcp_sk(sk)->snd_cwnd, d->loss_cwnd);
}

CC(void, dctcp_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

CC_REGISTER(fanin_dctcp, "fanin_dctcp", TCP_CONG_NEEDS_ECN | TCP_CONG_NON_RESTRICTED,
	    .init = CC_FN(dctcp_init), .ssthresh = CC_FN(dctcp_ssthresh), .in_ack_event = CC_FN(dctcp_in_ack),
	    .set_state = CC_FN(dctcp_set_state), .cwnd_event = CC_FN(dctcp_event), .undo_cwnd = CC_FN(dctcp_undo),
	    .cong_avoid = CC_FN(dctcp_cong_avoid));
