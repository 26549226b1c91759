/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Powers and roots in fixed point; Q24 is 1/2^24. The tables are log2(1 + i/64) and 2^(i/64) - 1 in Q24, between whose points we
 * interpolate: log2 is wrong by at most (1/64)^2 / (8 ln 2) = 4.4e-5, 2^x by at most (ln 2 / 64)^2 / 8 = 1.5e-5 of its value.
 */
#ifndef FANIN_FIXED_H
#define FANIN_FIXED_H

#include "fanin_cc.h"

static const u32 cc_log2_table[65] = {
	0, 375270, 744810, 1108793, 1467383, 1820738, 2169009, 2512340,
	2850868, 3184728, 3514044, 3838941, 4159533, 4475935, 4788255, 5096595,
	5401057, 5701737, 5998727, 6292118, 6581994, 6868440, 7151536, 7431359,
	7707984, 7981483, 8251926, 8519380, 8783912, 9045584, 9304457, 9560591,
	9814042, 10064867, 10313120, 10558852, 10802114, 11042956, 11281425, 11517568,
	11751428, 11983051, 12212479, 12439752, 12664911, 12887994, 13109041, 13328087,
	13545168, 13760320, 13973576, 14184969, 14394532, 14602297, 14808293, 15012551,
	15215099, 15415967, 15615181, 15812769, 16008758, 16203172, 16396036, 16587377,
	16777216,
};

static const u32 cc_exp2_table[65] = {
	0, 182692, 367373, 554066, 742791, 933571, 1126429, 1321387,
	1518468, 1717695, 1919091, 2122681, 2328487, 2536534, 2746847, 2959450,
	3174369, 3391627, 3611251, 3833267, 4057701, 4284578, 4513926, 4745771,
	4980141, 5217063, 5456565, 5698675, 5943422, 6190833, 6440939, 6693768,
	6949350, 7207716, 7468895, 7732917, 7999815, 8269619, 8542362, 8818074,
	9096788, 9378538, 9663355, 9951274, 10242328, 10536552, 10833979, 11134645,
	11438586, 11745836, 12056431, 12370409, 12687806, 13008659, 13333006, 13660885,
	13992334, 14327392, 14666099, 15008494, 15354618, 15704511, 16058214, 16415768,
	16777216,
};

/* log2(x) in Q24, for x of at least 1. */
static __always_inline u32 cc_log2(u64 x)
{
	u32 bits = 0, cell, rest, i;
	u64 m = x;

#pragma unroll
	for (i = 32; i; i >>= 1)
		if (m >> i) {
			m >>= i;
			bits += i;
		}
	/* The mantissa after its leading one, in Q24: 6 bits choose the cell, 18 interpolate. */
	m = bits >= 24 ? x >> (bits - 24) : x << (24 - bits);
	m &= (1u << 24) - 1;
	cell = (m >> 18) & 63;
	rest = m & ((1u << 18) - 1);
	return (bits << 24) + cc_log2_table[cell] + (u32)(((u64)(cc_log2_table[cell + 1] - cc_log2_table[cell]) * rest) >> 18);
}

/* 2^x in Q24, for x in Q24 below 2^36. */
static __always_inline u64 cc_exp2(u64 x)
{
	u32 whole = (x >> 24) & 31, cell = (x >> 18) & 63, rest = x & ((1u << 18) - 1);
	u64 m = (1u << 24) + cc_exp2_table[cell] + (((u64)(cc_exp2_table[cell + 1] - cc_exp2_table[cell]) * rest) >> 18);

	return m << whole;
}

/* floor(sqrt(x)) for x below 2^62. The choice of each bit is a mask, not a branch: the verifier would follow both, 2^31 ways. */
static __always_inline u32 cc_sqrt(u64 x)
{
	u64 root = 0, bit = 1ull << 60, test, fits;
	u32 i;

	for (i = 0; i < 31; i++) {
		test = root + bit;
		fits = ~(u64)((s64)(x - test) >> 63);
		/* Keeps the compiler from making a branch of it after all. */
		asm volatile("" : "+r"(fits));
		x -= test & fits;
		root = (root >> 1) + (bit & fits);
		bit >>= 2;
	}
	return root;
}

#endif
