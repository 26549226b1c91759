/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * CUBIC's curve (RFC 9438) in whole packets and milliseconds: what GSS over CUBIC grows by above ssthresh. Time is in 1/1024 s where the
 * cube is taken; C = 0.4 is 410/1024, beta = 0.7 is 717/1024.
 */
#ifndef FANIN_CUBIC_H
#define FANIN_CUBIC_H

#include "fanin_cc.h"

#define CUBIC_BETA 717u		/* section 4.6, 1/1024 */
#define CUBIC_SCALE 410u	/* C in 1/1024 packet per s^3 */
#define CUBIC_AIMD 15u		/* packets acknowledged per packet of AIMD growth, in 1/8 of the window: 8 (1 + beta) / (3 (1 - beta)) */

struct cubic {
	u64 epoch_ns;		/* when congestion avoidance began; 0: not yet */
	u32 last_max;		/* W_max after fast convergence */
	u32 origin;		/* where the curve is flat */
	u32 k;			/* time until there, 1/1024 s */
	u32 acked;		/* packets acknowledged towards W_est's next packet */
	u32 w_est;		/* window of an AIMD sender since the start of the epoch */
	u32 cnt;		/* acknowledged packets per packet of growth */
	u32 last_cwnd, last_ms;	/* when the curve was last evaluated */
	u32 min_rtt_us;
};

static __always_inline void cubic_reset(struct cubic *c)
{
	c->epoch_ns = 0;
	c->last_max = c->origin = c->k = c->acked = c->w_est = c->cnt = c->last_cwnd = c->last_ms = c->min_rtt_us = 0;
}

/* Samples of the first second of an epoch do not count: the queue is still full of the last one. */
static __always_inline void cubic_sample(struct cubic *c, u64 now, s32 rtt_us)
{
	if (rtt_us < 0 || (c->epoch_ns && now - c->epoch_ns < 1000000000ull))
		return;
	if (!c->min_rtt_us || (u32)rtt_us < c->min_rtt_us)
		c->min_rtt_us = max_t(u32, rtt_us, 1);
}

/* 64 cbrt(x + 1), rounded up, plus 1: the first guess for a cell of the leading six bits, a little above its upper edge. */
static const u16 cubic_guess[64] = {
	65, 82, 94, 103, 111, 118, 124, 129, 135, 139, 144, 148, 152, 156, 159, 163,
	166, 169, 172, 175, 178, 181, 184, 186, 189, 191, 193, 196, 198, 200, 203, 205,
	207, 209, 211, 213, 215, 217, 219, 220, 222, 224, 226, 227, 229, 231, 232, 234,
	236, 237, 239, 240, 242, 243, 245, 246, 248, 249, 251, 252, 253, 255, 256, 257,
};

/* The cube root of a, at least 64: the guess and one Newton step, within 0.2 % as the kernel's. */
static __always_inline u32 cubic_root(u64 a)
{
	u32 bits = 0, i, shift;
	u64 m = a, x;

#pragma unroll
	for (i = 32; i; i >>= 1)
		if (m >> i) {
			m >>= i;
			bits += i;
		}
	shift = (((bits + 1) * 84) >> 8) - 1;
	x = ((u64)cubic_guess[(a >> (3 * shift)) & 63] << shift) >> 6;
	x = max_t(u64, x, 2);
	/* x' = (2 x + a / x^2) / 3, with 341/1024 for the third */
	return ((2 * x + a / (x * (x - 1))) * 341) >> 10;
}

static __always_inline void cubic_update(struct cubic *c, u32 cwnd, u32 acked, u64 now)
{
	u32 ms = now / 1000000, target, grown;
	u64 t, off, delta;

	c->acked += acked;
	/* The curve moves in milliseconds: not more often than 32 times a second for the same window. */
	if (c->last_cwnd == cwnd && c->last_ms && (s32)(ms - c->last_ms) <= 1000 / 32)
		return;
	if (!(c->epoch_ns && ms == c->last_ms && c->last_ms)) {
		c->last_cwnd = cwnd;
		c->last_ms = ms;
		if (!c->epoch_ns) {
			c->epoch_ns = now;
			c->acked = acked;
			c->w_est = cwnd;
			/* K = cbrt((W_max - cwnd) / C) (equation 2) */
			if (c->last_max <= cwnd) {
				c->k = 0;
				c->origin = cwnd;
			} else {
				c->k = cubic_root((1ull << 40) / (CUBIC_SCALE) * (c->last_max - cwnd));
				c->origin = c->last_max;
			}
		}
		/* W(t + RTT) = C (t + RTT - K)^3 + W_max (equation 1), t since the start of the epoch */
		t = ms - (u32)(c->epoch_ns / 1000000) + (c->min_rtt_us + 999) / 1000;
		t = (t << 10) / 1000;
		off = t < c->k ? c->k - t : t - c->k;
		off = min_t(u64, off, 1u << 18);
		delta = (CUBIC_SCALE * off * off >> 10) * off >> 30;
		delta = min_t(u64, delta, 1u << 30);
		if (t < c->k)
			target = c->origin > delta ? c->origin - delta : 0;
		else
			target = c->origin + delta;
		c->cnt = target > cwnd ? cwnd / (target - cwnd) : 100 * cwnd;
		/* Before the first loss there is no W_max to wait for. */
		if (!c->last_max)
			c->cnt = min_t(u32, c->cnt, 20);
	}
	/* W_est (section 4.3): the window never grows slower than an AIMD sender's. */
	delta = max_t(u32, cwnd * CUBIC_AIMD >> 3, 1);
	grown = c->acked ? (c->acked - 1) / (u32)delta : 0;
	c->acked -= grown * (u32)delta;
	c->w_est += grown;
	if (c->w_est > cwnd)
		c->cnt = min_t(u32, c->cnt, cwnd / (c->w_est - cwnd));
	/* At most 1.5 times per round trip. */
	c->cnt = max_t(u32, c->cnt, 2);
}

/* ssthresh = beta cwnd; fast convergence (section 4.7) remembers less when the window fell since the last loss. */
static __always_inline u32 cubic_cut(struct cubic *c, u32 cwnd)
{
	c->epoch_ns = 0;
	c->last_max = cwnd < c->last_max ? cwnd * (1024 + CUBIC_BETA) / 2048 : cwnd;
	return max_t(u32, cwnd * CUBIC_BETA / 1024, 2);
}

#endif
