/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* What the Rust side (kernel/abi/src/lib.rs) and this one share; keep the two equal. */
#ifndef FANIN_H
#define FANIN_H

#include <linux/types.h>

struct fanin_packet {
	void *skb;
	const u8 *headers;	/* from IP on */
	u32 header_length;
	u32 host, to;		/* numbers of hosts */
	u32 length, payload;	/* of the IP packet; of the transport */
	u16 source, destination;
	u32 cwnd, ssthresh, in_flight, srtt_us;	/* of the socket, if it has one */
	u8 ecn, state, has_sender;
	u16 segments;		/* of TCP, where no card cuts them */
	u8 continues;		/* the burst of the packet before it */
};

struct fanin_step {
	void *skb;
	u32 host;
	u8 kind, marked;
};

enum { FANIN_IDLE, FANIN_DEPARTED, FANIN_DROPPED, FANIN_ARRIVED };

void *fanin_fabric_new(const u8 *bytes, size_t length);
int fanin_fabric_send(void *fabric, u64 now_ns, const struct fanin_packet *packet);
int fanin_fabric_step(void *fabric, u64 now_ns, struct fanin_step *out);
u64 fanin_fabric_next(const void *fabric);
u32 fanin_fabric_finish(void *fabric);

/* fanin.c: all of a file of the host that runs this kernel, for vfree(); an error pointer where it is empty or cannot be read. */
u8 *fanin_host_file(const char *file, size_t *length);

/* What Rust needs of the kernel. */
void *fanin_alloc(size_t size);
void fanin_free(void *pointer);
void fanin_panic(const char *text, size_t length) __attribute__((noreturn));
void fanin_write_record(const u8 *bytes, size_t length);
void fanin_write_notes(const u8 *bytes, size_t length);

#endif
