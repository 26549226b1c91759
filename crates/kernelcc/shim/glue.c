/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Between fanin and one tcp_congestion_ops: copies what the sender knows into the socket, calls the operations in the kernel's order
 * (net/ipv4/tcp_input.c: tcp_ack, tcp_fastretrans_alert, tcp_enter_loss), and hands the window back. Compiled with the C file.
 */
#include "fanin_shim.h"

__thread u64 fanin_now_ns;
__thread u64 *fanin_random;
static __thread u64 no_random;

/* ---- what src/abi.rs mirrors; every field is in the unit of its name ---------------------------------------------------------- */

#define FANIN_ABI 5
struct fanin_view {
	u64 now_ns, next_send_ns;
	u32 snd_una, snd_nxt, mss, srtt_us, min_rtt_us, in_flight, delivered, delivered_ce, lost, data_segs_out;
	u32 state, cwnd_limited, app_limited, message_unsent;
	u64 deadline_ns, random;
};
struct fanin_ack {
	u32 acked, delivered;		/* segments: by the number, by the number or SACK */
	s32 rtt_us;			/* -1: no sample */
	u32 ece, may_raise, losses, prior_in_flight;
	s32 rate_delivered;		/* -1: no rate sample */
	u32 rate_prior_delivered, rate_app_limited, maybe_delayed;
	u64 rate_interval_us;
};
struct fanin_out {
	u32 cwnd, ssthresh;
	u64 pacing_rate;		/* bytes/s; 0: none */
};
struct fanin_sock {
	struct sock sk;
	u64 random;
};

static struct tcp_congestion_ops *ops;
static struct fanin_param params[64];
static u32 param_count;

int tcp_register_congestion_control(struct tcp_congestion_ops *o) { if (!ops) ops = o; return 0; }
/* Of a BPF source: the first whose required operations are there (net/ipv4/bpf_tcp_ca.c). */
void fanin_register_bpf(struct tcp_congestion_ops *o)
{
	if (o->ssthresh && o->undo_cwnd && (o->cong_avoid || o->cong_control))
		tcp_register_congestion_control(o);
}
unsigned long CONFIG_HZ = HZ;
void tcp_unregister_congestion_control(struct tcp_congestion_ops *o) { (void)o; }
void fanin_add_param(const char *name, void *at, u32 size, bool is_signed, bool is_bool)
{
	if (param_count < ARRAY_SIZE(params))
		params[param_count++] = (struct fanin_param){ name, at, size, is_signed, is_bool };
}
int param_set_uint_minmax(const char *v, const struct kernel_param *k, unsigned int a, unsigned int b) { (void)v; (void)k; (void)a; (void)b; return 0; }
int param_get_uint(char *b, const struct kernel_param *k) { (void)b; (void)k; return 0; }

u32 fanin_random_u32(void)
{
	u64 *state = fanin_random ? fanin_random : &no_random, z;

	/* SplitMix64 */
	z = (*state += 0x9E3779B97F4A7C15ull);
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
	return (z ^ (z >> 31)) >> 32;
}

/* ---- memory: kernel code asks for none here, and code that does rarely looks whether it got any -------------------------------- */

void *__real_malloc(size_t size), *__real_calloc(size_t count, size_t size), *__real_realloc(void *old, size_t size);
int dprintf(int fd, const char *format, ...);

/* Once, and last before the fault that follows: what a process says last is in the sentence about its end. */
static void *fanin_given(void *memory, size_t size)
{
	static bool said;

	if (!memory && size && !said) {
		said = true;
		dprintf(2, "it has met the limit of memory with an allocation of %zu bytes\n", size);
	}
	return memory;
}
void *__wrap_malloc(size_t size) { return fanin_given(__real_malloc(size), size); }
void *__wrap_realloc(void *old, size_t size) { return fanin_given(__real_realloc(old, size), size); }
void *__wrap_calloc(size_t count, size_t size)
{
	size_t all;

	return fanin_given(__real_calloc(count, size), __builtin_mul_overflow(count, size, &all) ? SIZE_MAX : all);
}

