// SPDX-License-Identifier: GPL-2.0
/*
 * fanin: hosts whose network is fanin's own.
 *
 * Each host is a network namespace with one device, eth0. What a device is given to send goes to the Rust side, which knows ports,
 * links and paths, and says when a packet has left its host and when it arrives where. One high-resolution timer stands for everything
 * that is under way.
 *
 * Commands are written to /proc/fanin, by the guest's init:
 *   network FILE    the network, as fanin-fabric encodes it; FILE is a path on the host that runs this kernel
 *   record FILE     where packets are recorded; a path on that host, too
 *   notes FILE      before the next two: what each algorithm is told and decides is written there
 *   cc FILE         fanin's algorithms of senders, as fanin-linuxcc encodes them
 *   receivers FILE  those of receiving hosts, and whom they control
 *   host N MTU TSO WHOLE OVERHEAD
 *                   makes eth0 of host N in the writer's namespace; TSO 1: TCP may hand down many segments at once, which leave as one packet
 *                   where they are at most WHOLE bytes on the wire, and each of them OVERHEAD more than its IP packet
 *   receive N GRO BUDGET FRAMES DELAY GAP FLUSH
 *                   gives it a network card that interrupts, DELAY after a packet, at once for FRAMES (0: never), and GAP after the last
 *                   interrupt at the earliest; a poll takes BUDGET packets, and with GRO 1 merges them, for FLUSH at most; times in ns
 *   finish          writes out the record; fails with EIO if a packet belonged to no connection or the record could not be written
 */
#include <linux/etherdevice.h>
#include <linux/hrtimer.h>
#include <linux/if_arp.h>
#include <linux/ip.h>
#include <linux/jhash.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/nsproxy.h>
#include <linux/proc_fs.h>
#include <linux/slab.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <linux/vmalloc.h>
#include <net/inet_ecn.h>
#include <net/ip.h>
#include <net/net_namespace.h>
#include <net/tcp.h>
#include <asm/archrandom.h>
#include <os.h>

#include "cc.h"
#include "fanin.h"
#include "receiver.h"

#define MAX_HOSTS 65536

struct fanin_host {
	u32 number;
	/* What TCP hands down is not cut up to so many bytes on the wire; what a frame has beside its IP packet. */
	u32 whole, overhead;
	/* The receive queue of its card; without one a packet is with IP the instant that it arrives. */
	bool polls, merges;
	/* More of the burst that leaves is to come. */
	bool bursts;
	u32 frames;
	u64 delay, gap, last;
	struct sk_buff_head ring;
	struct hrtimer interrupt;
	struct napi_struct napi;
};

static void *fabric;
static struct net_device **hosts;
static struct hrtimer timer;
static int record_fd = -1;
static bool record_failed;

/* ---- what Rust needs ---- */

void *fanin_alloc(size_t size)
{
	/* Softirqs allocate, too; what is too large for kmalloc comes while the network is made, in process context. */
	return size > KMALLOC_MAX_CACHE_SIZE * 64 ? vmalloc(size) : kmalloc(size, GFP_ATOMIC);
}

void fanin_free(void *pointer)
{
	kvfree(pointer);
}

void fanin_panic(const char *text, size_t length)
{
	panic("fanin: a fault in %.*s", (int)length, text);
}

/* Rust's core is compiled with unwinding in mind; nothing unwinds here. */
void rust_eh_personality(void);
void rust_eh_personality(void)
{
}

/* A system call of the machine that runs this kernel: it takes no virtual time, and may be made in any context. */
void fanin_write_record(const u8 *bytes, size_t length)
{
	while (record_fd >= 0 && length) {
		int written = os_write_file(record_fd, bytes, length);

		if (written <= 0) {
			record_failed = true;
			return;
		}
		bytes += written;
		length -= written;
	}
}

