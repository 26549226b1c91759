/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * One source, three homes, for the congestion controls of this folder:
 *   - BPF struct_ops on a running kernel (clang -target bpf): the structs below hold only what the files use; libbpf finds the fields by
 *     name in the kernel's BTF (CO-RE), so that one object loads on every kernel that has them;
 *   - C tcp_congestion_ops inside a kernel tree (the virtual kernel): the kernel's own headers;
 *   - the simulator: the same as in a kernel tree, over the headers of crates/kernelcc/shim.
 *
 * Windows: snd_cwnd has whole packets. Where an equation gives a fraction, struct cc_frac keeps it in 1/2^20 packet beside the whole
 * number it belongs to, and forgets it when the kernel wrote another window.
 */
#ifndef FANIN_CC_H
#define FANIN_CC_H

#ifdef __bpf__
/* ---- BPF ------------------------------------------------------------------------------------------------------------------ */

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct sock_common {
	volatile unsigned char skc_state;
	u16 skc_num;
};
struct sock {
	struct sock_common __sk_common;
};
struct inet_connection_sock {
	struct {
		u8 pending;
	} icsk_ack;
	u8 icsk_ca_state:5;
	u64 icsk_ca_priv[13];
};
struct tcp_sock {
	u32 snd_una, snd_nxt, rcv_nxt, write_seq, data_segs_out;
	u32 packets_out, sacked_out, lost_out, retrans_out, max_packets_out;
	u32 snd_cwnd, snd_cwnd_cnt, snd_ssthresh, prior_cwnd;
	u32 delivered, delivered_ce, srtt_us, mss_cache;
	u64 tcp_mstamp;
	u8 ecn_flags;
	u8 is_cwnd_limited:1;
};
struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
	u32 in_flight;
};
#pragma clang attribute pop

struct rate_sample;
enum tcp_ca_event {
	CA_EVENT_TX_START, CA_EVENT_CWND_RESTART, CA_EVENT_COMPLETE_CWR, CA_EVENT_LOSS, CA_EVENT_ECN_NO_CE, CA_EVENT_ECN_IS_CE,
};
enum tcp_ca_state { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };
enum { TCP_CONG_NON_RESTRICTED = 1, TCP_CONG_NEEDS_ECN = 2 };
enum { TCP_ECN_OK = 1, TCP_ECN_DEMAND_CWR = 4, ICSK_ACK_TIMER = 2, ICSK_ACK_NOW = 8, TCP_CLOSE = 7, TCP_LISTEN = 10 };

struct tcp_congestion_ops {
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event ev);
	void (*in_ack_event)(struct sock *sk, u32 flags);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*min_tso_segs)(struct sock *sk);
	u32 (*undo_cwnd)(struct sock *sk);
	char name[16];
	u32 flags;
};

extern u32 tcp_slow_start(struct tcp_sock *tp, u32 acked) __ksym;
extern void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 w, u32 acked) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;
extern u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;
extern u32 tcp_reno_ssthresh(struct sock *sk) __ksym;

char _license[] SEC("license") = "GPL";

/* What `fanin linux status` shows; ssthresh results that no ssthresh() can have given count as skipped callbacks. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 8);
	__type(key, u32);
	__type(value, u64);
} counters SEC(".maps");

static __always_inline void cc_count(u32 what)
{
	u64 *n = bpf_map_lookup_elem(&counters, &what);

	if (n)
		__sync_fetch_and_add(n, 1);
}

static __always_inline struct tcp_sock *tcp_sk(const struct sock *sk) { return (struct tcp_sock *)sk; }
static __always_inline struct inet_connection_sock *inet_csk(const struct sock *sk) { return (struct inet_connection_sock *)sk; }
static __always_inline void *inet_csk_ca(const struct sock *sk) { return (void *)inet_csk(sk)->icsk_ca_priv; }
static __always_inline bool before(u32 a, u32 b) { return (s32)(a - b) < 0; }
#define after(a, b) before(b, a)
static __always_inline bool tcp_in_slow_start(const struct tcp_sock *tp) { return tp->snd_cwnd < tp->snd_ssthresh; }
static __always_inline u8 cc_state(const struct sock *sk) { return BPF_CORE_READ_BITFIELD(inet_csk(sk), icsk_ca_state); }
static __always_inline u8 cc_tcp_state(const struct sock *sk) { return sk->__sk_common.skc_state; }
static __always_inline u64 cc_now_ns(void) { return bpf_ktime_get_ns(); }
static __always_inline u32 tcp_packets_in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
}
static __always_inline u32 tcp_left_out(const struct tcp_sock *tp) { return tp->sacked_out + tp->lost_out; }
/* The window, not the application, limits: as tcp_is_cwnd_limited() says. */
static __always_inline bool cc_cwnd_limited(const struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	return BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited) || (tcp_in_slow_start(tp) && tp->snd_cwnd < 2 * tp->max_packets_out);
}
static __always_inline void cc_ack_now(struct sock *sk, u32 rcv_nxt) { bpf_tcp_send_ack(tcp_sk(sk), rcv_nxt); }

