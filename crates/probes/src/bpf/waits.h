/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A part of threads.bpf.c: which waits in a futex are for files or memory, and the longest waits for
 * files.
 *
 * Who queues for the log's lock waits for the one that holds it, and that one for the disk, say. So
 * each database has clocks that run while a thread of it that serves a client waits for what it
 * writes, or frees memory, and a wait in a futex is the disk's for as much of it as the disk's clock
 * advanced.
 */
#ifndef UNTAX_WAITS_H
#define UNTAX_WAITS_H

/* What the clock of holders that wait for this shows. */
static __always_inline u64 clock(struct total *total, u32 what, u64 now)
{
	u64 since = total->holds_for == what ? total->holds_since : 0;

	return total->held[what] + (since && now > since ? now - since : 0);
}

/* A clock runs from now on for what is waited for, or (0) it stands still. */
static __always_inline void set_clock(struct thread *thread, u32 what, u64 since)
{
	struct total *total = total_of(thread);

	if (!total)
		return;
	total->holds_for = what;
	total->holds_since = since;
}

/* Charges a wait in a futex: to what holders waited for meanwhile. */
static __always_inline void settle_futex(struct thread *thread, u64 spent, u64 now)
{
	struct total *total = total_of(thread);
	u32 what;

	for (what = 0; total && what < HOLDING_WAITS; what++) {
		u64 shows = clock(total, what, now), before = thread->clocks[what];
		u64 behind = shows > before ? shows - before : 0;

		thread->clocks[what] = shows;
		if (behind > spent)
			behind = spent;
		if (behind)
			charge(thread, FUTEX_DISK + what, behind);
		spent -= behind;
	}
	charge(thread, FUTEX, spent);
}

/*
 * The same of a program of unknown model, which may as well wait for something to do: until the thread
 * began its work that wakes it, and all the time if none does.
 */
static __always_inline void settle_unjudged(struct thread *thread, u64 spent, u64 now)
{
	u64 behind = thread->behind && now > thread->behind ? now - thread->behind : 0;

	if (behind > spent)
		behind = spent;
	charge(thread, FUTEX_IDLE, spent - behind);
	settle_futex(thread, behind, now);
}

/* The current thread is about to end its wait in a futex, in a call that does so. */
static __always_inline void end_by_peer(struct thread *thread,
					const volatile struct syscall *call)
{
	u32 pid = bpf_get_current_pid_tgid();
	struct thread *by = bpf_map_lookup_elem(&threads, &pid);

	if (!by || by->database != thread->database || !call || call->sleeps != FUTEX)
		return;
	/* One that has worked since before it was watched has done so all the while. */
	thread->behind = by->works_since ?: 1;
}

/* It goes on after a wait: is it at work anew, or has it been behind others at work? */
static __always_inline void begin_work(struct thread *thread, u8 after, u64 now)
{
	switch (after) {
	case FUTEX:
		if (!thread->behind)
			thread->works_since = now;
		else if (thread->behind > thread->waits_since)
			thread->works_since = thread->behind;
		break;
	case RECEIVE:
	case POLL:
	case DORMANT:
	case ASYNC_IO:
	case SLEEP:
	case OTHER:
	case UNSEEN:
		thread->works_since = now;
	}
	thread->behind = 0;
}

/* Whether it waits for files or memory, perhaps with a lock held. */
static __always_inline bool is_holding(struct thread *thread)
{
	return thread->doing >= DISK && thread->doing <= RECLAIM_STALLED;
}

/* Keeps the longest waits, and the clocks of holders. */
static __always_inline void settle_holding(struct thread *thread, u64 spent, u64 now)
{
	struct total *total = total_of(thread);
	/* One that frees memory may be on a CPU, or wait for one. */
	u32 what = is_holding(thread) ? thread->doing - DISK : RECLAIM_STALLED - DISK;
	u64 waited;

	if (!total)
		return;
	/* The verifier wants the bound on the very register that indexes. */
	asm volatile("%0 &= %1" : "+r"(what) : "i"(HOLDING_WAITS - 1));
	if (thread->holds) {
		__sync_fetch_and_add(&total->held[what], spent);
		set_clock(thread, what, now);
	}
	if (!is_holding(thread) || (thread->forks && thread->polling == TIMED))
		return;
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

/* From now on a wait is watched. */
static __always_inline void begin_wait(struct thread *thread, u64 now)
{
	struct total *total;
	u32 what;

	thread->behind = 0;
	if (thread->holds) {
		set_clock(thread, thread->doing - DISK, now);
		return;
	}
	total = thread->doing == FUTEX ? total_of(thread) : NULL;
	for (what = 0; total && what < HOLDING_WAITS; what++)
		thread->clocks[what] = clock(total, what, now);
}

/* And ends: one that frees memory goes on to. */
static __always_inline void end_wait(struct thread *thread, u64 now)
{
	bool frees = thread->on_cpu == RECLAIM_ON_CPU;

	if (thread->holds)
		set_clock(thread, RECLAIM_STALLED - DISK, frees ? now : 0);
	thread->holds &= frees;
}

#endif
