/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The two homes of a policy: tc programs, and functions for a test. The file that includes this has declared what receiver.h asks for. */

#ifdef __bpf__
/* ---- two tc programs ------------------------------------------------------------------------------------------------------ */

char _license[] SEC("license") = "GPL";

enum { ETHERNET = 14, FRAME = 24 /* preamble, FCS and gap */, IPV4 = 0x0800, IPV6 = 0x86dd, TCP = 6 };
enum { SYN = 2, RST = 4, ACK = 16, PASS = -1 /* TCX_NEXT: to the next program, if there is one */ };
enum { OPTION_END, OPTION_NOP, OPTION_SCALE = 3, OPTION_STAMP = 8, OPTIONS = 10, STAMP_ROOM = 12 };

/* A connection, from this host. */
struct key {
	u32 remote[4];
	u32 local[4];
	u16 remote_port;
	u16 local_port;
};

struct packet {
	struct key key;
	u32 seq, ack;
	u32 payload;
	u32 stamp, echo;	/* the timestamp option; 0 without */
	u32 at;			/* where TCP begins */
	u16 window;
	u8 flags;
	u8 scale;
	u8 has_stamp;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct host);
} host SEC(".maps");

/* The least recently used connection makes room for a new one. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct key);
	__type(value, struct flow);
} flows SEC(".maps");

static __always_inline void read_options(struct __sk_buff *skb, struct packet *p, u32 at, u32 end)
{
	for (int i = 0; i < OPTIONS && at < end; i++) {
		u8 head[2] = {};
		u32 stamps[2];

		if (bpf_skb_load_bytes(skb, at, head, 1) || head[0] == OPTION_END)
			return;
		if (head[0] == OPTION_NOP) {
			at++;
			continue;
		}
		if (bpf_skb_load_bytes(skb, at, head, 2) || head[1] < 2)
			return;
		if (head[0] == OPTION_SCALE)
			bpf_skb_load_bytes(skb, at + 2, &p->scale, 1);
		if (head[0] == OPTION_STAMP && !bpf_skb_load_bytes(skb, at + 2, stamps, 8)) {
			p->stamp = bpf_ntohl(stamps[0]);
			p->echo = bpf_ntohl(stamps[1]);
			p->has_stamp = 1;
			/* it is the last one that matters once a connection is open */
			if (!(p->flags & SYN))
				return;
		}
		at += head[1];
	}
}

/* Reads a TCP packet that is `in`coming or not; false: it is none of ours. */
static __always_inline bool read_packet(struct __sk_buff *skb, struct packet *p, bool in)
{
	u32 source[4] = {}, destination[4] = {}, length;
	struct { u16 source, destination; u32 seq, ack; u8 offset, flags; u16 window; } tcp;

	__builtin_memset(p, 0, sizeof(*p));
	if (skb->protocol == bpf_htons(IPV4)) {
		struct { u8 version, tos; u16 length, id, fragment; u8 ttl, protocol; u16 sum; u32 source, destination; } ip;

		if (bpf_skb_load_bytes(skb, ETHERNET, &ip, sizeof(ip)) || ip.protocol != TCP)
			return false;
		p->at = ETHERNET + (ip.version & 15) * 4;
		source[3] = ip.source;
		destination[3] = ip.destination;
		length = ip.length ? ETHERNET + bpf_ntohs(ip.length) : skb->len;
	} else if (skb->protocol == bpf_htons(IPV6)) {
		struct { u32 version; u16 length; u8 next, hops; u32 source[4], destination[4]; } ip;

		if (bpf_skb_load_bytes(skb, ETHERNET, &ip, sizeof(ip)) || ip.next != TCP)
			return false;
		p->at = ETHERNET + sizeof(ip);
		__builtin_memcpy(source, ip.source, sizeof(source));
		__builtin_memcpy(destination, ip.destination, sizeof(destination));
		length = ip.length ? p->at + bpf_ntohs(ip.length) : skb->len;
	} else {
		return false;
	}
	if (bpf_skb_load_bytes(skb, p->at, &tcp, sizeof(tcp)))
		return false;
	p->flags = tcp.flags;
	p->window = bpf_ntohs(tcp.window);
	p->seq = bpf_ntohl(tcp.seq);
	p->ack = bpf_ntohl(tcp.ack);
	u32 end = p->at + (tcp.offset >> 4) * 4;
	p->payload = length > end ? length - end : 0;
	read_options(skb, p, p->at + 20, end);
	__builtin_memcpy(p->key.remote, in ? source : destination, sizeof(source));
	__builtin_memcpy(p->key.local, in ? destination : source, sizeof(source));
	p->key.remote_port = in ? tcp.source : tcp.destination;
	p->key.local_port = in ? tcp.destination : tcp.source;
	return !remote_port || p->key.remote_port == bpf_htons(remote_port);
}

static __always_inline struct host *this_host(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&host, &zero);
}

static __always_inline void count(struct host *h, u32 what) { __sync_fetch_and_add(&h->counts[what], 1); }

