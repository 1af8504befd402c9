/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A part of threads.bpf.c: what the reader runs to begin a slice of the window and to end it.
 */
#ifndef UNTAX_SLICES_H
#define UNTAX_SLICES_H

struct settling {
	u64 now;
	/* How many wait for others. */
	u64 waiting;
};

static long settle_one(struct bpf_map *map, const u32 *pid, struct thread *thread,
		       struct settling *settling)
{
	/* Waited for clients all the while: nobody asked anything of it. */
	bool dormant = thread->doing == POLL && !thread->ran && !waits_for_peers(thread);

	if (dormant)
		thread->doing = DORMANT;
	settle(thread, settling->now);
	if (dormant)
		thread->doing = POLL;
	settling->waiting += waits_for_others(thread);
	thread->ran = 0;
	/* A slice may be hardly longer than what it takes to connect: what began in it counts. */
	charge_stretch(thread, thread->dying);
	hand_over(thread);
	return 0;
}

/* Run by the reader: brings the totals up to the present. */
SEC("syscall")
int settle_all(void *context)
{
	struct settling settling = {.now = bpf_ktime_get_ns()};
	u32 settled = SETTLED, waiting = WAITING;

	bpf_for_each_map_elem(&threads, settle_one, &settling, 0);
	bpf_map_update_elem(&moments, &settled, &settling.now, BPF_ANY);
	bpf_map_update_elem(&moments, &waiting, &settling.waiting, BPF_ANY);
	return 0;
}

static long forget_one(struct bpf_map *map, const u32 *index, struct total *total, void *context)
{
	int what;

	for (what = 0; what < LONG_WAITS; what++)
		total->longest[what] = 0;
	total->unknown_longest = 0;
	return 0;
}

/* Run by the reader, when a window begins. */
SEC("syscall")
int forget_longest(void *context)
{
	bpf_for_each_map_elem(&totals, forget_one, NULL, 0);
	return 0;
}

/* Run by the reader, before the scheduler's events stop, or most of them. */
SEC("syscall")
int pause(void *context)
{
	if (!paused)
		paused_at = bpf_ktime_get_ns();
	paused = 1;
	return 0;
}

/*
 * Whether a thread runs or waits for a CPU, where the kernel does not give its task to programs: read where
 * it was last. One that waits for something else has the registers of its call there, which cannot be read.
 */
static __always_inline void look_where_it_was(struct thread *thread, u32 pid, u64 now)
{
	struct task_struct *task = (struct task_struct *)thread->task;

	if (!task || (u32)BPF_CORE_READ(task, pid) != pid) {
		thread->waits_since = now;
		thread->waits_from = traced_ns(now);
		return;
	}
	count_wait(thread, BPF_CORE_READ(task, nvcsw) + BPF_CORE_READ(task, nivcsw), now);
	if (BPF_CORE_READ(task, __state) != TASK_RUNNING)
		return;
	if (!bpf_core_field_exists(task->on_cpu))
		return;
	if (BPF_CORE_READ_BITFIELD_PROBED(task, on_cpu))
		thread->doing = thread->on_cpu;
	else
		begin_runnable(thread, task, now);
}

/*
 * Newer kernels tell what a thread is doing that was not watched for a while, and whether it is there
 * at all: it may have ended while the reader went through the list of them.
 */
static __always_inline bool look(struct thread *thread, u32 pid, u64 now)
{
	struct task_struct *task;
	unsigned int state;

	if (!bpf_ksym_exists(bpf_task_from_pid)) {
		look_where_it_was(thread, pid, now);
		return 1;
	}
	task = bpf_task_from_pid(pid);
	if (!task)
		return 0;
	state = task->__state;
	count_wait(thread, task->nvcsw + task->nivcsw, now);
	if (state != TASK_RUNNING)
		thread->doing = reason(thread, task, state);
	else if (!bpf_core_field_exists(task->on_cpu))
		thread->doing = UNSEEN;
	/* Its size moves with kernels too. */
	else if (BPF_CORE_READ_BITFIELD(task, on_cpu))
		thread->doing = thread->on_cpu;
	else
		begin_runnable(thread, task, now);
	bpf_task_release(task);
	return !(state & TASK_DEAD);
}

static long resume_one(struct bpf_map *map, const u32 *pid, struct thread *thread, u64 *now)
{
	/* A thread that waits for its first client is as new as before. */
	bool unasked = thread->threaded && thread->doing == FUTEX && !thread->polls;

	/* It ended while nobody looked. */
	if (thread->dying) {
		let_go(thread, *pid);
		return 0;
	}
	if (!thread->known_since)
		follow_from(thread, traced_ns(*now));
	if (thread->born && thread->polls < POLLS && !unasked && *now > thread->since + BEGINNING_NS)
		thread->missed = 1;
	thread->client = 0;
	thread->charged = 0;
	thread->woken = 0;
	thread->waking = 0;
	thread->since = *now;
	thread->on_cpu = ON_CPU;
	/* Who waited still waits, most likely; who ran or was about to may do anything. */
	if (thread->doing == RUNNABLE || thread->doing <= RECLAIM_ON_CPU)
		thread->doing = UNSEEN;
	if (!look(thread, *pid, *now)) {
		let_go(thread, *pid);
		return 0;
	}
	/* It waits anew: the pause was the end of what it waited for before. */
	if (thread->waits_from >= traced_ns(*now))
		thread->held_over = 0;
	return 0;
}

/* Run by the reader, when they all come again. */
SEC("syscall")
int resume(void *context)
{
	u64 now = bpf_ktime_get_ns();
	u32 moment = RESUMED;

	skipped += now - paused_at;
	paused_at = now;
	bpf_for_each_map_elem(&threads, resume_one, &now, 0);
	bpf_map_update_elem(&moments, &moment, &now, BPF_ANY);
	paused = 0;
	return 0;
}

#endif
