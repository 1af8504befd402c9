/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A part of threads.bpf.c: what a thread waited for while it waited for another thread.
 *
 * A wait that another watched thread ends is charged to what that one did meanwhile: whether it
 * computed, waited for a CPU or the disk, or was idle, and where it waited for a third thread, to what
 * that wait was charged to. So each thread keeps where its time went, whoever it waited for, and each
 * one that ended a wait keeps some past points of that too.
 */
#ifndef UNTAX_CHAINS_H
#define UNTAX_CHAINS_H

#include "history.h"

/* Neighbours that held locks of the kernel, in this window. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_STRANGERS);
	__type(key, u32);
	__type(value, struct holder);
} holders SEC(".maps");

/*
 * Threads that are watched from now on, before they are in the table: too large for a program's own stack.
 * An interrupt may come upon who starts one, and wake another.
 */
enum blank { STARTED, STRANGER, BLANKS };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, BLANKS);
	__type(key, u32);
	__type(value, struct thread);
} blanks SEC(".maps");

static __always_inline struct thread *blank_thread(u32 index)
{
	struct thread *blank = bpf_map_lookup_elem(&blanks, &index);

	if (blank)
		__builtin_memset(blank, 0, sizeof(*blank));
	return blank;
}

/* How many threads are watched that are of no database. */
u64 strangers_watched;

static __always_inline bool is_stranger(struct thread *thread)
{
	return thread->database >= MAX_DATABASES;
}

/* A thread is watched no more. */
static __always_inline void let_go(struct thread *thread, u32 pid)
{
	if (is_stranger(thread))
		__sync_fetch_and_sub(&strangers_watched, 1);
	bpf_map_delete_elem(&threads, &pid);
}

/* From now on, by the clock that stands still in pauses, it is known where its time goes. */
static __always_inline void follow_from(struct thread *thread, u64 traced)
{
	int cause;

	for (cause = 0; cause < CAUSES; cause++)
		thread->causes[cause] = 0;
	thread->known_since = traced;
	thread->charged = 0;
	thread->held_over = 0;
}

static __always_inline void refund(struct thread *thread, u8 cause, u64 ns)
{
	u64 index = cause;

	/* The verifier wants the bound on the very register that indexes. */
	asm volatile("" : "+r"(index));
	if (index < CAUSES)
		thread->causes[index] -= ns < thread->causes[index] ? ns : thread->causes[index];
}

/* Where it is added up what others did during such waits of such threads. */
static __always_inline u64 *behind_in(struct total *total, struct thread *thread, u32 doing)
{
	u64 polling = thread->polling, of = doing;

	/* The verifier wants the bounds on the very registers that index. */
	asm volatile("" : "+r"(polling), "+r"(of));
	if (polling >= POLLINGS || of >= DOINGS)
		return NULL;
	return total->behind[polling][of];
}

/* Charges a part of a wait. */
static __always_inline void charge_behind(struct thread *thread, u64 *behind, u8 cause, u64 ns)
{
	if (cause >= CAUSES)
		return;
	thread->causes[cause] += ns;
	if (ns)
		__sync_fetch_and_add(&behind[cause], ns);
}

/* In millionths, about; the divisor is no smaller. */
static __always_inline u64 part_of(u64 ns, u64 all_ns)
{
	return all_ns ? (ns << 20) / all_ns : 0;
}

static __always_inline u64 times(u64 ns, u64 part)
{
	return (ns * part) >> 20;
}

/* Adds what a holder did during a wait. */
static __always_inline void charge_holder(struct bracket *bracket, u32 pid)
{
	struct holder *holder = bpf_map_lookup_elem(&holders, &pid);
	u32 cause;

	if (!holder)
		return;
	for (cause = 0; cause < CAUSES; cause++)
		__sync_fetch_and_add(&holder->causes[cause], bracket->spent[cause]);
}

/*
 * Charges a wait of so long to what happened from a moment on, which is in the middle of a bracket.
 */
