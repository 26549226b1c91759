// SPDX-License-Identifier: GPL-2.0
/*
 * fanin's algorithms of receiving hosts (IA-TCP, ICTCP): a policy per host and algorithm hears of every segment with data that reaches the
 * host's connections and says what windows they advertise (crates/linuxcc). And the socket options of fanin's own.
 *
 * tcp_input.c, tcp_output.c and tcp.c call the functions of this file (fanin's `kernel build` puts the calls in). A socket's own part is
 * `fanin` in struct tcp_sock.
 */
#include <linux/sockptr.h>
#include <linux/vmalloc.h>
#include <net/tcp.h>

#include "fanin.h"
#include "receiver.h"

/* tcp_sock.fanin.end where no policy decides; 0: not looked for yet. */
#define NONE U32_MAX

enum { OPTION_EXPECT = 0x46414e01, OPTION_MESSAGE = 0x46414e02 };

/* The application expects data up to this offset of the stream; times of policies count from `zero_ns`, CLOCK_MONOTONIC. */
struct expect {
	u64 up_to, zero_ns;
};

/* What is written next is a message of so many bytes, to be delivered by `deadline_ns`, CLOCK_MONOTONIC; 0: no deadline. */
struct message {
	u64 bytes, deadline_ns;
};

static bool loaded;

static u32 host_of(__be32 address)
{
	return (ntohl(address) & 0xffffff) - 1;
}

/* Number of an end under control, plus 1. */
static u32 find(const struct sock *sk)
{
	/* A socket that connects or is connected; it is looked for once. */
	struct tcp_sock *tp = (struct tcp_sock *)tcp_sk(sk);
	const struct inet_sock *inet = inet_sk(sk);

	if (!loaded || sk->sk_family != AF_INET || !inet->inet_dport)
		return 0;
	if (!tp->fanin.end) {
		u32 found = fanin_receiver_find(host_of(inet->inet_saddr), inet->inet_num, host_of(inet->inet_daddr), ntohs(inet->inet_dport));

		tp->fanin.end = found ?: NONE;
	}
	return tp->fanin.end == NONE ? 0 : tp->fanin.end;
}

/* ---- called from tcp_output.c ---- */

/* The window of a SYN or SYN-ACK. `sk` listens, or connects. */
u32 fanin_first_window(const struct sock *sk, u32 window)
{
	u32 first, end;

	if (!loaded || sk->sk_family != AF_INET)
		return window;
	if (sk->sk_state == TCP_LISTEN) {
		first = fanin_receiver_first(host_of(inet_sk(sk)->inet_rcv_saddr), inet_sk(sk)->inet_num);
	} else {
		end = find(sk);
		first = end ? fanin_receiver_first(host_of(inet_sk(sk)->inet_saddr), inet_sk(sk)->inet_num) : 0;
	}
	return first ? min(window, first) : window;
}

/*
 * What a policy lets this socket advertise, rounded up to what its scale can say; tcp_select_window() sees to it that the right edge never
 * moves back. Linux's own slow start of the window (rcv_ssthresh) steps back; the room in the buffer remains a limit.
 */
u32 fanin_most_window(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 end = find(sk);

	if (!end)
		return U32_MAX;
	tp->rcv_ssthresh = max(tp->rcv_ssthresh, tp->window_clamp);
	return ALIGN(fanin_receiver_window(end - 1), 1 << tp->rx_opt.rcv_wscale);
}

/* ---- called from tcp_input.c ---- */

/* All bytes of a segment lie ahead of a hole already. */
static bool is_held(struct tcp_sock *tp, u32 seq, u32 end_seq)
{
	struct rb_node *node;

	for (node = rb_first(&tp->out_of_order_queue); node; node = rb_next(node)) {
		const struct tcp_skb_cb *cb = TCP_SKB_CB(rb_to_skb(node));

		if (after(cb->seq, seq))
			return false;
		if (after(cb->end_seq, seq))
			seq = cb->end_seq;
		if (!before(seq, end_seq))
			return true;
	}
	return false;
}

/* A segment is about to be queued. */
void fanin_segment(struct sock *sk, const struct sk_buff *skb)
{
	const struct tcp_skb_cb *cb = TCP_SKB_CB(skb);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 end_seq = cb->end_seq - !!(cb->tcp_flags & TCPHDR_FIN);

	if (!find(sk))
		return;
	tp->fanin.before = tp->rcv_nxt;
	tp->fanin.payload = end_seq - cb->seq;
	tp->fanin.duplicate = !after(end_seq, tp->rcv_nxt) || (cb->seq != tp->rcv_nxt && is_held(tp, cb->seq, end_seq));
}

/* It was queued, and TCP has not decided about its ACK: under control every segment is acknowledged at once. */
void fanin_segment_done(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 end = find(sk), payload = tp->fanin.payload;

	tp->fanin.payload = 0;
	if (!end || !payload)
		return;
	/* TCP's own reading of this moment: another one would take a nanosecond of virtual time. */
	fanin_receiver_data(end - 1, tp->tcp_clock_cache, payload, tp->rcv_nxt - tp->fanin.before, tp->fanin.duplicate);
	inet_csk_schedule_ack(sk);
	inet_csk(sk)->icsk_ack.pending |= ICSK_ACK_NOW;
}

/* ---- called from fanin.c ---- */

/* When the ACK that this socket has just sent may leave its host; 0: at once. */
u64 fanin_hold_until(const struct sock *sk, u64 now_ns)
{
	u32 end = find(sk);

	return end ? fanin_receiver_hold(end - 1, now_ns) : 0;
}

int fanin_receivers_register(const char *file, bool trace)
{
	size_t size;
	u8 *bytes;
	int count;

	bytes = fanin_host_file(file, &size);
	if (IS_ERR(bytes))
		return PTR_ERR(bytes);
	count = fanin_receiver_load(bytes, size, trace);
	vfree(bytes);
	loaded = count > 0;
	return count < 0 ? -EINVAL : 0;
}

/* ---- called from tcp.c ---- */

int fanin_setsockopt(struct sock *sk, int name, sockptr_t value, unsigned int length)
{
	struct expect expect;
	struct message message;
	int error = 0;
	u32 end;

	switch (name) {
	case OPTION_EXPECT:
		if (length != sizeof(expect))
			return -EINVAL;
		if (copy_from_sockptr(&expect, value, sizeof(expect)))
			return -EFAULT;
		/* What arrives on other connections of the host asks the same policy. */
		local_bh_disable();
		end = find(sk);
		if (end)
			fanin_receiver_expect(end - 1, ktime_get_ns(), expect.zero_ns, expect.up_to);
		local_bh_enable();
		return 0;
	case OPTION_MESSAGE:
		if (length != sizeof(message))
			return -EINVAL;
		if (copy_from_sockptr(&message, value, sizeof(message)))
			return -EFAULT;
		lock_sock(sk);
		error = fanin_message(sk, message.bytes, message.deadline_ns);
		release_sock(sk);
		return error;
	default:
		return -ENOPROTOOPT;
	}
}
