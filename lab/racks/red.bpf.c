/* Random early detection in front of a port (Floyd and Jacobson 1993), for kernels without sch_red: tc filter ... bpf da.
 * The backlog is that of a link of BYTES_PER_SECOND; the average's weight is 1/64; at MOST one in ten is dropped, above it all.
 * LEAST and MOST are bytes. */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#define SEC(name) __attribute__((section(name), used))
static __u64 (*now_ns)(void) = (void *)BPF_FUNC_ktime_get_ns;
static __u32 (*random_u32)(void) = (void *)BPF_FUNC_get_prandom_u32;

static volatile __u64 last_ns, backlog, average_64;

SEC("classifier")
int red(struct __sk_buff *skb)
{
	__u64 now = now_ns(), since = now - last_ns, length = skb->len;

	if (since > 1000000000)
		since = 1000000000;
	last_ns = now;
	__u64 gone = since * BYTES_PER_SECOND / 1000000000, before = backlog;
	backlog = before > gone ? before - gone : 0;
	/* An idle link forgets. */
	average_64 = gone > before + LEAST ? 0 : average_64 - average_64 / 64 + backlog;
	__u64 average = average_64 / 64;
	if (average >= MOST)
		return TC_ACT_SHOT;
	if (average > LEAST && random_u32() % 65536 < 6554 * (average - LEAST) / (MOST - LEAST))
		return TC_ACT_SHOT;
	/* What the full queue behind drops is not in it. */
	if (backlog + length <= LIMIT)
		backlog += length;
	return TC_ACT_OK;
}

char _license[] SEC("license") = "GPL";
