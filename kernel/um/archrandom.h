/* SPDX-License-Identifier: GPL-2.0 */
/*
 * arch/um/include/asm/archrandom.h of fanin's virtual kernel: instead of the host's randomness, the same numbers in every run, so that a
 * run repeats bit by bit. The kernel mixes its command line in (random_init_early), and with it the seed of the run.
 */
#ifndef __ASM_UM_ARCHRANDOM_H__
#define __ASM_UM_ARCHRANDOM_H__

#include <linux/types.h>

unsigned long fanin_random(void);

static inline size_t __must_check arch_get_random_longs(unsigned long *v, size_t max_longs)
{
	size_t i;

	for (i = 0; i < max_longs; i++)
		v[i] = fanin_random();
	return max_longs;
}

static inline size_t __must_check arch_get_random_seed_longs(unsigned long *v, size_t max_longs)
{
	return 0;
}

#endif
