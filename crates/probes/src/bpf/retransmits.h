/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A part of threads.bpf.c: on which connections segments were sent again. The kernel's own counters
 * are those of a network namespace, where others than one database may be.
 */
#ifndef UNTAX_RETRANSMITS_H
#define UNTAX_RETRANSMITS_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	unsigned int inum;
};

struct net {
	struct ns_common ns;
};

struct possible_net {
	struct net *net;
};

struct sock_common {
	u16 skc_num;
	struct possible_net skc_net;
};

struct sock {
	struct sock_common __sk_common;
};

struct sk_buff {
	char cb[48];
};

struct tcp_skb_cb {
	u16 tcp_gso_segs;
};

struct trace_event_raw_tcp_retransmit_skb {
	int err;
};

#pragma clang attribute pop

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_PORTS);
	__type(key, struct port);
	__type(value, u64);
} sent_again SEC(".maps");

/* Not of a network that cannot be told from others. */
static __always_inline u32 network_of(struct sock *socket)
{
	if (!bpf_core_field_exists(socket->__sk_common.skc_net.net))
		return 0;
	return BPF_CORE_READ(socket, __sk_common.skc_net.net, ns.inum);
}

/* As RetransSegs counts them: a piece may be of several segments. Its control block is TCP's own. */
static __always_inline u64 segments_of(struct sk_buff *piece)
{
	struct tcp_skb_cb *control = (void *)__builtin_preserve_access_index(&piece->cb);
	u64 segments = BPF_CORE_READ(control, tcp_gso_segs);

	return segments ? segments : 1;
}

/*
 * What a socket has sent again. Newer kernels tell of what was not even tried too, by an error in an
 * argument that the verifier does not allow to be looked at on older ones. What a queue of this machine
 * drops is no error, and counts.
 */
SEC("raw_tp/tcp_retransmit_skb")
int on_retransmit(u64 *context)
{
	struct trace_event_raw_tcp_retransmit_skb *told = NULL;
	struct sock *socket = (struct sock *)context[0];
	u64 segments = segments_of((struct sk_buff *)context[1]), *count;
	struct port port = {};

	if (bpf_core_field_exists(told->err) && (int)context[2] < 0)
		return 0;
	port.network = network_of(socket);
	port.number = BPF_CORE_READ(socket, __sk_common.skc_num);
	count = bpf_map_lookup_elem(&sent_again, &port);
	if (!count) {
		if (!bpf_map_update_elem(&sent_again, &port, &segments, BPF_NOEXIST))
			return 0;
		count = bpf_map_lookup_elem(&sent_again, &port);
	}
	if (count)
		__sync_fetch_and_add(count, segments);
	return 0;
}

#endif
