/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A part of threads.bpf.c: the longest waits, and for whom a thread waits that polls.
 */
#ifndef UNTAX_WAITS_H
#define UNTAX_WAITS_H

/* Whether it waits for files or memory. */
static __always_inline bool is_long(struct thread *thread)
{
	return thread->doing >= DISK && thread->doing <= RECLAIM_STALLED;
}

/* Keeps the longest waits. */
static __always_inline void settle_long(struct thread *thread, u64 spent, u64 now)
{
	struct total *total = total_of(thread);
	u32 what = thread->doing - DISK;
	u64 waited;

	if (!total || (thread->forks && thread->polling == TIMED))
		return;
	/* The verifier wants the bound on the very register that indexes. */
	asm volatile("%0 &= %1" : "+r"(what) : "i"(LONG_WAITS - 1));
	waited = now > thread->waits_since ? now - thread->waits_since : 0;
	if (waited > total->longest[what])
		total->longest[what] = waited;
	if (thread->doing == FILESYSTEM && waited >= HANG_NS)
		__sync_fetch_and_add(&total->hung, spent);
}

/* Keeps the longest wait of unknown meaning. */
static __always_inline void settle_unknown(struct thread *thread, u64 now)
{
	struct total *total = total_of(thread);
	u64 waited = now > thread->waits_since ? now - thread->waits_since : 0;

	if (!total || waited <= total->unknown_longest)
		return;
	total->unknown_longest = waited;
	total->unknown_call = thread->call;
}

/*
 * It waits in an epoll descriptor without a time-out: for its client, or for other processes of its
 * server, whose latches are no sockets, as one that waits for another one's lock does.
 */
static __always_inline void tell_for_whom(struct thread *thread, struct task_struct *task,
					  u32 descriptor)
{
	u32 name = descriptor + 1;
	struct rb_node *polled;

	thread->waits_in = name;
	if (name == thread->peers_in || name == thread->clients_in)
		return;
	polled = polled_by(task, descriptor);
	if (!polled)
		return;
	if (holds_socket(polled)) {
		thread->clients_in = name;
		thread->asked = 1;
	} else {
		thread->peers_in = name;
	}
}

/* Whether it serves a client, and waits where only threads of its own database wake it. */
static __always_inline bool waits_for_peers(struct thread *thread)
{
	return thread->doing == POLL && thread->asked && thread->waits_in &&
	       thread->waits_in == thread->peers_in;
}

/* It is about to be woken by a thread of its own database. */
static __always_inline void woken_by_peer(struct thread *thread)
{
	if (!thread->waits_in || thread->waits_in != thread->clients_in)
		thread->doing = POLL_PEER;
}

/* A wait begins, after so many switches: if there were as many before, it goes on. */
static __always_inline void count_wait(struct thread *thread, u64 switches, u64 now)
{
	if (thread->switches == switches)
		return;
	thread->switches = switches;
	thread->waits_since = now;
	thread->waits_from = traced_ns(now);
}

#endif
