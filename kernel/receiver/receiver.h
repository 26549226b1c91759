/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A receiving host's policy over all its incoming connections (IA-TCP, ICTCP), in front of a kernel that knows nothing of it.
 *
 * A file of this folder declares its parameters, `struct flow` (one connection) and `struct host` (the device), writes the three functions
 *	policy_open(host, flow, now, rtt)	a connection opened, with the round trip of its handshake, ns
 *	policy_use(host, flow, now)		a request left, or data came after a silence
 *	policy_data(host, flow, now, wire, payload, sample)	data arrived; sample: a round trip in ns, or 0
 * which keep flow->p.window, the bytes to advertise, and ends with #include "attach.h". Two homes:
 *   - two tc programs on the device (clang -target bpf): what arrives is measured, what leaves has its window rewritten;
 *   - a shared object for the test that holds it against fanin's Rust (crates/linux/tests).
 * Times are ns, rates bytes/s.
 */
#ifndef FANIN_RECEIVER_H
#define FANIN_RECEIVER_H

#ifdef __bpf__
#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;
/* A parameter of the load, read-only once loaded. */
#define PARAM(name, value, text) const volatile u32 name = value
#else
#include <stdbool.h>
#include <stdint.h>
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;
typedef int32_t s32;
#define PARAM(name, value, text) u32 name = value
#endif

#define SECOND 1000000000ull

/* Counters by number, named in crates/linux. */
enum { COUNT_FLOWS, COUNT_PACKETS, COUNT_REWRITTEN, COUNT_UNKNOWN, COUNT_UP, COUNT_DOWN, COUNTERS };

/* What every policy keeps of a connection. */
struct common {
	u64 window;		/* bytes to advertise */
	u64 last;		/* time of the last data or request */
	u64 syn_at;		/* when the opening packet left; 0: its round trip is known or cannot be */
	u64 stamp_at;		/* when the pending timestamp left first; 0: none is pending */
	u32 stamp;		/* that timestamp */
	u32 newest;		/* timestamp of the last packet that left */
	u32 edge;		/* right edge of what was advertised */
	u8 has_edge;
	u8 has_newest;
	u8 used;		/* it has carried data, either way */
	u8 open;		/* policy_open has been called */
	u8 scale;		/* shift of the windows that this host advertises */
};

static __always_inline u64 max64(u64 a, u64 b) { return a > b ? a : b; }

#endif
