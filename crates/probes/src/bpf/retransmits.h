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
	/* In the order of bytes of a network. */
	u16 skc_dport;
	struct possible_net skc_net;
};

struct sock {
	struct sock_common __sk_common;
};

#pragma clang attribute pop

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_PORTS);
	__type(key, struct port);
	__type(value, u64);
} sent_again SEC(".maps");

static __always_inline void count_port(u32 network, u32 number)
{
	struct port port = { .network = network, .number = number };
	u64 none = 0, *count = bpf_map_lookup_elem(&sent_again, &port);

	if (!count) {
		bpf_map_update_elem(&sent_again, &port, &none, BPF_NOEXIST);
		count = bpf_map_lookup_elem(&sent_again, &port);
	}
	if (count)
		__sync_fetch_and_add(count, 1);
}

/* A server's connections have its port at one end, whichever sends. */
SEC("raw_tp/tcp_retransmit_skb")
int on_retransmit(u64 *context)
{
	struct sock *socket = (struct sock *)context[0];
	u32 near = BPF_CORE_READ(socket, __sk_common.skc_num);
	u32 far = bpf_ntohs(BPF_CORE_READ(socket, __sk_common.skc_dport));
	u32 network = BPF_CORE_READ(socket, __sk_common.skc_net.net, ns.inum);

	count_port(network, ALL_PORTS);
	count_port(network, near);
	if (far != near)
		count_port(network, far);
	return 0;
}

#endif
