// SPDX-License-Identifier: GPL-2.0
/*
 * fanin's own algorithms as congestion controls of this kernel: every program of a run is a tcp_congestion_ops of its own, whose decisions
 * are made in Rust (crates/linuxcc).
 *
 * tcp_output.c calls four functions of this file (fanin's `kernel build` puts the calls in): fanin_may_send() before a new segment leaves,
 * fanin_draws_sizes() and fanin_segment_size() when it is cut, fanin_data_sent() when data leave.
 */
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <net/tcp.h>
#include <os.h>

#include "../ipv4/tcp_dctcp.h"
#include "cc.h"
#include "fanin.h"
#include "receiver.h"

#define MAX_PROGRAMS 4096

struct program {
	struct tcp_congestion_ops ops;
	struct fanin_cc_program about;
	u32 position;
};

struct state {
	void *socket;	/* none before the connection is established */
	s32 rtt_us;
	u32 acked;
	/* A DCTCP receiver's (RFC 8257 section 3.2). */
	u32 prior_rcv_nxt, ce_state;
};

static int notes_fd = -1;

static struct program *program_of(const struct sock *sk)
{
	return container_of(inet_csk(sk)->icsk_ca_ops, struct program, ops);
}

static struct fanin_cc_view look(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct fanin_cc_view view = {
		/* TCP's own reading of this moment: another one would take a nanosecond of virtual time. */
		.now_ns = tp->tcp_clock_cache,
		.next_send_ns = tp->tcp_wstamp_ns,
		.snd_una = tp->snd_una,
		.snd_nxt = tp->snd_nxt,
		.write_seq = tp->write_seq,
		.mss = tp->mss_cache,
		.srtt_us8 = tp->srtt_us,
		.min_rtt_us = tcp_min_rtt(tp),
		.in_flight = tcp_packets_in_flight(tp),
		.delivered = tp->delivered,
		.lost = tp->lost,
		.cwnd = tcp_snd_cwnd(tp),
		.ssthresh = tp->snd_ssthresh,
		.state = inet_csk(sk)->icsk_ca_state,
		.cwnd_limited = tcp_is_cwnd_limited(sk),
	};

	return view;
}

static void obey(struct sock *sk, const struct fanin_cc_out *out)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!out->cwnd)
		return;
	tcp_snd_cwnd_set(tp, min(out->cwnd, tp->snd_cwnd_clamp));
	tp->snd_ssthresh = out->ssthresh;
	if (out->pacing) {
		cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
		WRITE_ONCE(sk->sk_pacing_rate, min_t(unsigned long, out->pacing, READ_ONCE(sk->sk_max_pacing_rate)));
	}
}

static void cc_init(struct sock *sk)
{
	struct state *ca = inet_csk_ca(sk);
	struct fanin_cc_view view = look(sk);
	struct fanin_cc_out out;

	ca->prior_rcv_nxt = tcp_sk(sk)->rcv_nxt;
	ca->ce_state = 0;
	ca->socket = fanin_cc_new(program_of(sk)->position, &view, &out);
	if (ca->socket)
		obey(sk, &out);
}

static void cc_release(struct sock *sk)
{
	struct state *ca = inet_csk_ca(sk);

	if (ca->socket)
		fanin_cc_free(ca->socket);
	ca->socket = NULL;
}

static void cc_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct state *ca = inet_csk_ca(sk);

	ca->acked = sample->pkts_acked;
	ca->rtt_us = sample->rtt_us;
}

static void cc_in_ack_event(struct sock *sk, u32 flags)
{
	struct state *ca = inet_csk_ca(sk);
	struct fanin_cc_view view;

	if (!ca->socket)
		return;
	view = look(sk);
	fanin_cc_ack(ca->socket, &view, ca->acked, ca->rtt_us, !!(flags & CA_ACK_ECE));
	ca->acked = 0;
	ca->rtt_us = -1;
}

static void cc_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct state *ca = inet_csk_ca(sk);
	struct fanin_cc_view view;
	struct fanin_cc_out out;

	if (!ca->socket)
		return;
	view = look(sk);
	fanin_cc_grow(ca->socket, &view, &out);
	obey(sk, &out);
}