verified_once int charge_between(struct thread *thread, struct bracket *bracket, u32 doing, u64 moment,
				 u64 waited)
{
	struct total *total = thread ? total_of(thread) : NULL;
	u64 left = waited, part = 0, *behind, waiting;
	u32 cause, pid;

	if (!total || !bracket)
		return 0;
	behind = behind_in(total, thread, doing);
	if (!behind)
		return 0;
	pid = bracket->holder;
	if (bracket->after.at > moment)
		part = part_of(bracket->after.at - moment, bracket->after.at - bracket->before.at);
	waiting = part_of(waited, bracket->now.at - moment);
	for (cause = 0; cause < CAUSES; cause++) {
		u64 after = bracket->after.causes[cause];
		u64 spent = bracket->now.causes[cause] - after;

		spent = times(spent + times(after - bracket->before.causes[cause], part), waiting);
		if (spent > left)
			spent = left;
		left -= spent;
		charge_behind(thread, behind, pid ? CAUSE_KERNEL : cause, spent);
		bracket->spent[cause] = spent;
	}
	charge_behind(thread, behind, CAUSE_UNRESOLVED, left);
	if (pid)
		charge_holder(bracket, pid);
	return 0;
}

/*
 * The current thread, if it is a neighbour's: whatever it did while others waited for it in the kernel, these
 * waited for a lock of the kernel. The kernel's own threads hold none for long, and write the journal.
 */
static __always_inline u32 holder_of(struct thread *by, u32 pid)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct holder none = {};

	if (!is_stranger(by) || (task->flags & KERNEL_THREAD))
		return 0;
	if (!bpf_map_lookup_elem(&holders, &pid)) {
		bpf_get_current_comm(&none.comm, sizeof(none.comm));
		bpf_map_update_elem(&holders, &pid, &none, BPF_NOEXIST);
	}
	return pid;
}

/* When this wait began, as far as it is known what happened since. */
static __always_inline u64 beginning(struct thread *thread)
{
	return thread->waits_from > thread->known_since ? thread->waits_from : thread->known_since;
}

/* A wait for others ends, and none of them ended it: it goes on with the next one, perhaps. */
static __always_inline void hold_over(struct thread *thread, u64 now)
{
	u64 since = beginning(thread), traced = traced_ns(now);

	if (!thread->held_over) {
		thread->held_over = since;
		thread->waited = 0;
	}
	if (traced > since)
		thread->waited += traced - since;
}

/* It begins to wait: for its client, when what it waited for has come. */
static __always_inline void begin_chain(struct thread *thread)
{
	if (thread->doing == RECEIVE || (thread->doing == POLL && !waits_for_peers(thread)))
		thread->held_over = 0;
}

/* The current thread, which is watched, ends a wait: that is charged to what it did meanwhile. */
static __always_inline void charge_to_waker(struct thread *thread, struct thread *by, u32 pid, u64 now)
{
	u32 zero = 0, doing = waits_for_peers(thread) ? POLL_PEER : thread->doing;
	struct bracket *bracket = bpf_map_lookup_elem(&brackets, &zero);
	u64 in_slice = now > thread->since ? now - thread->since : 0;
	u64 since = beginning(thread), traced = traced_ns(now);
	u64 waited, unknown, known, *behind;
	struct total *total = total_of(thread);
	struct history *history;

	behind = total ? behind_in(total, thread, doing) : NULL;
	if (since >= traced || !bracket || !behind)
		return;
	waited = traced - since;
	if (thread->held_over) {
		since = thread->held_over;
		waited += thread->waited;
		thread->held_over = 0;
	}
	/* What ends of slices and timers have charged of it already, for want of its end. */
	if (waited > in_slice)
		refund(thread, cause_of(doing), waited - in_slice);
	thread->charged = 1;
	bracket->holder = holder_of(by, pid);
	known = since > by->known_since ? since : by->known_since;
	unknown = times(known - since, part_of(waited, traced - since));
	charge_behind(thread, behind, CAUSE_UNRESOLVED, unknown);
	waited -= unknown;
	if (known >= traced_ns(by->since) && (!paused || by->doing == by->on_cpu)) {
		if (bracket->holder)
			charge_behind(thread, behind, CAUSE_KERNEL, waited);
		else if (cause_of_running(by) == CAUSE_MEMORY)
			charge_behind(thread, behind, CAUSE_MEMORY, waited);
		else
			charge_behind(thread, behind, CAUSE_CPU, waited);
		return;
	}
	history = history_of(by, pid);
	if (!history)
		give_history(by, pid);
	if (put_between(bracket, history, by, known, now))
		charge_between(thread, bracket, doing, known, waited);
	else
		charge_behind(thread, behind, CAUSE_UNRESOLVED, waited);
}

