#include <linux/module.h>
#include <net/tcp.h>

static u32 half_ssthresh(struct sock *sk)
{
	return max(tcp_snd_cwnd(tcp_sk(sk)) / 2, 2U);
}

/* As tcp_reno_cong_avoid, but a packet for two windows of data. */
static void half_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp)) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	tcp_cong_avoid_ai(tp, 2 * tcp_snd_cwnd(tp), acked);
}

static struct tcp_congestion_ops half = {
	.ssthresh = half_ssthresh,
	.cong_avoid = half_cong_avoid,
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
