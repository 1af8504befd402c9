/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A part of threads.bpf.c: threads that are woken begin to wait for a CPU.
 */
#ifndef UNTAX_WAKE_UPS_H
#define UNTAX_WAKE_UPS_H

static __always_inline int woken(struct task_struct *task)
{
	u32 pid = BPF_CORE_READ(task, pid);
	struct thread *thread = bpf_map_lookup_elem(&threads, &pid);

	/* One that is woken before it left its CPU goes on as it was. */
	if (thread && !paused && thread->doing != thread->on_cpu && thread->doing != RUNNABLE) {
		u64 from = thread->waking ?: bpf_ktime_get_ns();

		if (from < thread->since)
			from = thread->since;
		settle(thread, from);
		if (thread->unknown_model)
			begin_work(thread, thread->doing, from);
		end_wait(thread, from);
		thread->woken = 1;
		thread->waking = 0;
		begin_runnable(thread, task, from);
	}
	return 0;
}

#endif