/* For um/archrandom.h: splitmix64. */
unsigned long fanin_random(void)
{
	static u64 state;
	u64 z = state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/* ---- packets ---- */

static void arm(void)
{
	u64 next = fanin_fabric_next(fabric);

	if (next != U64_MAX)
		hrtimer_start(&timer, ns_to_ktime(next), HRTIMER_MODE_ABS_SOFT);
}

/* ---- the receive queue of a card ---- */

static void arm_interrupt(struct fanin_host *host)
{
	u64 now = ktime_get_ns(), at = now + host->delay;

	if (host->frames && skb_queue_len(&host->ring) >= host->frames)
		at = now;
	if (host->last)
		at = max(at, host->last + host->gap);
	if (hrtimer_active(&host->interrupt) && ktime_to_ns(hrtimer_get_expires(&host->interrupt)) <= at)
		return;
	hrtimer_start(&host->interrupt, ns_to_ktime(at), HRTIMER_MODE_ABS_SOFT);
}

static enum hrtimer_restart interrupt(struct hrtimer *timer)
{
	struct fanin_host *host = container_of(timer, struct fanin_host, interrupt);

	host->last = ktime_get_ns();
	napi_schedule(&host->napi);
	return HRTIMER_NORESTART;
}

static int poll(struct napi_struct *napi, int budget)
{
	struct fanin_host *host = container_of(napi, struct fanin_host, napi);
	struct sk_buff *skb;
	int done = 0;

	while (done < budget && (skb = __skb_dequeue(&host->ring))) {
		if (host->merges)
			napi_gro_receive(napi, skb);
		else
			netif_receive_skb(skb);
		done++;
	}
	if (done < budget) {
		/* Nothing is left to interrupt for: the watchdog of gro_flush_timeout may have polled before the card did. */
		hrtimer_try_to_cancel(&host->interrupt);
		napi_complete_done(napi, done);
	}
	return done;
}

/* While the card's interrupt is off, its poll finds what comes. */
static void wait_for_interrupt(struct fanin_host *host, struct sk_buff *skb)
{
	__skb_queue_tail(&host->ring, skb);
	if (!test_bit(NAPI_STATE_SCHED, &host->napi.state))
		arm_interrupt(host);
}

/* A card hashes addresses and ports. (Its sender's hash changes at timeouts, and the kernel's own has a key that no seed decides.) */
static u32 hash_of(const struct sk_buff *skb)
{
	const struct iphdr *ip = ip_hdr(skb);
	const struct udphdr *ports = udp_hdr(skb);

	return jhash_3words((__force u32)ip->saddr, (__force u32)ip->daddr, (u32)ntohs(ports->source) << 16 | ntohs(ports->dest), 0);
}

/* A packet reaches a host, as through its network card. */
static void arrive(struct sk_buff *skb, struct net_device *dev, bool marked)
{
	struct fanin_host *host = netdev_priv(dev);

	skb_orphan(skb);
	skb_scrub_packet(skb, true);
	skb_clear_tstamp(skb);
	if (host->polls) {
		/* A card fills buffers of the receiver's own: GRO writes into them, and the sender's may go again. */
		if (skb_unclone(skb, GFP_ATOMIC)) {
			dev->stats.rx_dropped++;
			kfree_skb(skb);
			return;
		}
		skb_set_hash(skb, hash_of(skb), PKT_HASH_TYPE_L4);
	}
	skb->dev = dev;
	skb->protocol = htons(ETH_P_IP);
	skb->pkt_type = PACKET_HOST;
	/* The sender left the checksum to its card; nothing on this wire corrupts packets. */
	skb->ip_summed = CHECKSUM_UNNECESSARY;
	skb_reset_mac_header(skb);
	if (marked)
		INET_ECN_set_ce(skb);
	dev_sw_netstats_rx_add(dev, skb->len);
	if (host->polls)
		wait_for_interrupt(host, skb);
	else
		netif_receive_skb(skb);
}

static enum hrtimer_restart fire(struct hrtimer *unused)
{
	struct fanin_step step;

	for (;;) {
		switch (fanin_fabric_step(fabric, ktime_get_ns(), &step)) {
		case FANIN_DEPARTED:
			/* Transmission is complete: TCP small queues count what has not left the host, not what is on the wire. */
			skb_orphan(step.skb);
			break;
		case FANIN_DROPPED:
			kfree_skb(step.skb);
			break;
		case FANIN_ARRIVED:
			arrive(step.skb, hosts[step.host], step.marked);
			break;
		default:
			arm();
			return HRTIMER_NORESTART;
		}
	}
}

/* The sending socket's state, as tcp_get_info() tells it. */
static void note_sender(struct fanin_packet *packet, struct sock *sk)
{
	struct tcp_sock *tp;

	if (!sk || !sk_fullsock(sk) || sk->sk_protocol != IPPROTO_TCP)
		return;
	tp = tcp_sk(sk);
	packet->cwnd = tcp_snd_cwnd(tp);
	packet->ssthresh = tp->snd_ssthresh;
	packet->in_flight = tcp_packets_in_flight(tp);
	packet->srtt_us = tp->srtt_us >> 3;
	packet->state = inet_csk(sk)->icsk_ca_state;
	packet->has_sender = 1;
}

/* Into the network, or dropped. */
static void send(struct sk_buff *skb, struct net_device *dev, struct fanin_packet *packet)
{
	if (fanin_fabric_send(fabric, ktime_get_ns(), packet)) {
		arm();
		return;
	}
	dev->stats.tx_dropped++;
	kfree_skb(skb);
}

/* An ACK that its host holds back. */
struct held {
	struct hrtimer timer;
	struct fanin_packet packet;
	struct net_device *dev;
};

static enum hrtimer_restart let_go(struct hrtimer *timer)
{
	struct held *held = container_of(timer, struct held, timer);

	note_sender(&held->packet, ((struct sk_buff *)held->packet.skb)->sk);
	send(held->packet.skb, held->dev, &held->packet);
	kfree(held);
	return HRTIMER_NORESTART;
}

/* Keeps an ACK until then. Timers of the same time fire in the order in which they were started. */
static bool hold(struct net_device *dev, const struct fanin_packet *packet, u64 until)
{
	struct held *held = kmalloc(sizeof(*held), GFP_ATOMIC);

	if (!held)
		return false;
	held->packet = *packet;
	held->dev = dev;
	hrtimer_init(&held->timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	held->timer.function = let_go;
	hrtimer_start(&held->timer, ns_to_ktime(until), HRTIMER_MODE_ABS_SOFT);
	return true;
}

/* When an acknowledgement without data may leave, if its host has a say in it. */
static u64 release_time(const struct sk_buff *skb, const struct fanin_packet *packet)
{
	const struct tcphdr *th = tcp_hdr(skb);

	if (packet->payload || !packet->has_sender || th->syn || th->rst)
		return 0;
	return fanin_hold_until(skb->sk, tcp_sk(skb->sk)->tcp_clock_cache);
}

static netdev_tx_t fanin_xmit(struct sk_buff *skb, struct net_device *dev)
{
	struct fanin_host *host = netdev_priv(dev);
	struct fanin_packet packet = { .skb = skb, .host = host->number, .length = skb->len, .segments = 1 };
	u32 header = skb_transport_offset(skb);
	struct iphdr *ip;
	u64 until;

	packet.continues = host->bursts;
	host->bursts = netdev_xmit_more();
	if (!fabric || skb->protocol != htons(ETH_P_IP) || !pskb_may_pull(skb, header + sizeof(struct udphdr)))
		goto drop;
	ip = ip_hdr(skb);
	if (ip->protocol == IPPROTO_TCP) {
		if (!pskb_may_pull(skb, header + sizeof(struct tcphdr)) || !pskb_may_pull(skb, header + tcp_hdrlen(skb)))
			goto drop;
		header += tcp_hdrlen(skb);
		if (skb_is_gso(skb))
			packet.segments = skb_shinfo(skb)->gso_segs;
		note_sender(&packet, skb->sk);
	} else if (ip->protocol == IPPROTO_UDP) {
		header += sizeof(struct udphdr);
	} else {
		goto drop;
	}
	ip = ip_hdr(skb);
	packet.headers = skb->data;
	packet.header_length = header;
	packet.payload = skb->len - header;
	packet.to = (ntohl(ip->daddr) & 0xffffff) - 1;
	packet.source = ntohs(udp_hdr(skb)->source);
	packet.destination = ntohs(udp_hdr(skb)->dest);
	packet.ecn = ip->tos & INET_ECN_MASK;
	dev_sw_netstats_tx_add(dev, 1, skb->len);
	until = release_time(skb, &packet);
	if (!until || !hold(dev, &packet, until))
		send(skb, dev, &packet);
	return NETDEV_TX_OK;
drop:
	dev->stats.tx_dropped++;
	kfree_skb(skb);
	return NETDEV_TX_OK;
}

/* ---- devices ---- */

/* The stack cuts what is longer than crosses the network as one packet (qdisc_pkt_len_init counts the same bytes). */
static netdev_features_t fanin_features(struct sk_buff *skb, struct net_device *dev, netdev_features_t features)
{
	struct fanin_host *host = netdev_priv(dev);
	u32 header, wire;

	if (!skb_is_gso(skb))
		return features;
	header = skb_tcp_all_headers(skb);
	wire = skb->len - header + skb_shinfo(skb)->gso_segs * (header + host->overhead);
	return wire <= host->whole ? features : features & ~NETIF_F_GSO_MASK;
}

static const struct net_device_ops fanin_ops = {
	.ndo_start_xmit = fanin_xmit,
	.ndo_features_check = fanin_features,
};

/* No link layer: addresses are enough where every path is known. */
static void setup(struct net_device *dev)
{
	dev->netdev_ops = &fanin_ops;
	dev->type = ARPHRD_NONE;
	dev->flags = IFF_NOARP;
	dev->priv_flags |= IFF_NO_QUEUE;
	dev->pcpu_stat_type = NETDEV_PCPU_STAT_TSTATS;
	dev->lltx = true;
	dev->needs_free_netdev = true;
	dev->min_mtu = 68;
	dev->max_mtu = 65535;
	dev->features = NETIF_F_SG | NETIF_F_HW_CSUM | NETIF_F_HIGHDMA;
	dev->hw_features = dev->features;
}

static int add_host(u32 number, u32 mtu, u32 tso, u32 whole, u32 overhead)
{
	struct fanin_host *host;
	struct net_device *dev;
	int error;

	if (number >= MAX_HOSTS || hosts[number])
		return -EINVAL;
	dev = alloc_netdev(sizeof(struct fanin_host), "eth0", NET_NAME_USER, setup);
	if (!dev)
		return -ENOMEM;
	dev_net_set(dev, current->nsproxy->net_ns);
	host = netdev_priv(dev);
	host->number = number;
	host->whole = whole;
	host->overhead = overhead;
	dev->mtu = mtu;
	/*
	 * Without TSO a segment is a packet: TCP hands down one at a time, as the queues of this network count them. With it the stack cuts
	 * what TCP hands down just before fanin_xmit(): the packets leave as one burst.
	 */
	if (!tso)
		WRITE_ONCE(dev->gso_max_segs, 1);
	else if (whole)
		dev->features |= NETIF_F_ALL_TSO;
	error = register_netdev(dev);
	if (error) {
		free_netdev(dev);
		return error;
	}
	hosts[number] = dev;
	return 0;
}

/* Before anything arrives. */
static int add_card(u32 number, u32 gro, u32 budget, u32 frames, u64 delay, u64 gap, u64 flush)
{
	struct net_device *dev = number < MAX_HOSTS ? hosts[number] : NULL;
	struct fanin_host *host;

	if (!dev || !budget)
		return -EINVAL;
	host = netdev_priv(dev);
	if (host->polls)
		return -EBUSY;
	host->merges = gro;
	host->frames = frames;
	host->delay = delay;
	host->gap = gap;
	skb_queue_head_init(&host->ring);
	hrtimer_init(&host->interrupt, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	host->interrupt.function = interrupt;
	rtnl_lock();
	netif_napi_add_weight(dev, &host->napi, poll, budget);
	WRITE_ONCE(dev->gro_flush_timeout, flush);
	napi_enable(&host->napi);
	rtnl_unlock();
	host->polls = true;
	return 0;
}

/* ---- commands ---- */

u8 *fanin_host_file(const char *file, size_t *length)
{
	unsigned long long size;
	bool whole;
	u8 *bytes;
	int fd;

	if (os_file_size(file, &size) || !size || size > INT_MAX)
		return ERR_PTR(-EINVAL);
	fd = os_open_file(file, of_read(OPENFLAGS()), 0);
	if (fd < 0)
		return ERR_PTR(fd);
	bytes = vmalloc(size);
	whole = bytes && os_read_file(fd, bytes, size) == size;
	os_close_file(fd);
	if (!whole) {
		vfree(bytes);
		return ERR_PTR(-EINVAL);
	}
	*length = size;
	return bytes;
}

static int load_network(const char *file)
{
	size_t size;
	u8 *bytes;

	if (fabric)
		return -EINVAL;
	bytes = fanin_host_file(file, &size);
	if (IS_ERR(bytes))
		return PTR_ERR(bytes);
	fabric = fanin_fabric_new(bytes, size);
	vfree(bytes);
	return fabric ? 0 : -EINVAL;
}

static int open_record(const char *file)
{
	if (record_fd >= 0)
		return -EBUSY;
	record_fd = os_open_file(file, of_create(of_write(OPENFLAGS())), 0600);
	return record_fd < 0 ? record_fd : 0;
}

static int finish(void)
{
	u32 strays;

	if (!fabric)
		return -EINVAL;
	local_bh_disable();
	strays = fanin_fabric_finish(fabric);
	local_bh_enable();
	if (strays)
		pr_err("fanin: %u packets belonged to no connection\n", strays);
	if (record_failed)
		pr_err("fanin: the record of packets could not be written\n");
	return strays || record_failed ? -EIO : 0;
}

static ssize_t command(struct file *unused, const char __user *user, size_t length, loff_t *offset)
{
	u32 number, mtu, tso, whole, overhead, gro, budget, frames;
	u64 delay, gap, flush;
	int error = -EINVAL;
	char *text;

	if (length > 4096)
		return -EINVAL;
	text = memdup_user_nul(user, length);
	if (IS_ERR(text))
		return PTR_ERR(text);
	if (!strncmp(text, "network ", 8))
		error = load_network(text + 8);
	else if (!strncmp(text, "record ", 7))
		error = open_record(text + 7);
	else if (!strncmp(text, "notes ", 6))
		error = fanin_open_notes(text + 6);
	else if (!strncmp(text, "cc ", 3))
		error = fanin_cc_register(text + 3);
	else if (!strncmp(text, "receivers ", 10))
		error = fanin_receivers_register(text + 10, fanin_has_notes());
	else if (sscanf(text, "host %u %u %u %u %u", &number, &mtu, &tso, &whole, &overhead) == 5)
		error = add_host(number, mtu, tso, whole, overhead);
	else if (sscanf(text, "receive %u %u %u %u %llu %llu %llu", &number, &gro, &budget, &frames, &delay, &gap, &flush) == 7)
		error = add_card(number, gro, budget, frames, delay, gap, flush);
	else if (!strcmp(text, "finish"))
		error = finish();
	kfree(text);
	return error ?: length;
}

static const struct proc_ops commands = { .proc_write = command, .proc_lseek = noop_llseek };

static int __init start(void)
{
	hosts = vzalloc(MAX_HOSTS * sizeof(*hosts));
	if (!hosts)
		return -ENOMEM;
	hrtimer_init(&timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	timer.function = fire;
	return proc_create("fanin", 0600, NULL, &commands) ? 0 : -ENOMEM;
}
device_initcall(start);
