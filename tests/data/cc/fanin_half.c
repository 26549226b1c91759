// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Reno with a divisor of one's own: the smallest file that `fanin kernel build --cc` takes, for the tests. */
#include <linux/module.h>
#include <net/tcp.h>

static int divisor __read_mostly = 2;
module_param(divisor, int, 0644);

static u32 half_ssthresh(struct sock *sk)
{
	return max(tcp_snd_cwnd(tcp_sk(sk)) / divisor, 2U);
}

static struct tcp_congestion_ops half = {
	.ssthresh = half_ssthresh,
	.cong_avoid = tcp_reno_cong_avoid,
	.undo_cwnd = tcp_reno_undo_cwnd,
	.owner = THIS_MODULE,
	.name = "half",
};

static int __init half_register(void)
{
	return tcp_register_congestion_control(&half);
}

module_init(half_register);
MODULE_LICENSE("GPL");
