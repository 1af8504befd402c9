/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A part of threads.bpf.c: a thread is woken, by whom, and begins to wait for a CPU.
 */
#ifndef UNTAX_WAKE_UPS_H
#define UNTAX_WAKE_UPS_H

/*
 * The current thread is about to wake one that polls, as a client that sends or as a thread of the
 * same database, or one that waits for a client. An interrupt may have come upon any thread, with what
 * a client far away has sent: so only those in a system call that means it count.
 */
static __always_inline void learn_from_waker(struct thread *thread, struct thread *by)
{
	const volatile struct syscall *call;
	u32 client;
	bool idle;

	idle = thread->doing == FUTEX && thread->threaded && thread->born && !thread->polls;
	if (!idle && thread->doing != POLL)
		return;
	call = syscall_of(registers());
	if (idle) {
		if (call && call->sleeps == FUTEX)
			hand_client_to(thread);
		return;
	}
	if (by && by->database == thread->database) {
		if (call && call->wakes_peers)
			woken_by_peer(thread);
		return;
	}
	if (!call || !call->sends)
		return;
	client = bpf_get_current_pid_tgid() >> 32;
	if (client != thread->client || bpf_get_prandom_u32() % CLIENT_SAMPLING == 0)
		count_clients(thread->database);
	thread->client = client;
}

SEC("raw_tp/sched_waking")
int BPF_PROG(on_waking, struct task_struct *task)
{
	u32 woken = BPF_CORE_READ(task, pid), waker = bpf_get_current_pid_tgid();
	struct thread *thread = bpf_map_lookup_elem(&threads, &woken), *by;
	u64 now = paused_at;

	/* One that is woken before it left its CPU goes on as it was. */
	if (!thread || thread->doing == thread->on_cpu || thread->doing == RUNNABLE)
		return 0;
	by = bpf_map_lookup_elem(&threads, &waker);
	if (paused) {
		if (thread->charged || thread->doing == UNSEEN)
			return 0;
	} else {
		if (!is_stranger(thread))
			learn_from_waker(thread, by);
		/* A CPU that sleeps puts it into its run queue only once it is awake. */
		now = thread->waking = bpf_ktime_get_ns();
	}
	follow_waker(thread, by, waker, now);
	if (paused)
		end_open_wait(thread);
	return 0;
}

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
		keep_point(thread, pid, from);
		thread->charged = 0;
		thread->woken = 1;
		thread->waking = 0;
		begin_runnable(thread, task, from);
	}
	return 0;
}

#endif