/* ---- helpers of tcp_cong.c and win_minmax.c, by their contract ------------------------------------------------------------------ */

u32 tcp_slow_start(struct sock *tp, u32 acked)
{
	u32 room = tp->snd_ssthresh > tp->snd_cwnd ? tp->snd_ssthresh - tp->snd_cwnd : 0, used = min(acked, room);

	tp->snd_cwnd = min(tp->snd_cwnd + used, tp->snd_cwnd_clamp);
	return acked - used;
}

void tcp_cong_avoid_ai(struct sock *tp, u32 w, u32 acked)
{
	u32 whole;

	w = max(w, 1u);
	/* Credit from a time when more was needed is worth one packet, not several. */
	if (tp->snd_cwnd_cnt >= w) {
		tp->snd_cwnd_cnt = 0;
		tp->snd_cwnd++;
	}
	tp->snd_cwnd_cnt += acked;
	whole = tp->snd_cwnd_cnt / w;
	tp->snd_cwnd_cnt -= whole * w;
	tp->snd_cwnd = min(tp->snd_cwnd + whole, tp->snd_cwnd_clamp);
}

void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	(void)ack;
	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(sk)) {
		acked = tcp_slow_start(sk, acked);
		if (!acked)
			return;
	}
	tcp_cong_avoid_ai(sk, sk->snd_cwnd, acked);
}

u32 tcp_reno_ssthresh(struct sock *sk) { return max(sk->snd_cwnd >> 1, 2u); }
u32 tcp_reno_undo_cwnd(struct sock *sk) { return max(sk->snd_cwnd, sk->prior_cwnd); }

static u32 running(struct minmax *m, u32 window, u32 t, u32 v, bool want_max)
{
	struct minmax_sample now = { t, v };
	struct minmax_sample *s = m->s;
#define beats(a, b) (want_max ? (a) >= (b) : (a) <= (b))

	if (beats(v, s[0].v) || t - s[2].t > window)
		return minmax_reset(m, t, v);
	if (beats(v, s[1].v))
		s[1] = s[2] = now;
	else if (beats(v, s[2].v))
		s[2] = now;
	if (t - s[0].t > window) {
		/* The best has left the window: the next ones move up. */
		s[0] = s[1];
		s[1] = s[2];
		s[2] = now;
		if (t - s[0].t > window) {
			s[0] = s[1];
			s[1] = s[2];
		}
	} else if (s[1].t == s[0].t && t - s[0].t > window / 4) {
		/* A quarter of the window without a second best: this one. */
		s[1] = s[2] = now;
	} else if (s[2].t == s[1].t && t - s[0].t > window / 2) {
		s[2] = now;
	}
	return s[0].v;
}
u32 minmax_running_max(struct minmax *m, u32 w, u32 t, u32 v) { return running(m, w, t, v, true); }
u32 minmax_running_min(struct minmax *m, u32 w, u32 t, u32 v) { return running(m, w, t, v, false); }

/* ---- entry points ------------------------------------------------------------------------------------------------------------- */

extern int fanin_module_init(void);

u32 fanin_abi(void) { return FANIN_ABI; }
u32 fanin_param_count(void) { return param_count; }
const char *fanin_param_name(u32 i) { return params[i].name; }
u32 fanin_param_is_bool(u32 i) { return params[i].is_bool; }
s64 fanin_param_get(u32 i)
{
	struct fanin_param *p = &params[i];

	switch (p->size) {
	case 1: return p->is_signed ? *(s8 *)p->at : *(u8 *)p->at;
	case 2: return p->is_signed ? *(s16 *)p->at : *(u16 *)p->at;
	case 4: return p->is_signed ? *(s32 *)p->at : *(u32 *)p->at;
	default: return *(s64 *)p->at;
	}
}
void fanin_param_range(u32 i, s64 *least, s64 *most)
{
	u32 bits = min(params[i].size * 8, 62u);

	*least = params[i].is_signed ? -((s64)1 << (bits - 1)) : 0;
	*most = params[i].is_bool ? 1 : params[i].is_signed ? ((s64)1 << (bits - 1)) - 1 : ((s64)1 << bits) - 1;
}
void fanin_param_set(u32 i, s64 v)
{
	struct fanin_param *p = &params[i];

	/* Little and big endian alike: through the type. */
	switch (p->size) {
	case 1: *(u8 *)p->at = v; break;
	case 2: *(u16 *)p->at = v; break;
	case 4: *(u32 *)p->at = v; break;
	default: *(u64 *)p->at = v; break;
	}
}

