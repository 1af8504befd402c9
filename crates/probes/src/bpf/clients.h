/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A part of threads.bpf.c: who the clients are, and which threads serve one no more.
 *
 * A server keeps threads whose client has gone, asleep in a futex until another one connects
 * (thread_cache_size of MySQL and MariaDB). That is no lock: who waits for a lock does so with its
 * client's socket open. So the socket that a thread polls alone is remembered, and a thread that
 * goes to sleep in a futex after it was closed has served.
 */
#ifndef UNTAX_CLIENTS_H
#define UNTAX_CLIENTS_H

/* struct pollfd of poll(2). */
struct polled {
	s32 descriptor;
	u16 wanted;
	u16 happened;
};

/* What a descriptor of a process is open as; 0 when it is closed. */
static __always_inline u64 open_as(struct task_struct *task, u32 descriptor)
{
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **slots;
	u64 file = 0;

	if (!table || descriptor >= BPF_CORE_READ(table, max_fds))
		return 0;
	slots = BPF_CORE_READ(table, fd);
	bpf_probe_read_kernel(&file, sizeof(file), &slots[descriptor]);
	return file;
}

/* No descriptor has this number. */
#define UNKNOWN ((u32)-1)

/*
 * It begins to poll, or does so when it is looked at: when that is one socket, its client's. Only
 * the memory of the current thread is at hand: another one serves whom it served before, and if that
 * is not known, nobody until it polls the next time.
 */
static __always_inline void remember_client(struct thread *thread, struct task_struct *task,
					    struct pt_regs *regs)
{
	struct polled polled = { .descriptor = UNKNOWN };

	if (ARGUMENT_2(regs) != 1)
		return;
	if (task->pid == (s32)bpf_get_current_pid_tgid())
		bpf_probe_read_user(&polled, sizeof(polled), (void *)ARGUMENT_1(regs));
	else if (thread->serves && open_as(task, thread->serves_in) == thread->serves)
		return;
	thread->serves_in = polled.descriptor;
	thread->serves = open_as(task, polled.descriptor) ?: UNKNOWN;
}

/* It begins to sleep in a futex: as who serves nobody, when its client has gone. */
static __always_inline void forget_closed(struct thread *thread, struct task_struct *task)
{
	if (!thread->serves || open_as(task, thread->serves_in) == thread->serves)
		return;
	end_stretch(thread, 1);
	hand_over(thread);
	thread->serves = 0;
	thread->polling = NEVER;
	/* The next client is its first one. */
	thread->born = 1;
	thread->polls = 0;
}

static __always_inline void count_client(u32 database, u32 pid)
{
	struct client client = { .database = database, .pid = pid };
	u64 *count = bpf_map_lookup_elem(&clients, &client), one = 1;

	if (count)
		__sync_fetch_and_add(count, 1);
	else
		bpf_map_update_elem(&clients, &client, &one, BPF_ANY);
}

/*
 * The current process, and who started it: a script may start a client for each request, with
 * programs in between that change its user or limit its time.
 */
static __always_inline void count_clients(u32 database)
{
	struct task_struct *task = bpf_get_current_task_btf();
	int generation;

	for (generation = 0; generation < 4; generation++) {
		u32 pid = BPF_CORE_READ(task, tgid);

		if (pid <= 1)
			return;
		count_client(database, pid);
		task = BPF_CORE_READ(task, real_parent);
	}
}

#endif
