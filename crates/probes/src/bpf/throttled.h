/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A part of threads.bpf.c: how long limits held threads back, in the fields of several kernels.
 */

/* The clock by which some kernels count it: less the idle time that cannot be made up for. */
static __always_inline u64 pelt_clock(struct rq *rq)
{
	return BPF_CORE_READ(rq, clock_pelt) - BPF_CORE_READ(rq, lost_idle_time);
}

/* Since when (ns, on the kernel's clock) threads of this run queue have been held back; 0: they are not. */
static __always_inline u64 stopped_since(struct cfs_rq *queue)
{
	/* Since 6.6. */
	if (bpf_core_field_exists(queue->throttled_clock_self))
		return BPF_CORE_READ(queue, throttled_clock_self);
	if (!BPF_CORE_READ(queue, throttle_count))
		return 0;
	/* Since 5.19. */
	if (bpf_core_field_exists(queue->throttled_clock_pelt))
		return BPF_CORE_READ(queue, throttled_clock_pelt);
	if (bpf_core_field_exists(queue->throttled_clock_task))
		return BPF_CORE_READ(queue, throttled_clock_task);
	return 0;
}

/* For how long (ns, ever growing) they have been, until now if they are. */
static __always_inline u64 throttled_time(struct cfs_rq *queue, u64 since)
{
	if (bpf_core_field_exists(queue->throttled_clock_self_time))
		return BPF_CORE_READ(queue, throttled_clock_self_time) +
		       (since ? BPF_CORE_READ(queue, rq, clock) - since : 0);
	if (bpf_core_field_exists(queue->throttled_clock_pelt_time))
		return BPF_CORE_READ(queue, throttled_clock_pelt_time) +
		       (since ? pelt_clock(BPF_CORE_READ(queue, rq)) - since : 0);
	if (bpf_core_field_exists(queue->throttled_clock_task_time))
		return BPF_CORE_READ(queue, throttled_clock_task_time) +
		       (since ? BPF_CORE_READ(queue, rq, clock_task) - since : 0);
	return 0;
}

/* It begins, or goes on, to wait for a CPU in its run queue. */
static __always_inline void read_throttling(struct thread *thread)
{
	struct cfs_rq *queue = (struct cfs_rq *)thread->run_queue;

	thread->stopped_since = queue ? stopped_since(queue) : 0;
	thread->throttled = queue ? throttled_time(queue, thread->stopped_since) : 0;
}

/* For how much of `spent`, which it has waited for a CPU since that was read, a limit held it back. */
static __always_inline u64 throttled_part(struct thread *thread, u64 spent)
{
	u64 before = thread->throttled, since = thread->stopped_since, grown;

	read_throttling(thread);
	/* All the while: the clock of a CPU that has nothing else to do stands still meanwhile. */
	if (since && since == thread->stopped_since)
		return spent;
	grown = thread->throttled > before ? thread->throttled - before : 0;
	return grown < spent ? grown : spent;
}
