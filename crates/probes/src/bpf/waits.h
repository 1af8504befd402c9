/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A part of threads.bpf.c: which waits in a futex are the disk's, and the longest waits for files.
 *
 * Who queues for the log's lock waits for the one that holds it, and that one for the disk. So each
 * database has a clock that runs while a thread of it that serves a client waits for what it
 * writes, and a wait in a futex is the disk's for as much of it as that clock advanced.
 */
#ifndef UNTAX_WAITS_H
#define UNTAX_WAITS_H

static __always_inline struct total *total_of(struct thread *thread)
{
	u32 database = thread->database;

	return bpf_map_lookup_elem(&totals, &database);
}

/* What the clock of writers shows. */
static __always_inline u64 clock(struct total *total, u64 now)
{
	u64 since = total->writes_since;

	return total->written + (since && now > since ? now - since : 0);
}

/* Charges a wait in a futex: to the disk for as long as a writer waited for it. */
static __always_inline void settle_futex(struct thread *thread, u64 spent, u64 now)
{
	struct total *total = total_of(thread);
	u64 shows, behind = 0;

	if (total) {
		shows = clock(total, now);
		behind = shows > thread->clock ? shows - thread->clock : 0;
		thread->clock = shows;
	}
	if (behind > spent)
		behind = spent;
	charge(thread, FUTEX_DISK, behind);
	charge(thread, FUTEX, spent - behind);
}

/* Keeps the longest waits, and the clock of writers. */
static __always_inline void settle_file(struct thread *thread, u64 spent, u64 now)
{
	struct total *total = total_of(thread);
	u32 kind = thread->doing - DISK;

	if (!total)
		return;
	if (kind < 3 && now > thread->waits_since && now - thread->waits_since > total->longest[kind])
		total->longest[kind] = now - thread->waits_since;
	if (thread->writes) {
		__sync_fetch_and_add(&total->written, spent);
		total->writes_since = now;
	}
}

/*
 * Whether it polls where only threads of its own database wake it: a server process that waits for
 * another one's lock. Told from waiting for a client by what woke it before, because the wait may
 * outlast the slice.
 */
static __always_inline bool waits_for_peers(struct thread *thread)
{
	return thread->doing == POLL && thread->waits_in && thread->waits_in == thread->peers_in &&
	       thread->clients_in && thread->waits_in != thread->clients_in;
}

/* It is about to be woken by a client's send. */
static __always_inline void woken_by_client(struct thread *thread)
{
	if (thread->waits_in)
		thread->clients_in = thread->waits_in;
}

/* It is about to be woken by a thread of its own database. */
static __always_inline void woken_by_peer(struct thread *thread)
{
	if (thread->waits_in && thread->waits_in != thread->clients_in)
		thread->peers_in = thread->waits_in;
	thread->doing = POLL_PEER;
}

/* A wait begins. */
static __always_inline void begin_wait(struct thread *thread, u64 now)
{
	struct total *total;

	thread->waits_since = now;
	if (thread->doing != FUTEX && !thread->writes)
		return;
	total = total_of(thread);
	if (!total)
		return;
	if (thread->writes)
		total->writes_since = now;
	else
		thread->clock = clock(total, now);
}

/* And ends. */
static __always_inline void end_wait(struct thread *thread)
{
	struct total *total = thread->writes ? total_of(thread) : NULL;

	if (total)
		total->writes_since = 0;
	thread->writes = 0;
}

#endif
