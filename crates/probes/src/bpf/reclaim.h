/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A part of threads.bpf.c: which time on a CPU, or waiting for one, is spent to free
 * memory.
 */
#ifndef UNTAX_RECLAIM_H
#define UNTAX_RECLAIM_H

static __always_inline int charge_cpu_to(u8 doing)
{
	u32 pid = bpf_get_current_pid_tgid();
	/* At a limit memory is freed some hundred thousand times a second, in pauses too. */
	struct thread *thread = paused ? NULL : bpf_map_lookup_elem(&threads, &pid);

	if (thread) {
		u64 now = bpf_ktime_get_ns();

		settle(thread, now);
		thread->on_cpu = doing;
		begin(thread, doing, now);
	}
	return 0;
}

/* Both also where a control group is at its limit: the twins of threads.rs. */
SEC("raw_tp/mm_vmscan_direct_reclaim_begin")
int BPF_PROG(on_reclaim_begin)
{
	return charge_cpu_to(RECLAIM_ON_CPU);
}

SEC("raw_tp/mm_vmscan_direct_reclaim_end")
int BPF_PROG(on_reclaim_end)
{
	return charge_cpu_to(ON_CPU);
}

#endif
