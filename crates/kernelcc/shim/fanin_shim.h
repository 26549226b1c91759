/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What a tcp_congestion_ops C file of Linux sees when fanin compiles it for the simulator: the fields and helpers that congestion control
 * may use, under the kernel's names. Every <linux/...> and <net/...> header that such files include is this one.
 *
 * There is no state here but the socket and a thread's clock and random stream, which fanin sets before each call: a run stays a
 * function of its events. An unsupported field or helper is a compiler error, which fanin turns into a sentence with its line.
 */
#ifndef FANIN_SHIM_H
#define FANIN_SHIM_H
#define FANIN_SHIM 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8; typedef uint16_t u16; typedef uint32_t u32; typedef uint64_t u64;
typedef int8_t s8; typedef int16_t s16; typedef int32_t s32; typedef int64_t s64;
typedef u8 __u8; typedef u16 __u16; typedef u32 __u32; typedef u64 __u64; typedef s32 __s32; typedef s64 __s64;
typedef u16 __be16; typedef u32 __be32; typedef s64 ktime_t;

/* ---- compiler and module words ---------------------------------------------------------------------------------------------- */

#define __init
#define __exit
#define __read_mostly
#define __always_unused
#define __bpf_kfunc
#define __initconst
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#define noinline __attribute__((noinline))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define fallthrough __attribute__((fallthrough))
#define ____cacheline_aligned_in_smp
#define READ_ONCE(x) (x)
#define WRITE_ONCE(x, v) ((x) = (v))
#define BUILD_BUG_ON(x) _Static_assert(!(x), "BUILD_BUG_ON: " #x)
#define WARN_ON(x) (!!(x))
#define WARN_ON_ONCE(x) (!!(x))
#define WARN(x, ...) (!!(x))
#define WARN_ONCE(x, ...) (!!(x))
#define BUG_ON(x) ((void)(x))
#define pr_err(...) ((void)0)
#define pr_info(...) ((void)0)
#define pr_debug(...) ((void)0)
#define pr_warn_once(...) ((void)0)
#define container_of(p, t, m) ((t *)((char *)(p) - offsetof(t, m)))
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define BIT(n) (1UL << (n))
#define EXPORT_SYMBOL_GPL(x)
#define EXPORT_SYMBOL(x)
#define MODULE_AUTHOR(x)
#define MODULE_LICENSE(x)
#define MODULE_DESCRIPTION(x)
#define MODULE_VERSION(x)
#define MODULE_ALIAS(x)
#define MODULE_PARM_DESC(n, x)
#define MODULE_INFO(n, x)
struct module;
#define THIS_MODULE ((struct module *)0)

/* What follows is called or read by glue.c; the names are fanin's. */
struct fanin_param { const char *name; void *at; u32 size; bool is_signed, is_bool; };
extern void fanin_add_param(const char *name, void *at, u32 size, bool is_signed, bool is_bool);
#define fanin_param_of(shown, variable) \
	__attribute__((constructor)) static void fanin_param_##shown(void) \
	{ \
		fanin_add_param(#shown, &variable, sizeof(variable), (__typeof__(variable))-1 < (__typeof__(variable))1, \
				_Generic(variable, bool: true, default: false)); \
	}