/* Registers; 0 if a tcp_congestion_ops with what the kernel demands of one came of it. */
int fanin_start(void)
{
	if (fanin_module_init() || !ops)
		return 1;
	return !ops->ssthresh || !ops->undo_cwnd || (!ops->cong_avoid && !ops->cong_control) ? 2 : 0;
}
const char *fanin_name(void) { return ops->name; }
u32 fanin_flags(void) { return ops->flags; }
/* 1: it rules the window alone (cong_control); 2: it must be asked before data leaves. */
u32 fanin_hooks(void) { return (ops->cong_control ? 1 : 0) | (ops->min_tso_segs || ops->cwnd_event ? 2 : 0); }
u64 fanin_sock_size(void) { return sizeof(struct fanin_sock); }

static struct sock *enter(struct fanin_sock *s, const struct fanin_view *v)
{
	struct sock *sk = &s->sk;

	fanin_now_ns = v->now_ns;
	fanin_random = &s->random;
	sk->snd_una = v->snd_una;
	sk->snd_nxt = v->snd_nxt;
	sk->write_seq = v->snd_nxt + v->mss;
	sk->mss_cache = v->mss;
	sk->srtt_us = v->srtt_us << 3;
	sk->rtt_min.s[0].v = v->min_rtt_us ? v->min_rtt_us : ~0u;
	sk->packets_out = v->in_flight;
	sk->max_packets_out = max(sk->packets_out, 1u);
	sk->delivered = v->delivered;
	sk->delivered_ce = v->delivered_ce;
	sk->lost = v->lost;
	sk->data_segs_out = v->data_segs_out;
	sk->app_limited = v->app_limited;
	sk->is_cwnd_limited = v->cwnd_limited;
	sk->tcp_mstamp = v->now_ns / 1000;
	sk->tcp_wstamp_ns = v->next_send_ns;
	sk->tcp_clock_cache = v->now_ns;
	sk->fanin_deadline_ns = v->deadline_ns;
	sk->fanin_unsent = v->message_unsent;
	return sk;
}

static void leave(const struct sock *sk, struct fanin_out *out)
{
	out->cwnd = sk->snd_cwnd;
	out->ssthresh = sk->snd_ssthresh;
	out->pacing_rate = sk->sk_pacing_status == SK_PACING_NONE ? 0 : sk->sk_pacing_rate;
	fanin_random = 0;
}

static void event(struct sock *sk, enum tcp_ca_event ev)
{
	if (sk->icsk_ca_ops->cwnd_event)
		sk->icsk_ca_ops->cwnd_event(sk, ev);
}

static void set_state(struct sock *sk, u8 next)
{
	if (sk->icsk_ca_ops->set_state)
		sk->icsk_ca_ops->set_state(sk, next);
	sk->icsk_ca_state = next;
}

/* The loss machine moved on without a reduction: its end (tcp_end_cwnd_reduction, tcp_try_to_open). */
static void follow_state(struct sock *sk, u32 next)
{
	u8 now = sk->icsk_ca_state;

	if (now == next || next == TCP_CA_CWR || next == TCP_CA_Recovery || next == TCP_CA_Loss)
		return;
	if ((now == TCP_CA_CWR || now == TCP_CA_Recovery) && !sk->icsk_ca_ops->cong_control)
		event(sk, CA_EVENT_COMPLETE_CWR);
	set_state(sk, next);
}