static void cc_cong_control(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	struct state *ca = inet_csk_ca(sk);
	struct fanin_cc_sample sample = {
		.interval_us = rs->interval_us,
		.delivered = rs->delivered,
		.prior_delivered = rs->prior_delivered,
		.app_limited = rs->is_app_limited,
		.ack_delayed = rs->is_ack_delayed,
	};
	struct fanin_cc_view view;
	struct fanin_cc_out out;

	if (!ca->socket)
		return;
	view = look(sk);
	fanin_cc_control(ca->socket, &view, &sample, &out);
	obey(sk, &out);
}

/*
 * Linux does not say why the window shrinks. The retransmission timer has cleared icsk_pending, which stands while anything is outstanding;
 * tcp_enter_cwr() for an ECN echo has cleared undo_marker, which tcp_enter_recovery() has just set.
 */
static u32 cc_ssthresh(struct sock *sk)
{
	struct state *ca = inet_csk_ca(sk);
	struct fanin_cc_view view;

	if (!ca->socket)
		return tcp_reno_ssthresh(sk);
	view = look(sk);
	if (!inet_csk(sk)->icsk_pending)
		return fanin_cc_timed_out(ca->socket, &view);
	return fanin_cc_reduce(ca->socket, &view, !tcp_sk(sk)->undo_marker);
}

static void cc_set_state(struct sock *sk, u8 new_state)
{
	struct state *ca = inet_csk_ca(sk);
	struct fanin_cc_view view;

	if (!ca->socket)
		return;
	if (new_state == TCP_CA_Loss) {
		view = look(sk);
		fanin_cc_enters_loss(ca->socket, &view);
	} else if (new_state == TCP_CA_Recovery && inet_csk(sk)->icsk_ca_state == TCP_CA_CWR) {
		/* tcp_enter_recovery() does not ask for ssthresh while a reduction lasts. */
		view = look(sk);
		tcp_sk(sk)->snd_ssthresh = fanin_cc_loss_in_cwr(ca->socket, &view);
	}
}

static void cc_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	struct state *ca = inet_csk_ca(sk);
	struct fanin_cc_view view;
	struct fanin_cc_out out;

	switch (event) {
	case CA_EVENT_ECN_IS_CE:
	case CA_EVENT_ECN_NO_CE:
		if (program_of(sk)->about.ecn)
			dctcp_ece_ack_update(sk, event, &ca->prior_rcv_nxt, &ca->ce_state);
		break;
	case CA_EVENT_COMPLETE_CWR:
		if (!ca->socket)
			break;
		view = look(sk);
		fanin_cc_recovered(ca->socket, &view, &out);
		obey(sk, &out);
		break;
	default:
		break;
	}
}

static u32 cc_undo_cwnd(struct sock *sk)
{
	struct state *ca = inet_csk_ca(sk);
	struct fanin_cc_view view;

	if (!ca->socket)
		return tcp_reno_undo_cwnd(sk);
	view = look(sk);
	return fanin_cc_undo(ca->socket, &view);
}

/* ---- called from tcp_output.c ---- */

static bool is_ours(const struct sock *sk, const struct state *ca)
{
	return inet_csk(sk)->icsk_ca_ops->init == cc_init && ca->socket;
}

bool fanin_may_send(struct sock *sk);
bool fanin_may_send(struct sock *sk)
{
	struct state *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	struct fanin_cc_view view;
	struct fanin_cc_out out;
	u64 until;

	if (!is_ours(sk, ca) || !program_of(sk)->about.send_hook)
		return true;
	view = look(sk);
	until = fanin_cc_before_send(ca->socket, &view, &out);
	obey(sk, &out);
	if (until && until != U64_MAX && !hrtimer_is_queued(&tp->pacing_timer)) {
		/* As tcp_pacing_check(): tcp_pace_kick() tries again, and drops the reference. */
		hrtimer_start(&tp->pacing_timer, ns_to_ktime(until), HRTIMER_MODE_ABS_PINNED_SOFT);
		sock_hold(sk);
	}
	/* The algorithm may have lowered the window that TCP looked at. */
	return !until && tcp_packets_in_flight(tp) < tcp_snd_cwnd(tp);
}