#define module_param(name, type, mode) fanin_param_of(name, name)
#define module_param_named(name, variable, type, mode) fanin_param_of(name, variable)
struct kernel_param { const char *name; };
struct kernel_param_ops {
	int (*set)(const char *value, const struct kernel_param *kp);
	int (*get)(char *buffer, const struct kernel_param *kp);
};
#define module_param_cb(name, ops, variable, mode) \
	__attribute__((constructor)) static void fanin_param_##name(void) \
	{ \
		(void)(ops); \
		fanin_add_param(#name, variable, sizeof(*(variable)), (__typeof__(*(variable)))-1 < (__typeof__(*(variable)))1, false); \
	}
extern int param_set_uint_minmax(const char *value, const struct kernel_param *kp, unsigned int min, unsigned int max);
extern int param_get_uint(char *buffer, const struct kernel_param *kp);
#define module_init(f) int fanin_module_init(void) { return f(); }
#define module_exit(f) void fanin_module_exit(void) { f(); }
#define late_initcall(f) module_init(f)

#define BTF_KFUNCS_START(name) static int name __attribute__((unused));
#define BTF_KFUNCS_END(name)
#define BTF_SET8_START(name) static int name __attribute__((unused));
#define BTF_SET8_END(name)
#define BTF_ID_FLAGS(...)
#define BTF_ID(...)
struct btf_kfunc_id_set { struct module *owner; void *set; };
#define BTF_FANIN_SET
#define BPF_PROG_TYPE_STRUCT_OPS 27
#define register_btf_kfunc_id_set(type, set) ((void)(set), 0)

/* ---- arithmetic ------------------------------------------------------------------------------------------------------------- */

#define min(a, b) ({ __typeof__(a) _a = (a); __typeof__(b) _b = (b); _a < _b ? _a : _b; })
#define max(a, b) ({ __typeof__(a) _a = (a); __typeof__(b) _b = (b); _a > _b ? _a : _b; })
#define min3(a, b, c) min(min(a, b), c)
#define max3(a, b, c) max(max(a, b), c)
#define min_t(t, a, b) ({ t _a = (a); t _b = (b); _a < _b ? _a : _b; })
#define max_t(t, a, b) ({ t _a = (a); t _b = (b); _a > _b ? _a : _b; })
#define min_not_zero(a, b) ({ __typeof__(a) _x = (a); __typeof__(b) _y = (b); _x == 0 ? _y : (_y == 0 ? _x : min(_x, _y)); })
#define clamp(v, lo, hi) min((__typeof__(v))max(v, lo), hi)
#define clamp_t(t, v, lo, hi) min_t(t, max_t(t, v, lo), hi)
#define swap(a, b) do { __typeof__(a) _t = (a); (a) = (b); (b) = _t; } while (0)
/* Of an unsigned difference, too: its bits are taken for signed ones. */
#define abs(x) ({ __typeof__(x) _x = (x); s64 _a = sizeof(_x) == 4 ? (s64)(s32)_x : (s64)_x; _a < 0 ? -_a : _a; })
#define DIV_ROUND_UP(n, d) (((n) + (d) - 1) / (d))
#define do_div(n, base) ({ u32 _b = (base); u32 _r = (u64)(n) % _b; (n) = (u64)(n) / _b; _r; })
static inline u64 div_u64(u64 n, u32 d) { return n / d; }
static inline u64 div64_u64(u64 n, u64 d) { return n / d; }
static inline u64 div64_ul(u64 n, unsigned long d) { return n / d; }
static inline s64 div_s64(s64 n, s32 d) { return n / d; }
static inline s64 div64_s64(s64 n, s64 d) { return n / d; }
#define div64_long(n, d) ((s64)(n) / (d))
static inline int fls(unsigned int x) { return x ? 32 - __builtin_clz(x) : 0; }
static inline int fls64(u64 x) { return x ? 64 - __builtin_clzll(x) : 0; }
static inline int ilog2(u64 x) { return fls64(x) - 1; }
static inline unsigned long int_sqrt(unsigned long x)
{
	unsigned long r = 0, b = 1UL << 62;

	for (; b; b >>= 2) {
		if (x >= r + b) {
			x -= r + b;
			r = (r >> 1) + b;
		} else {
			r >>= 1;
		}
	}
	return r;
}
#define cmpxchg(p, old, new) ({ __typeof__(*(p)) _was = *(p); if (_was == (old)) *(p) = (new); _was; })
#define U8_MAX 255
#define U16_MAX 65535
#define U32_MAX 0xffffffffu
#define U64_MAX (~0ull)
#define S32_MAX 0x7fffffff
#define between(s1, s2, s3) ((u32)(s3) - (u32)(s2) >= (u32)(s1) - (u32)(s2))
#define before(a, b) ((s32)((u32)(a) - (u32)(b)) < 0)
#define after(a, b) before(b, a)

/* ---- time and chance: set by fanin before every call ------------------------------------------------------------------------- */

#define HZ 1000
#define USEC_PER_SEC 1000000L
#define USEC_PER_MSEC 1000L
#define NSEC_PER_USEC 1000L
#define NSEC_PER_MSEC 1000000L
#define NSEC_PER_SEC 1000000000L
#define MSEC_PER_SEC 1000L
extern __thread u64 fanin_now_ns;
extern __thread u64 *fanin_random;
#define jiffies ((unsigned long)(fanin_now_ns / (NSEC_PER_SEC / HZ)))
#define tcp_jiffies32 ((u32)jiffies)
static inline u64 ktime_get_ns(void) { return fanin_now_ns; }
static inline ktime_t ktime_get(void) { return fanin_now_ns; }
static inline u64 tcp_clock_ns(void) { return fanin_now_ns; }
static inline u64 tcp_clock_us(void) { return fanin_now_ns / 1000; }
static inline u64 tcp_clock_ms(void) { return fanin_now_ns / 1000000; }
static inline unsigned long msecs_to_jiffies(unsigned int m) { return DIV_ROUND_UP((u64)m * HZ, 1000); }
static inline unsigned long usecs_to_jiffies(unsigned int u) { return DIV_ROUND_UP((u64)u * HZ, 1000000); }
static inline unsigned int jiffies_to_usecs(unsigned long j) { return j * (1000000 / HZ); }
static inline unsigned int jiffies_to_msecs(unsigned long j) { return j * (1000 / HZ); }
#define time_after(a, b) ((long)((b) - (a)) < 0)
#define time_before(a, b) time_after(b, a)
#define time_after_eq(a, b) ((long)((a) - (b)) >= 0)
#define time_before_eq(a, b) time_after_eq(b, a)
extern u32 fanin_random_u32(void);
static inline u32 get_random_u32(void) { return fanin_random_u32(); }
static inline u32 get_random_u32_below(u32 n) { return ((u64)fanin_random_u32() * n) >> 32; }
static inline u32 prandom_u32_max(u32 n) { return get_random_u32_below(n); }
#define prandom_u32() fanin_random_u32()

/* Windowed minimum and maximum over time: the best of the window and the two that may follow it (after K. Nichols). */
struct minmax_sample { u32 t, v; };
struct minmax { struct minmax_sample s[3]; };
static inline u32 minmax_get(const struct minmax *m) { return m->s[0].v; }
static inline u32 minmax_reset(struct minmax *m, u32 t, u32 v)
{
	m->s[0] = m->s[1] = m->s[2] = (struct minmax_sample){ t, v };
	return v;
}
extern u32 minmax_running_max(struct minmax *m, u32 window, u32 t, u32 v);
extern u32 minmax_running_min(struct minmax *m, u32 window, u32 t, u32 v);

/* ---- the socket --------------------------------------------------------------------------------------------------------------- */

enum { TCP_ESTABLISHED = 1, TCP_SYN_SENT, TCP_SYN_RECV, TCP_FIN_WAIT1, TCP_FIN_WAIT2, TCP_TIME_WAIT, TCP_CLOSE, TCP_CLOSE_WAIT,
       TCP_LAST_ACK, TCP_LISTEN, TCP_CLOSING };
enum tcp_ca_state { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };
enum { TCPF_CA_Open = 1, TCPF_CA_Disorder = 2, TCPF_CA_CWR = 4, TCPF_CA_Recovery = 8, TCPF_CA_Loss = 16 };
enum tcp_ca_event {
	CA_EVENT_TX_START, CA_EVENT_CWND_RESTART, CA_EVENT_COMPLETE_CWR, CA_EVENT_LOSS, CA_EVENT_ECN_NO_CE, CA_EVENT_ECN_IS_CE,
};
enum tcp_ca_ack_event_flags { CA_ACK_SLOWPATH = 1, CA_ACK_WIN_UPDATE = 2, CA_ACK_ECE = 4 };
enum { SK_PACING_NONE, SK_PACING_NEEDED, SK_PACING_FQ };
enum { ICSK_ACK_SCHED = 1, ICSK_ACK_TIMER = 2, ICSK_ACK_PUSHED = 4, ICSK_ACK_NOW = 8 };
#define TCP_ECN_OK 1
#define TCP_ECN_QUEUE_CWR 2
#define TCP_ECN_DEMAND_CWR 4
#define TCP_CONG_NON_RESTRICTED 1
#define TCP_CONG_NEEDS_ECN 2
#define TCP_CA_NAME_MAX 16
#define TCP_INFINITE_SSTHRESH 0x7fffffff
#define TCP_INIT_CWND 10
#define TCP_RTO_MAX ((unsigned)(120 * HZ))
#define MAX_TCP_HEADER 320
#define MAX_TCP_WINDOW 32767U
#define GSO_MAX_SIZE 65536
#define GSO_LEGACY_MAX_SIZE 65536u
#define ICSK_CA_PRIV_SIZE (13 * sizeof(u64))
#define TCP_PLB_SCALE 8
#define FLAG_ECE 0x40

struct list_head { struct list_head *next, *prev; };
union tcp_cc_info {
	struct { u32 tcpv_enabled, tcpv_rttcnt, tcpv_rtt, tcpv_minrtt; } vegas;
	struct { u16 dctcp_enabled, dctcp_ce_state; u32 dctcp_alpha, dctcp_ab_ecn, dctcp_ab_tot; } dctcp;
	struct { u32 bbr_bw_lo, bbr_bw_hi, bbr_min_rtt, bbr_pacing_gain, bbr_cwnd_gain; } bbr;
};
struct tcpvegas_info { u32 tcpv_enabled, tcpv_rttcnt, tcpv_rtt, tcpv_minrtt; };
enum { INET_DIAG_NONE, INET_DIAG_MEMINFO, INET_DIAG_INFO, INET_DIAG_VEGASINFO, INET_DIAG_CONG, INET_DIAG_DCTCPINFO = 9,
       INET_DIAG_BBRINFO = 16 };
struct tcp_congestion_ops;

/* One struct serves as all three; the casts below are the identity. */
struct sock {
	volatile u8 sk_state;
	u32 sk_pacing_status;
	unsigned long sk_pacing_rate, sk_max_pacing_rate;
	u8 sk_pacing_shift;
	u32 sk_gso_max_size;
	u64 fanin_deadline_ns, fanin_unsent;

	const struct tcp_congestion_ops *icsk_ca_ops;
	u8 icsk_ca_state;
	u8 icsk_retransmits;
	struct { u8 pending; } icsk_ack;
	u64 icsk_ca_priv[13];

	u32 snd_una, snd_nxt, rcv_nxt, write_seq, data_segs_out, high_seq;
	u32 packets_out, sacked_out, lost_out, retrans_out, max_packets_out;
	u32 snd_cwnd, snd_cwnd_cnt, snd_cwnd_clamp, snd_cwnd_stamp, snd_ssthresh, prior_cwnd, prior_ssthresh;
	u32 delivered, delivered_ce, lost, total_retrans, app_limited;
	u32 srtt_us, mdev_us, mss_cache, advmss;
	u64 tcp_mstamp, delivered_mstamp, first_tx_mstamp, tcp_wstamp_ns, tcp_clock_cache, bytes_acked, bytes_sent;
	u32 lsndtime;
	struct minmax rtt_min;
	u8 ecn_flags;
	bool is_cwnd_limited;
};
#define tcp_sock sock
#define inet_connection_sock sock
static inline struct sock *tcp_sk(const struct sock *sk) { return (struct sock *)sk; }
static inline struct sock *inet_csk(const struct sock *sk) { return (struct sock *)sk; }
static inline void *inet_csk_ca(const struct sock *sk) { return (void *)sk->icsk_ca_priv; }

struct ack_sample { u32 pkts_acked; s32 rtt_us; u32 in_flight; };
struct rate_sample {
	u64 prior_mstamp;
	u32 prior_delivered, prior_delivered_ce;
	s32 delivered, delivered_ce;
	long interval_us;
	u32 snd_interval_us, rcv_interval_us;
	long rtt_us;
	int losses;
	u32 acked_sacked, prior_in_flight, last_end_seq;
	bool is_app_limited, is_retrans, is_ack_delayed;
};
struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event ev);
	void (*in_ack_event)(struct sock *sk, u32 flags);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*min_tso_segs)(struct sock *sk);
	void (*cong_control)(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs);
	u32 (*undo_cwnd)(struct sock *sk);
	u32 (*sndbuf_expand)(struct sock *sk);
	size_t (*get_info)(struct sock *sk, u32 ext, int *attr, union tcp_cc_info *info);
	char name[TCP_CA_NAME_MAX];
	struct module *owner;
	struct list_head list;
	u32 key, flags;
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
};

