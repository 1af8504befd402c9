/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A part of threads.bpf.c: which waits in a futex are for files, and the longest waits for files.
 *
 * Who queues for the log's lock waits for the one that holds it, and that one for the disk, say. So
 * each database has clocks that run while a thread of it that serves a client waits for what it
 * writes, and a wait in a futex is the disk's for as much of it as the disk's clock advanced.
 */
#ifndef UNTAX_WAITS_H
#define UNTAX_WAITS_H

static __always_inline struct total *total_of(struct thread *thread)
{
	u32 database = thread->database;

	return bpf_map_lookup_elem(&totals, &database);
}

/* What the clock of writers that wait for this shows. */
static __always_inline u64 clock(struct total *total, u32 what, u64 now)
{
	u64 since = total->writes_for == what ? total->writes_since : 0;

	return total->written[what] + (since && now > since ? now - since : 0);
}

/* Charges a wait in a futex: to files for as long as a writer waited for them. */
static __always_inline void settle_futex(struct thread *thread, u64 spent, u64 now)
{
	struct total *total = total_of(thread);
	u32 what;

	for (what = 0; total && what < FILE_WAITS; what++) {
		u64 shows = clock(total, what, now), before = thread->clocks[what];
		u64 behind = shows > before ? shows - before : 0;

		thread->clocks[what] = shows;
		if (behind > spent)
			behind = spent;
		charge(thread, FUTEX_DISK + what, behind);
		spent -= behind;
	}
	charge(thread, FUTEX, spent);
}

/* Keeps the longest waits, and the clocks of writers. */
static __always_inline void settle_file(struct thread *thread, u64 spent, u64 now)
{
	struct total *total = total_of(thread);
	u32 what = thread->doing - DISK;
	u64 waited;

	if (!total || what >= FILE_WAITS)
		return;
	if (thread->writes) {
		__sync_fetch_and_add(&total->written[what], spent);
		total->writes_since = now;
		total->writes_for = what;
	}
	if (thread->forks && thread->polling == TIMED)
		return;
	waited = now > thread->waits_since ? now - thread->waits_since : 0;
	if (waited > total->longest[what])
		total->longest[what] = waited;
	if (thread->doing == FILESYSTEM && waited >= HANG_NS)
		__sync_fetch_and_add(&total->hung, spent);
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
	u32 what;

	thread->waits_since = now;
	if (thread->doing != FUTEX && !thread->writes)
		return;
	total = total_of(thread);
	if (!total)
		return;
	if (thread->writes) {
		total->writes_for = thread->doing - DISK;
		total->writes_since = now;
		return;
	}
	for (what = 0; what < FILE_WAITS; what++)
		thread->clocks[what] = clock(total, what, now);
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