/* A thread that is of no database holds what one waits for in the kernel: it is watched from now on. */
static __always_inline void watch_stranger(u32 pid, u64 now)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *stranger = pid ? blank_thread(STRANGER) : NULL;

	if (!stranger || strangers_watched >= MAX_STRANGERS)
		return;
	stranger->database = MAX_DATABASES;
	stranger->since = now;
	stranger->known_since = traced_ns(now);
	stranger->waits_from = stranger->known_since;
	stranger->task = (u64)task;
	stranger->limited = 1;
	if (!bpf_map_update_elem(&threads, &pid, stranger, BPF_NOEXIST))
		__sync_fetch_and_add(&strangers_watched, 1);
}

/* Whether a thread in such a call ends waits of others of its database. Who writes to a socket answers. */
static __always_inline bool ends_waits(const volatile struct syscall *call)
{
	struct task_struct *task = bpf_get_current_task_btf();

	/* The kernel's own worker for a thread of the database: its registers are those of that one. */
	if (task->flags & IO_WORKER)
		return 1;
	if (!call)
		return 0;
	if (call->wakes_peers || call->sleeps == FUTEX)
		return 1;
	return call->sends && call->writes && !is_socket(open_as(task, ARGUMENT_1(registers())));
}

/*
 * The current thread is about to end a wait: if that was for this thread, it is charged so. Locks of the
 * kernel are held by whatever thread, in whatever call.
 */
static __always_inline void follow_waker(struct thread *thread, struct thread *by, u32 pid, u64 now)
{
	bool in_kernel = thread->doing == FILESYSTEM || thread->doing == FAULT;

	if (!in_kernel && thread->doing != FUTEX && thread->doing != POLL && thread->doing != POLL_PEER &&
	    thread->doing != RECEIVE && thread->doing != SLEEP && thread->doing != ASYNC_IO)
		return;
	if (by && by != thread && by->known_since && by->known_since < traced_ns(now) &&
	    (in_kernel || (by->database == thread->database && ends_waits(syscall_of(registers())))))
		charge_to_waker(thread, by, pid, now);
	else if (paused)
		return;
	else if (!by && in_kernel)
		watch_stranger(pid, now);
	else if (waits_for_peers(thread))
		hold_over(thread, now);
}

/* Whether it waits for others of its database, most likely, while a client waits for it. */
static __always_inline bool waits_for_others(struct thread *thread)
{
	return waits_for_peers(thread) ||
	       (serves(thread) && (thread->doing == FUTEX || thread->doing == FILESYSTEM ||
				   thread->doing == FAULT));
}

/*
 * In a pause: a wait that began before it has been charged up to it, and ends. A timer that interrupts a wait for
 * others does not end it.
 */
static __always_inline void end_open_wait(struct thread *thread)
{
	u32 waiting = WAITING;
	u64 *left;

	if (!waits_for_peers(thread))
		thread->charged = 1;
	left = waits_for_others(thread) && thread->charged ? bpf_map_lookup_elem(&moments, &waiting) : NULL;
	if (left && *left)
		__sync_fetch_and_sub(left, 1);
}

#endif
