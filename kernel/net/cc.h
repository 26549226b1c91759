/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* What crates/linuxcc (by kernel/abi/src/cc.rs) and cc.c share; keep the two equal. */
#ifndef FANIN_CC_GLUE_H
#define FANIN_CC_GLUE_H

#include <linux/types.h>

struct fanin_cc_view {
	u64 now_ns, next_send_ns;
	u32 snd_una, snd_nxt, write_seq, mss, srtt_us8, min_rtt_us, in_flight, delivered, lost, cwnd, ssthresh;
	u8 state, cwnd_limited;
};

struct fanin_cc_out {
	u32 cwnd, ssthresh;	/* cwnd 0: leave both */
	u64 pacing;		/* bytes of payload per second; 0: none */
};

struct fanin_cc_sample {
	s64 interval_us;
	s32 delivered;
	u32 prior_delivered;
	u8 app_limited, ack_delayed;
};

struct fanin_cc_program {
	char name[16];
	u8 ecn, alone, send_hook, segment_sizes;
};

/* Programs of a file; how many, or negative. */
int fanin_cc_load(const u8 *bytes, size_t length, u64 trace);
int fanin_cc_describe(u32 position, struct fanin_cc_program *program);

void *fanin_cc_new(u32 position, const struct fanin_cc_view *view, struct fanin_cc_out *out);
void fanin_cc_free(void *socket);
void fanin_cc_ack(void *socket, const struct fanin_cc_view *view, u32 segments, s32 rtt_us, u32 ece);
void fanin_cc_grow(void *socket, const struct fanin_cc_view *view, struct fanin_cc_out *out);
void fanin_cc_control(void *socket, const struct fanin_cc_view *view, const struct fanin_cc_sample *sample, struct fanin_cc_out *out);
u32 fanin_cc_reduce(void *socket, const struct fanin_cc_view *view, u32 by_mark);
u32 fanin_cc_loss_in_cwr(void *socket, const struct fanin_cc_view *view);
u32 fanin_cc_timed_out(void *socket, const struct fanin_cc_view *view);
void fanin_cc_enters_loss(void *socket, const struct fanin_cc_view *view);
void fanin_cc_recovered(void *socket, const struct fanin_cc_view *view, struct fanin_cc_out *out);
u32 fanin_cc_undo(void *socket, const struct fanin_cc_view *view);
/* 0: send; all bits: after an ACK; else not before, in ns. */
u64 fanin_cc_before_send(void *socket, const struct fanin_cc_view *view, struct fanin_cc_out *out);
u32 fanin_cc_segment_size(void *socket, const struct fanin_cc_view *view);
void fanin_cc_sent(void *socket, const struct fanin_cc_view *view);

/* A message of so many bytes begins at the end of what was written; deadline 0: none. */
void fanin_cc_message(void *socket, const struct fanin_cc_view *view, u64 bytes, u64 deadline_ns);

/* cc.c, for fanin.c: the programs of a file of the host. Where notes were opened, what each is told and decides is written there. */
int fanin_cc_register(const char *programs);
int fanin_open_notes(const char *file);
bool fanin_has_notes(void);

#endif
