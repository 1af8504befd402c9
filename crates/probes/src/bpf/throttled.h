/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A part of threads.bpf.c: how long limits held threads back, in the fields of several kernels.
 */

/* For how long (ns, ever growing) the threads of this run queue have been held back by a limit. */
static __always_inline u64 throttled_time(struct cfs_rq *queue)
{
	u64 time, since;

	if (!queue)
		return 0;
	/* Since 6.6. */
	if (bpf_core_field_exists(queue->throttled_clock_self_time)) {
		time = BPF_CORE_READ(queue, throttled_clock_self_time);
		since = BPF_CORE_READ(queue, throttled_clock_self);
		return since ? time + BPF_CORE_READ(queue, rq, clock) - since : time;
	}
	/* Since 5.19. */
	if (bpf_core_field_exists(queue->throttled_clock_pelt_time)) {
		time = BPF_CORE_READ(queue, throttled_clock_pelt_time);
		since = BPF_CORE_READ(queue, throttled_clock_pelt);
		return BPF_CORE_READ(queue, throttle_count) ?
			       time + BPF_CORE_READ(queue, rq, clock_pelt) - since : time;
	}
	if (bpf_core_field_exists(queue->throttled_clock_task_time)) {
		time = BPF_CORE_READ(queue, throttled_clock_task_time);
		since = BPF_CORE_READ(queue, throttled_clock_task);
		return BPF_CORE_READ(queue, throttle_count) ?
			       time + BPF_CORE_READ(queue, rq, clock_task) - since : time;
	}
	return 0;
}
