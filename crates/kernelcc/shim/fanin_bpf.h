/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the source of a BPF congestion control sees when fanin compiles it for the simulator: vmlinux.h, <bpf/...> and bpf_tracing_net.h are
 * this file. Types and kernel functions are fanin_shim.h's; a BPF program has no inline functions of the kernel and writes its own, so
 * those of the shim step aside. Operations are registered by what crates/kernelcc/src/bpf.rs appends.
 */
#ifndef FANIN_BPF_H
#define FANIN_BPF_H
#include "fanin_shim.h"

#define SEC(name) __attribute__((used))
#define __ksym
#define __kconfig
#define __uint(name, value) int (*name)[value]
#define __type(name, value) __typeof__(value) *name
#define BPF_PROG(name, ...) name(__VA_ARGS__)
#define BPF_CORE_READ_BITFIELD(from, field) ((from)->field)

extern unsigned long CONFIG_HZ;

enum { BPF_MAP_TYPE_SK_STORAGE = 24, BPF_F_NO_PREALLOC = 1, SOL_TCP = 6, TCP_CONGESTION = 13 };

#define bpf_ktime_get_ns() fanin_now_ns
#define bpf_jiffies64() ((u64)jiffies)
#define bpf_get_prandom_u32() fanin_random_u32()
#define bpf_printk(...) ((void)0)
/* The receiver is the simulator's own: it acknowledges each change of the marks itself. */
#define bpf_tcp_send_ack(tp, next) ((void)(tp), (void)(next), 0)
/* No other congestion control to change to, and no storage but icsk_ca_priv: creating some is an undeclared word and so an error. */
#define bpf_setsockopt(sk, level, name, value, size) ((void)(sk), (void)(value), -1)
#define bpf_getsockopt(sk, level, name, value, size) ((void)(sk), (void)(value), -1)
#define bpf_sk_storage_get(map, sk, value, flags) ((void)(map), (void)(sk), (void)(flags), (void *)0)
#define bpf_sk_storage_delete(map, sk) ((void)(map), (void)(sk), -1)

#undef min
#undef max
#undef min_not_zero
#undef before
#undef after
#undef clamp
#undef swap
#undef USEC_PER_MSEC
#undef USEC_PER_SEC
#define div_u64 bpf_div_u64
#define div64_u64 bpf_div64_u64
#define div64_ul bpf_div64_ul
#define fls bpf_fls
#define fls64 bpf_fls64
#define ilog2 bpf_ilog2
#define int_sqrt bpf_int_sqrt

#endif