extern int tcp_register_congestion_control(struct tcp_congestion_ops *ops);
extern void tcp_unregister_congestion_control(struct tcp_congestion_ops *ops);
extern u32 tcp_slow_start(struct sock *tp, u32 acked);
extern void tcp_cong_avoid_ai(struct sock *tp, u32 w, u32 acked);
extern void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked);
extern u32 tcp_reno_ssthresh(struct sock *sk);
extern u32 tcp_reno_undo_cwnd(struct sock *sk);

static inline u32 tcp_snd_cwnd(const struct sock *tp) { return tp->snd_cwnd; }
static inline void tcp_snd_cwnd_set(struct sock *tp, u32 w) { tp->snd_cwnd = w; }
static inline bool tcp_in_slow_start(const struct sock *tp) { return tp->snd_cwnd < tp->snd_ssthresh; }
static inline bool tcp_in_initial_slowstart(const struct sock *tp) { return tp->snd_ssthresh >= TCP_INFINITE_SSTHRESH; }
/* fanin's window validation decides; see adapter.rs. */
static inline bool tcp_is_cwnd_limited(const struct sock *sk) { return sk->is_cwnd_limited; }
static inline u32 tcp_left_out(const struct sock *tp) { return tp->sacked_out + tp->lost_out; }
static inline u32 tcp_packets_in_flight(const struct sock *tp) { return tp->packets_out - tcp_left_out(tp) + tp->retrans_out; }
static inline u32 tcp_min_rtt(const struct sock *tp) { return minmax_get(&tp->rtt_min); }
static inline u32 tcp_stamp_us_delta(u64 t1, u64 t0) { return (s64)(t1 - t0) > 0 ? t1 - t0 : 0; }
/* Half of the window, and in avoidance three quarters of it, but no less than ssthresh. */
static inline u32 tcp_current_ssthresh(const struct sock *sk)
{
	if (sk->icsk_ca_state == TCP_CA_CWR || sk->icsk_ca_state == TCP_CA_Recovery)
		return sk->snd_ssthresh;
	return max(sk->snd_ssthresh, (sk->snd_cwnd >> 1) + (sk->snd_cwnd >> 2));
}
/* Counters of the host. */
#define sock_net(sk) ((void *)(sk))
#define NET_INC_STATS(net, field) ((void)(net))
#define NET_ADD_STATS(net, field, n) ((void)(net), (void)(n))
/* Receiver's side and routing: the simulator's own. */
static inline void __tcp_send_ack(struct sock *sk, u32 rcv_nxt, u16 flags) { (void)sk; (void)rcv_nxt; (void)flags; }
static inline void INET_ECN_dontxmit(struct sock *sk) { (void)sk; }
static inline void INET_ECN_xmit(struct sock *sk) { (void)sk; }
struct tcp_plb_state { u8 consec_cong_rounds:5, unused:3; u32 pause_until; };
static inline void tcp_plb_init(const struct sock *sk, struct tcp_plb_state *p) { (void)sk; (void)p; }
static inline void tcp_plb_update_state(const struct sock *sk, struct tcp_plb_state *p, int r) { (void)sk; (void)p; (void)r; }
static inline void tcp_plb_check_rehash(struct sock *sk, struct tcp_plb_state *p) { (void)sk; (void)p; }
static inline void tcp_plb_update_state_upon_rto(struct sock *sk, struct tcp_plb_state *p) { (void)sk; (void)p; }

#endif