void fanin_new(struct fanin_sock *s, const struct fanin_view *v, u32 cwnd, u32 ssthresh, u64 max_rate, struct fanin_out *out)
{
	struct sock *sk = &s->sk;

	memset(s, 0, sizeof(*s));
	s->random = v->random;
	sk->sk_state = TCP_ESTABLISHED;
	sk->ecn_flags = ops->flags & TCP_CONG_NEEDS_ECN ? TCP_ECN_OK : 0;
	sk->icsk_ca_ops = ops;
	sk->snd_cwnd = cwnd;
	sk->snd_ssthresh = ssthresh;
	sk->snd_cwnd_clamp = ~0u;
	sk->sk_pacing_rate = sk->sk_max_pacing_rate = max_rate;
	sk->sk_pacing_shift = 10;
	sk->sk_gso_max_size = GSO_LEGACY_MAX_SIZE;
	enter(s, v);
	sk->delivered_mstamp = sk->tcp_mstamp;
	if (ops->init)
		ops->init(sk);
	leave(sk, out);
}

void fanin_on_ack(struct fanin_sock *s, const struct fanin_view *v, const struct fanin_ack *a, struct fanin_out *out)
{
	struct sock *sk = enter(s, v);
	const struct tcp_congestion_ops *o = sk->icsk_ca_ops;
	struct ack_sample sample = { a->acked, a->rtt_us, v->in_flight };

	if (a->delivered)
		sk->delivered_mstamp = sk->tcp_mstamp;
	if (o->pkts_acked)
		o->pkts_acked(sk, &sample);
	if (o->in_ack_event)
		o->in_ack_event(sk, a->ece ? CA_ACK_ECE : 0);
	/* The kernel leaves a recovery before it asks for growth; fanin lets the ACK that ends one grow and says so by may_raise. */
	follow_state(sk, v->state == TCP_CA_Recovery && a->may_raise && !o->cong_control ? TCP_CA_Open : v->state);
	if (o->cong_control) {
		struct rate_sample rs = {
			.prior_delivered = a->rate_prior_delivered, .delivered = a->rate_delivered, .interval_us = a->rate_interval_us,
			.snd_interval_us = a->rate_interval_us, .rcv_interval_us = a->rate_interval_us, .rtt_us = a->rtt_us,
			.losses = a->losses, .acked_sacked = a->delivered, .prior_in_flight = a->prior_in_flight,
			.is_app_limited = a->rate_app_limited, .is_ack_delayed = a->maybe_delayed, .prior_mstamp = 1, .last_end_seq = v->snd_una,
		};
		if (a->rate_delivered < 0) {
			rs.interval_us = -1;
			rs.prior_mstamp = 0;
		}
		o->cong_control(sk, v->snd_una, a->ece ? FLAG_ECE : 0, &rs);
	} else {
		if (a->may_raise && o->cong_avoid)
			o->cong_avoid(sk, v->snd_una, a->delivered);
		/* What tcp_update_pacing_rate keeps even where nothing is paced (HyStart reads it): twice cwnd/srtt below half of ssthresh. */
		if (sk->srtt_us)
			sk->sk_pacing_rate = (u64)v->mss * 8000000 * (sk->snd_cwnd < sk->snd_ssthresh / 2 ? 200 : 120) / 100 *
					     max(sk->snd_cwnd, sk->packets_out) / sk->srtt_us;
	}
	leave(sk, out);
}

/* cause 0: mark, 1: loss, 2: timeout, 3: timeout for a loss that reduced the window before */
void fanin_on_congestion(struct fanin_sock *s, const struct fanin_view *v, u32 cause, struct fanin_out *out)
{
	struct sock *sk = enter(s, v);
	const struct tcp_congestion_ops *o = sk->icsk_ca_ops;

	if (cause == 3) {
		sk->snd_cwnd = 1;
		sk->snd_cwnd_cnt = 0;
		set_state(sk, TCP_CA_Loss);
		leave(sk, out);
		return;
	}
	sk->prior_ssthresh = tcp_current_ssthresh(sk);
	sk->prior_cwnd = sk->snd_cwnd;
	sk->snd_ssthresh = o->ssthresh(sk);
	sk->high_seq = sk->snd_nxt;
	sk->snd_cwnd_cnt = 0;
	if (cause == 2) {
		event(sk, CA_EVENT_LOSS);
		sk->snd_cwnd = 1;
		set_state(sk, TCP_CA_Loss);
	} else {
		set_state(sk, cause == 0 ? TCP_CA_CWR : TCP_CA_Recovery);
		/* How fast the window falls there is the sender's (PRR). */
		if (!o->cong_control)
			sk->snd_cwnd = min(sk->snd_cwnd, sk->snd_ssthresh);
	}
	leave(sk, out);
}