SEC("tcx/ingress")
int fanin_in(struct __sk_buff *skb)
{
	struct host *h = this_host();
	u64 now = bpf_ktime_get_ns(), sample = 0;
	struct packet p;
	struct flow *f;
	u32 wire;

	if (!h || !read_packet(skb, &p, true))
		return PASS;
	f = bpf_map_lookup_elem(&flows, &p.key);
	if (!f)
		return PASS;
	if (p.flags & SYN && !p.scale)
		f->p.scale = 0;
	if (f->p.syn_at && p.flags & ACK) {
		bpf_spin_lock(&h->lock);
		policy_open(h, f, now, now - f->p.syn_at);
		bpf_spin_unlock(&h->lock);
		f->p.open = 1;
		f->p.last = now;
		f->p.syn_at = 0;
		count(h, COUNT_FLOWS);
	}
	if (!p.payload || !f->p.open)
		return PASS;
	if (f->p.stamp_at && p.has_stamp && (s32)(p.echo - f->p.stamp) >= 0) {
		/* later ones say nothing of when the first with this timestamp came back */
		sample = p.echo == f->p.stamp ? now - f->p.stamp_at : 0;
		f->p.stamp_at = 0;
	}
	/* merged packets have their headers once */
	wire = p.payload + (skb->gso_segs ? skb->gso_segs : 1) * (skb->len - p.payload + FRAME);
	bpf_spin_lock(&h->lock);
	policy_data(h, f, now, wire, p.payload, sample);
	bpf_spin_unlock(&h->lock);
	f->p.last = now;
	f->p.used = 1;
	count(h, COUNT_PACKETS);
	return PASS;
}

/*
 * The window that leaves: never beyond the kernel's own, and its right edge never moves back. Before the first data it is two segments at
 * least: Linux sends no segment above half of the largest window it has seen (tcp_bound_to_half_wnd()).
 */
static __always_inline void rewrite(struct __sk_buff *skb, struct host *h, struct flow *f, const struct packet *p)
{
	u32 scale = p->flags & SYN ? 0 : f->p.scale & 15, edge = p->ack + (u32)f->p.window, field;
	u16 old = bpf_htons(p->window), new;

	if (!f->p.used)
		edge = p->ack + (u32)max64(f->p.window, 2 * (mss + STAMP_ROOM));
	else if (f->p.has_edge && (s32)(f->p.edge - edge) > 0)
		edge = f->p.edge;
	/* whole units of the scale, rounded up: less than a packet more */
	field = (edge - p->ack + (1u << scale) - 1) >> scale;
	if (field < p->window) {
		new = bpf_htons((u16)field);
		bpf_l4_csum_replace(skb, p->at + 16, old, new, 2);
		bpf_skb_store_bytes(skb, p->at + 14, &new, 2, 0);
		count(h, COUNT_REWRITTEN);
	} else {
		field = p->window;
	}
	if (f->p.used) {
		f->p.edge = p->ack + (field << scale);
		f->p.has_edge = 1;
	}
}

SEC("tcx/egress")
int fanin_out(struct __sk_buff *skb)
{
	struct host *h = this_host();
	u64 now = bpf_ktime_get_ns();
	struct packet p;
	struct flow *f;

	if (!h || !read_packet(skb, &p, false) || p.flags & RST)
		return PASS;
	f = bpf_map_lookup_elem(&flows, &p.key);
	if (p.flags & SYN) {
		struct flow fresh = {};

		/* the round trip of an opening that was sent again cannot be known */
		fresh.p.syn_at = f && f->p.syn_at ? 0 : now;
		fresh.p.scale = p.scale;
		bpf_spin_lock(&h->lock);
		policy_open(h, &fresh, now, 0);
		bpf_spin_unlock(&h->lock);
		fresh.p.open = !fresh.p.syn_at;
		fresh.p.last = now;
		bpf_map_update_elem(&flows, &p.key, &fresh, BPF_ANY);
		f = bpf_map_lookup_elem(&flows, &p.key);
	}
	if (!f) {
		/* it opened before this program came: the scale of its windows is unknown */
		count(h, COUNT_UNKNOWN);
		return PASS;
	}
	/* a later packet of the same millisecond is no way to time what answers the first */
	bool first = p.has_stamp && !(f->p.has_newest && f->p.newest == p.stamp);
	if (p.has_stamp) {
		f->p.newest = p.stamp;
		f->p.has_newest = 1;
	}
	if (p.payload) {
		bpf_spin_lock(&h->lock);
		policy_use(h, f, now);
		bpf_spin_unlock(&h->lock);
		f->p.last = now;
		f->p.used = 1;
	} else if (first && !f->p.stamp_at && !(p.flags & SYN)) {
		/* of an acknowledgement alone: what answers a request has the server's time in it */
		f->p.stamp = p.stamp;
		f->p.stamp_at = now;
	}
	rewrite(skb, h, f, &p);
	return PASS;
}

#else
/* ---- a shared object for the test ----------------------------------------------------------------------------------------- */

static struct host host;
static struct flow flows[256];

void receiver_open(u32 conn, u64 now, u64 rtt)
{
	flows[conn] = (struct flow){};
	policy_open(&host, &flows[conn], now, rtt);
	flows[conn].p.last = now;
}

u64 receiver_data(u32 conn, u64 now, u32 wire, u32 payload, u64 sample)
{
	policy_data(&host, &flows[conn], now, wire, payload, sample);
	flows[conn].p.last = now;
	return flows[conn].p.window;
}

#endif
