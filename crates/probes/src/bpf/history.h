/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A part of threads.bpf.c: where the time of a thread had gone at moments in the past.
 */
#ifndef UNTAX_HISTORY_H
#define UNTAX_HISTORY_H

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
	/* The thread whose time this is, where it is a neighbour that holds a lock of the kernel; 0: it is none. */
	u64 holder;
	/* What it did of what is charged. */
	u64 spent[CAUSES];
};

/* Too large for a program's own stack. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct bracket);
} brackets SEC(".maps");

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

#endif