/*
 * A recovery begins within an ECN reduction (tcp_enter_recovery): ssthresh() is not asked again, set_state() is told while `window` packets
 * may be outstanding, and nothing of it is undone.
 */
void fanin_on_loss_in_cwr(struct fanin_sock *s, const struct fanin_view *v, u32 window, struct fanin_out *out)
{
	struct sock *sk = enter(s, v);
	u32 cwnd = sk->snd_cwnd;

	sk->prior_ssthresh = 0;
	if (!sk->icsk_ca_ops->cong_control)
		sk->snd_cwnd = window;
	set_state(sk, TCP_CA_Recovery);
	if (!sk->icsk_ca_ops->cong_control)
		sk->snd_cwnd = min(cwnd, sk->snd_ssthresh);
	leave(sk, out);
}

/* Recovery ended: the window at most `limit`, if there is one. */
void fanin_on_recovered(struct fanin_sock *s, const struct fanin_view *v, u32 limit, struct fanin_out *out)
{
	struct sock *sk = enter(s, v);

	if (sk->icsk_ca_state == TCP_CA_Recovery && !sk->icsk_ca_ops->cong_control)
		event(sk, CA_EVENT_COMPLETE_CWR);
	if (sk->icsk_ca_state != TCP_CA_Open)
		set_state(sk, TCP_CA_Open);
	sk->snd_cwnd = max(min(sk->snd_cwnd, limit), 1u);
	leave(sk, out);
}

/* tcp_ack() with nothing delivered. */
void fanin_on_empty_ack(struct fanin_sock *s, const struct fanin_view *v, struct fanin_out *out)
{
	struct sock *sk = enter(s, v);

	if (sk->icsk_ca_ops->in_ack_event)
		sk->icsk_ca_ops->in_ack_event(sk, 0);
	leave(sk, out);
}

void fanin_on_undo(struct fanin_sock *s, const struct fanin_view *v, struct fanin_out *out)
{
	struct sock *sk = enter(s, v);

	sk->snd_cwnd = sk->icsk_ca_ops->undo_cwnd(sk);
	sk->snd_ssthresh = max(sk->snd_ssthresh, sk->prior_ssthresh);
	leave(sk, out);
}

void fanin_on_restart(struct fanin_sock *s, const struct fanin_view *v, u32 cwnd, u32 ssthresh, struct fanin_out *out)
{
	struct sock *sk = enter(s, v);

	event(sk, CA_EVENT_CWND_RESTART);
	sk->snd_cwnd = cwnd;
	sk->snd_ssthresh = ssthresh;
	leave(sk, out);
}

void fanin_before_send(struct fanin_sock *s, const struct fanin_view *v, struct fanin_out *out)
{
	struct sock *sk = enter(s, v);

	follow_state(sk, v->state);
	if (v->snd_una == v->snd_nxt)
		sk->delivered_mstamp = sk->tcp_mstamp;
	if (sk->icsk_ca_ops->min_tso_segs)
		sk->icsk_ca_ops->min_tso_segs(sk);
	if (!v->in_flight)
		event(sk, CA_EVENT_TX_START);
	leave(sk, out);
}

void fanin_release(struct fanin_sock *s)
{
	if (s->sk.icsk_ca_ops && s->sk.icsk_ca_ops->release)
		s->sk.icsk_ca_ops->release(&s->sk);
}
