/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * D2TCP (Vamanan et al., SIGCOMM 2012): DCTCP with the penalty alpha^d, d = Tc/D from the message's deadline. Twin of `d2tcp`.
 *
 * On a running kernel the application says the deadline through the socket map `deadlines`: the value is struct deadline, the key the
 * socket's descriptor (bpf_map_update_elem). Without one this is DCTCP. Powers are within 6e-5 of exact, so windows within one packet.
 */
#include "dctcp.h"
#include "fixed.h"

CC_PARAM(alpha0, ALPHA_ONE, "alpha before the first window, in 1/1024");
CC_PARAM(least_d, 512, "least exponent, in 1/1024 (section 3.2)");
CC_PARAM(most_d, 2048, "greatest exponent, in 1/1024 (section 3.2)");
CC_PARAM(missed_d, 1024, "exponent once the deadline has passed, in 1/1024");

struct d2tcp {
	struct dctcp d;
	struct cc_frac frac;
};

/* What the application said about the message that it sends. */
struct deadline {
	u64 at_ns;		/* CLOCK_MONOTONIC; 0: none */
	u64 unsent;		/* bytes of the message beyond write_seq */
};

#ifdef __bpf__
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct deadline);
} deadlines SEC(".maps");

static __always_inline struct deadline cc_deadline(struct sock *sk)
{
	struct deadline *found = bpf_sk_storage_get(&deadlines, sk, 0, 0), none = {};
	struct tcp_sock *tp = tcp_sk(sk);

	if (!found)
		return none;
	none = *found;
	none.unsent += tp->write_seq - tp->snd_nxt;
	return none;
}
#elif defined(FANIN_SHIM)
static inline struct deadline cc_deadline(struct sock *sk)
{
	return (struct deadline){ .at_ns = sk->fanin_deadline_ns, .unsent = sk->fanin_unsent };
}
#else
static inline struct deadline cc_deadline(struct sock *sk) { return (struct deadline){}; }
#endif

/* d = Tc/D in 1/1024: Tc is what the rest takes at three quarters of the window, the mean of a sawtooth between half and all of it. */
static __always_inline u32 urgency(struct sock *sk, struct d2tcp *t)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct deadline m = cc_deadline(sk);
	u64 now = cc_now_ns(), left_us, cwnd = max_t(u64, cc_cwnd(tp, &t->frac), CC_ONE), needed_us;

	if (!m.at_ns)
		return 1024;
	if (m.at_ns <= now)
		return missed_d;
	left_us = max_t(u64, (m.at_ns - now) / 1000, 1);
	/* Tc = packets / (3/4 cwnd) x srtt, in 1/1024 us; more than 256 MB is far beyond the greatest exponent's reach. */
	needed_us = (min_t(u64, m.unsent, 1ull << 28) << CC_Q) / max_t(u32, tp->mss_cache, 1);
	needed_us = ((needed_us * max_t(u32, tp->srtt_us >> 3, 1) << 4) / (3 * cwnd)) << 8;
	return min_t(u64, max_t(u64, needed_us / left_us, least_d), most_d);
}

/* cwnd (1 - alpha^d / 2), at least 2; in 1/2^20 packet. */
static __always_inline u64 cut_by(u64 cwnd, u32 alpha, u32 d)
{
	u64 exponent, power;

	if (!alpha)
		return cwnd;
	/* alpha^d = 2^-(d (10 - log2(1024 alpha))): the exponent is Q24, then alpha^d is Q24. */
	exponent = ((u64)((10u << 24) - cc_log2(alpha)) * d) >> 10;
	power = exponent >= 24ull << 24 ? 0 : cc_exp2((24ull << 24) - exponent) >> 24;
	return max_t(u64, cwnd - ((cwnd * power) >> 25), 2 * (u64)CC_ONE);
}

CC(void, d2tcp_init, struct sock *sk)
{
	struct d2tcp *t = inet_csk_ca(sk);

	dctcp_start(sk, &t->d, alpha0);
	t->frac.whole = t->frac.frac = 0;
}

CC(u32, d2tcp_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct d2tcp *t = inet_csk_ca(sk);
	u32 d;

	cc_count(COUNT_CUTS);
	if (!t->d.has_ecn)
		return tcp_reno_ssthresh(sk);
	t->d.loss_cwnd = tp->snd_cwnd;
	d = urgency(sk, t);
	if (d == 1024)
		return cc_remember(&t->frac, (u64)dctcp_cut(tp, &t->d) << CC_Q);
	return cc_remember(&t->frac, cut_by(cc_cwnd(tp, &t->frac), t->d.alpha, d));
}

CC(void, d2tcp_in_ack, struct sock *sk, u32 flags)
{
	struct d2tcp *t = inet_csk_ca(sk);

	cc_check_skipped(sk);
	cc_count(COUNT_ACKS);
	dctcp_update_alpha(sk, &t->d);
}

CC(void, d2tcp_set_state, struct sock *sk, u8 next)
{
	struct d2tcp *t = inet_csk_ca(sk);

	dctcp_on_state(sk, &t->d, next);
}

CC(void, d2tcp_event, struct sock *sk, enum tcp_ca_event event)
{
	struct d2tcp *t = inet_csk_ca(sk);

	dctcp_on_event(sk, &t->d, event);
}

CC(u32, d2tcp_undo, struct sock *sk)
{
	struct d2tcp *t = inet_csk_ca(sk);

	return max_t(u32, tcp_sk(sk)->snd_cwnd, t->d.loss_cwnd);
}

CC(void, d2tcp_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct d2tcp *t = inet_csk_ca(sk);

	if (cc_cwnd_limited(sk))
		cc_reno_grow(sk, &t->frac, acked);
}

CC_REGISTER(fanin_d2tcp, "fanin_d2tcp", TCP_CONG_NEEDS_ECN | TCP_CONG_NON_RESTRICTED,
	    .init = CC_FN(d2tcp_init), .ssthresh = CC_FN(d2tcp_ssthresh), .in_ack_event = CC_FN(d2tcp_in_ack),
	    .set_state = CC_FN(d2tcp_set_state), .cwnd_event = CC_FN(d2tcp_event), .undo_cwnd = CC_FN(d2tcp_undo),
	    .cong_avoid = CC_FN(d2tcp_cong_avoid));
