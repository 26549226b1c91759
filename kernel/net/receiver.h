/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* What crates/linuxcc (by kernel/abi/src/receiver.rs) and receiver.c share; keep the two equal. */
#ifndef FANIN_RECEIVER_GLUE_H
#define FANIN_RECEIVER_GLUE_H

#include <linux/types.h>

/* Receiving ends under control, of a file; how many, or negative. */
int fanin_receiver_load(const u8 *bytes, size_t length, u64 trace);
/* Number of the end of this host and port towards another, plus 1; 0: it is under no control. */
u32 fanin_receiver_find(u32 host, u32 port, u32 peer, u32 peer_port);
/* First window in bytes of connections that come to a listening port; 0: under no control. */
u32 fanin_receiver_first(u32 host, u32 port);
/* Bytes to advertise from what has arrived on. */
u32 fanin_receiver_window(u32 end);
/* The application expects data up to this offset; times of the policy count from zero_ns. */
void fanin_receiver_expect(u32 end, u64 now_ns, u64 zero_ns, u64 up_to);
/* Payload arrived, of which `advanced` bytes more are in order now. */
void fanin_receiver_data(u32 end, u64 now_ns, u32 payload, u32 advanced, u32 duplicate);
/* When the ACK that is about to leave may; 0: at once. */
u64 fanin_receiver_hold(u32 end, u64 now_ns);

/* receiver.c, for fanin.c. */
int fanin_receivers_register(const char *file, bool trace);
u64 fanin_hold_until(const struct sock *sk, u64 now_ns);
/* cc.c, for receiver.c: the application begins to send a message; deadline 0: none. */
int fanin_message(struct sock *sk, u64 bytes, u64 deadline_ns);

#endif