#define min_t(t, a, b) ((t)(a) < (t)(b) ? (t)(a) : (t)(b))
#define max_t(t, a, b) ((t)(a) > (t)(b) ? (t)(a) : (t)(b))

/* A parameter of the load, read-only once loaded. */
#define CC_PARAM(name, value, text) const volatile u32 name = value
#define CC(ret, name, ...) SEC("struct_ops/" #name) ret BPF_PROG(name, ##__VA_ARGS__)
#define CC_FN(f) ((void *)f)
#ifndef CC_SECTION
/* Gone with the process that loaded it, unless pinned (5.15 to 6.3 know only ".struct_ops"). */
#define CC_SECTION ".struct_ops.link"
#endif
#define CC_REGISTER(ops_name, ca_name, ca_flags, ...) \
	SEC(CC_SECTION) struct tcp_congestion_ops ops_name = { __VA_ARGS__, .flags = ca_flags, .name = ca_name }

#else
/* ---- a kernel tree, or the simulator's shim of it --------------------------------------------------------------------------- */

#include <linux/module.h>
#include <linux/mm.h>
#include <net/tcp.h>

#define cc_count(what) ((void)(what))
static inline u8 cc_state(const struct sock *sk) { return inet_csk(sk)->icsk_ca_state; }
static inline u8 cc_tcp_state(const struct sock *sk) { return sk->sk_state; }
static inline u64 cc_now_ns(void) { return ktime_get_ns(); }
static inline bool cc_cwnd_limited(const struct sock *sk) { return tcp_is_cwnd_limited(sk); }
static inline void cc_ack_now(struct sock *sk, u32 rcv_nxt) { __tcp_send_ack(sk, rcv_nxt, 0); }

#define CC_PARAM(name, value, text) \
	static unsigned int name __read_mostly = value; \
	module_param(name, uint, 0644); \
	MODULE_PARM_DESC(name, text)
#define CC(ret, name, ...) static ret name(__VA_ARGS__)
#define CC_FN(f) f
#define CC_REGISTER(ops_name, ca_name, ca_flags, ...) \
	static struct tcp_congestion_ops ops_name __read_mostly = { \
		__VA_ARGS__, .flags = ca_flags, .name = ca_name, .owner = THIS_MODULE }; \
	static int __init ops_name##_register(void) { return tcp_register_congestion_control(&ops_name); } \
	static void __exit ops_name##_unregister(void) { tcp_unregister_congestion_control(&ops_name); } \
	module_init(ops_name##_register); \
	module_exit(ops_name##_unregister); \
	MODULE_LICENSE("GPL v2"); \
	MODULE_DESCRIPTION("fanin: " ca_name)

#endif

/* ---- all three -------------------------------------------------------------------------------------------------------------- */

/* Counters by number, named in crates/linux. */
enum { COUNT_SOCKETS, COUNT_ACKS, COUNT_CUTS, COUNT_SKIPPED, COUNT_OWN1, COUNT_OWN2 };

#define CC_Q 20			/* fractional bits of a window */
#define CC_ONE (1u << CC_Q)

struct cc_frac {
	u32 whole;		/* the snd_cwnd that the fraction belongs to */
	u32 frac;		/* 1/2^20 packet */
};

/* cwnd in 1/2^20 packet. */
static __always_inline u64 cc_cwnd(const struct tcp_sock *tp, const struct cc_frac *f)
{
	u32 w = tp->snd_cwnd;

	return ((u64)w << CC_Q) | (w == f->whole ? f->frac & (CC_ONE - 1) : 0);
}

/* Remembers a window without writing it: what ssthresh() returns becomes snd_cwnd when the reduction ends. */
static __always_inline u32 cc_remember(struct cc_frac *f, u64 cwnd)
{
	f->whole = cwnd >> CC_Q;
	f->frac = cwnd & (CC_ONE - 1);
	return f->whole;
}

static __always_inline void cc_write(struct tcp_sock *tp, struct cc_frac *f, u64 cwnd)
{
	tp->snd_cwnd = cc_remember(f, cwnd);
}

/* RFC 5681 with the fraction kept: slow start below ssthresh, then one packet per window of acknowledged packets. */
static __always_inline void cc_reno_grow(struct sock *sk, struct cc_frac *f, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 old = tp->snd_cwnd;

	if (tcp_in_slow_start(tp))
		acked = tcp_slow_start(tp, acked);
	if (acked)
		tcp_cong_avoid_ai(tp, tp->snd_cwnd, acked);
	if (f->whole == old)
		f->whole = tp->snd_cwnd;
}

/* A reduction's ssthresh is never above the window before it: if it is, the kernel did not run ssthresh(). */
static __always_inline void cc_check_skipped(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (cc_state(sk) >= TCP_CA_CWR && tp->prior_cwnd && tp->snd_ssthresh > max_t(u32, tp->prior_cwnd, 2))
		cc_count(COUNT_SKIPPED);
}

#endif
