// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Host routing and service load balancing in eBPF, as network plugins for containers do them, with
 * nothing else that those do: no policy, no connection table, no metrics.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Into the namespace at the other end of a link; or out of a link, to the next hop of the route. */
#define INTO_PEER 1
#define OUT_OF_LINK 2

struct hop {
	__u32 ifindex;
	__u32 how;
};

/* By destination address, in network order. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, __u32);
	__type(value, struct hop);
} hops SEC(".maps");

SEC("tc")
int route(struct __sk_buff *skb)
{
	void *data = (void *)(long)skb->data;
	void *end = (void *)(long)skb->data_end;
	struct iphdr *ip = data + sizeof(struct ethhdr);
	struct hop *hop;
	__u32 destination;

	if ((void *)(ip + 1) > end || skb->protocol != bpf_htons(ETH_P_IP))
		return TC_ACT_OK;
	destination = ip->daddr;
	hop = bpf_map_lookup_elem(&hops, &destination);
	if (!hop)
		return TC_ACT_OK;
	if (hop->how == INTO_PEER)
		return bpf_redirect_peer(hop->ifindex, 0);
	return bpf_redirect_neigh(hop->ifindex, 0, 0, 0);
}

/* Address and port in network order, as the kernel gives them (the port in the low half). */
struct endpoint {
	__u32 address;
	__u32 port;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, struct endpoint);
	__type(value, struct endpoint);
} services SEC(".maps");

/* Gives a socket the server behind a service when it connects: no packet is changed later. */
SEC("cgroup/connect4")
int balance(struct bpf_sock_addr *socket)
{
	struct endpoint service = { .address = socket->user_ip4, .port = socket->user_port };
	struct endpoint *server = bpf_map_lookup_elem(&services, &service);

	if (server) {
		socket->user_ip4 = server->address;
		socket->user_port = server->port;
	}
	return 1;
}