bool fanin_draws_sizes(const struct sock *sk);
bool fanin_draws_sizes(const struct sock *sk)
{
	return is_ours(sk, inet_csk_ca(sk)) && program_of(sk)->about.segment_sizes;
}

u32 fanin_segment_size(struct sock *sk, u32 mss);
u32 fanin_segment_size(struct sock *sk, u32 mss)
{
	struct state *ca = inet_csk_ca(sk);
	struct fanin_cc_view view;

	if (!fanin_draws_sizes(sk))
		return mss;
	view = look(sk);
	return min(fanin_cc_segment_size(ca->socket, &view), mss);
}

void fanin_data_sent(struct sock *sk);
void fanin_data_sent(struct sock *sk)
{
	struct state *ca = inet_csk_ca(sk);
	struct fanin_cc_view view;

	if (!is_ours(sk, ca))
		return;
	view = look(sk);
	fanin_cc_sent(ca->socket, &view);
}

/* ---- called from receiver.c ---- */

int fanin_message(struct sock *sk, u64 bytes, u64 deadline_ns)
{
	struct state *ca = inet_csk_ca(sk);
	struct fanin_cc_view view;

	if (inet_csk(sk)->icsk_ca_ops->init != cc_init)
		return 0;
	if (!ca->socket || sk->sk_state != TCP_ESTABLISHED)
		return -ENOTCONN;
	view = look(sk);
	fanin_cc_message(ca->socket, &view, bytes, deadline_ns);
	return 0;
}

/* ---- programs ---- */

int fanin_open_notes(const char *file)
{
	notes_fd = os_open_file(file, of_create(of_write(OPENFLAGS())), 0600);
	return notes_fd < 0 ? notes_fd : 0;
}

bool fanin_has_notes(void)
{
	return notes_fd >= 0;
}

void fanin_write_notes(const u8 *bytes, size_t length)
{
	/* One system call of the host: nothing comes between a note's bytes. */
	if (notes_fd >= 0 && os_write_file(notes_fd, bytes, length) != length)
		pr_err("fanin: notes of congestion control could not be written\n");
}

static int register_program(u32 position)
{
	struct program *program = kzalloc(sizeof(*program), GFP_KERNEL);
	int error;

	BUILD_BUG_ON(sizeof(struct state) > ICSK_CA_PRIV_SIZE);
	if (!program)
		return -ENOMEM;
	error = fanin_cc_describe(position, &program->about);
	if (error)
		return error;
	program->position = position;
	program->ops = (struct tcp_congestion_ops){
		.init = cc_init,
		.release = cc_release,
		.ssthresh = cc_ssthresh,
		.set_state = cc_set_state,
		.cwnd_event = cc_cwnd_event,
		.in_ack_event = cc_in_ack_event,
		.pkts_acked = cc_pkts_acked,
		.undo_cwnd = cc_undo_cwnd,
		.owner = THIS_MODULE,
		.flags = TCP_CONG_NON_RESTRICTED | (program->about.ecn ? TCP_CONG_NEEDS_ECN : 0),
	};
	/* Which of the two is set decides who rules during CWR and recovery. */
	if (program->about.alone)
		program->ops.cong_control = cc_cong_control;
	else
		program->ops.cong_avoid = cc_cong_avoid;
	strscpy(program->ops.name, program->about.name, sizeof(program->ops.name));
	return tcp_register_congestion_control(&program->ops);
}

int fanin_cc_register(const char *programs)
{
	int count, error = 0;
	size_t size;
	u8 *bytes;
	u32 i;

	bytes = fanin_host_file(programs, &size);
	if (IS_ERR(bytes))
		return PTR_ERR(bytes);
	count = fanin_cc_load(bytes, size, notes_fd >= 0);
	vfree(bytes);
	if (count < 0 || count > MAX_PROGRAMS)
		return -EINVAL;
	for (i = 0; i < count && !error; i++)
		error = register_program(i);
	return error;
}
