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

/* Where the time of a thread had gone at a moment, by the clock that stands still in pauses: ns. */
struct point {
	u64 at;
	u64 causes[CAUSES];
};

/*
 * Past points of one thread, two on each level. Those of a level are FINEST_NS << level apart at least: so
 * they reach back for a second, and the longer ago a point is, the further apart are those beside it.
 */
#define LEVELS 15
#define FINEST_NS 64000ull

struct history {
	/* The thread that it is of: the next one that needs one may have taken it over. */
	u32 owner;
	/* Which of both is the newer one, a bit for each level. */
	u32 newer;
	struct point points[LEVELS + 1][2];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	/* Set before the program is loaded. */
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct history);
} histories SEC(".maps");

/* The history that is given away next. */
u32 next_history;

/* A moment in the past of a thread, between two points of it, and the present. */
struct bracket {
	struct point before;
	struct point after;
	struct point now;
};

/* Too large for a program's own stack. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct bracket);
} brackets SEC(".maps");

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

static __always_inline struct history *history_of(struct thread *thread, u32 pid)
{
	u32 index = thread->history - 1;
	struct history *history = thread->history ? bpf_map_lookup_elem(&histories, &index) : NULL;

	return history && history->owner == pid ? history : NULL;
}

/* Another CPU may give it away at the same time: then one of both threads has none, and gets another. */
static __always_inline void give_history(struct thread *thread, u32 pid)
{
	u32 index = next_history++ % (u32)(meanings.histories ?: 1), level;
	struct history *history = bpf_map_lookup_elem(&histories, &index);

	if (!history)
		return;
	for (level = 0; level < LEVELS; level++) {
		history->points[level][0].at = 0;
		history->points[level][1].at = 0;
	}
	history->owner = pid;
	thread->history = index + 1;
}

static __always_inline void copy_causes(u64 *to, const u64 *from)
{
	int cause;

	for (cause = 0; cause < CAUSES; cause++)
		to[cause] = from[cause];
}

/* One of the points of a level: the newer one, or the other. */
static __always_inline struct point *point_of(struct history *history, u32 level, u32 other)
{
	u64 index = level, which = ((history->newer >> (level & 31)) ^ other) & 1;

	/* The verifier wants the bounds on the very registers that index. */
	asm volatile("%0 &= %1" : "+r"(index) : "i"(LEVELS));
	asm volatile("%0 &= 1" : "+r"(which));
	return &history->points[index][which];
}

verified_once int add_point(struct history *history, struct thread *thread, u64 now)
{
	u32 level;

	if (!history || !thread)
		return 0;
	for (level = 0; level < LEVELS; level++) {
		struct point *point;

		if (now < point_of(history, level, 0)->at + (FINEST_NS << level))
			break;
		point = point_of(history, level, 1);
		point->at = now;
		copy_causes(point->causes, thread->causes);
		history->newer ^= 1u << level;
	}
	return 0;
}

/* Its time has just been charged: others may ask later where it went from now on. */
static __always_inline void keep_point(struct thread *thread, u32 pid, u64 now)
{
	u64 traced = traced_ns(now);
	struct history *history;

	if (!thread->history || traced < thread->next_point)
		return;
	thread->next_point = traced + FINEST_NS;
	history = history_of(thread, pid);
	if (history)
		add_point(history, thread, traced);
}

/* The first level whose newest point is no later than a moment; LEVELS when none is. */
verified_once u32 level_at(struct history *history, u64 moment)
{
	u32 level;

	if (!history)
		return LEVELS;
	for (level = 0; level < LEVELS; level++)
		if (point_of(history, level, 0)->at <= moment)
			break;
	return level;
}

/* Where the time of a thread goes that runs. */
static __always_inline u8 cause_of_running(struct thread *thread)
{
	return thread->on_cpu == RECLAIM_ON_CPU ? CAUSE_MEMORY : CAUSE_CPU;
}

/* Where it has gone until now. One that was not on a CPU when a pause began may be by now. */
static __always_inline void present_point(struct point *point, struct thread *thread, u64 now)
{
	bool runs = !paused || thread->doing == thread->on_cpu;
	u64 running = runs && now > thread->since ? now - thread->since : 0;

	point->at = traced_ns(now);
	copy_causes(point->causes, thread->causes);
	if (cause_of_running(thread) == CAUSE_MEMORY)
		point->causes[CAUSE_MEMORY] += running;
	else
		point->causes[CAUSE_CPU] += running;
}

static __always_inline void copy_point(struct point *to, struct point *from)
{
	to->at = from->at;
	copy_causes(to->causes, from->causes);
}

/*
 * Puts a moment between two points. Points of a level are never older than the newest one of the next: so
 * only those of two levels come near. What is older than the watch gives way to its beginning, when no
 * time had gone anywhere. Without a history that is all there is before the present, which is too far
 * apart to tell of a moment in the later half. Gives whether the moment can be told of.
 */
verified_once int put_between(struct bracket *bracket, struct history *history, struct thread *thread,
			      u64 moment, u64 now)
{
	struct point *older, *newer;
	u32 level, cause;

	if (!bracket || !thread)
		return 0;
	present_point(&bracket->now, thread, now);
	copy_point(&bracket->after, &bracket->now);
	bracket->before.at = thread->known_since;
	for (cause = 0; cause < CAUSES; cause++)
		bracket->before.causes[cause] = 0;
	if (!history)
		return moment - thread->known_since <= bracket->now.at - moment;
	level = level_at(history, moment);
	if (level > 0) {
		newer = point_of(history, level - 1, 0);
		older = point_of(history, level - 1, 1);
		if (older->at > moment) {
			copy_point(&bracket->after, older);
		} else {
			copy_point(&bracket->after, newer);
			if (older->at > thread->known_since) {
				copy_point(&bracket->before, older);
				return 1;
			}
		}
	}
	newer = point_of(history, level, 0);
	if (level < LEVELS && newer->at > thread->known_since)
		copy_point(&bracket->before, newer);
	return 1;
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

/*
 * Charges a wait of so long to what happened from a moment on, which is in the middle of a bracket.
 */
verified_once int charge_between(struct thread *thread, struct bracket *bracket, u32 doing, u64 moment,
				 u64 waited)
{
	struct total *total = thread ? total_of(thread) : NULL;
	u64 left = waited, part = 0, *behind, waiting;
	u32 cause;

	if (!total || !bracket)
		return 0;
	behind = behind_in(total, thread, doing);
	if (!behind)
		return 0;
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
		charge_behind(thread, behind, cause, spent);
	}
	charge_behind(thread, behind, CAUSE_UNRESOLVED, left);
	return 0;
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
	known = since > by->known_since ? since : by->known_since;
	unknown = times(known - since, part_of(waited, traced - since));
	charge_behind(thread, behind, CAUSE_UNRESOLVED, unknown);
	waited -= unknown;
	if (known >= traced_ns(by->since) && (!paused || by->doing == by->on_cpu)) {
		if (cause_of_running(by) == CAUSE_MEMORY)
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
	stranger->works_since = now;
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
