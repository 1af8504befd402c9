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

/* No descriptor has this number. */
#define UNKNOWN ((u32)-1)

/* Who it served has gone: it is as new as one that was born just now. */
static __always_inline void forget_client(struct thread *thread)
{
	end_stretch(thread, 1);
	hand_over(thread);
	thread->serves = 0;
	thread->polling = NEVER;
	thread->born = 1;
	thread->polls = 0;
}

static __always_inline bool client_is_gone(struct thread *thread, struct task_struct *task)
{
	return thread->serves && socket_at(task, thread->serves_in) != thread->serves;
}

/* It begins to sleep in a futex: as who serves nobody, when its client has gone. */
static __always_inline void forget_closed(struct thread *thread, struct task_struct *task)
{
	if (client_is_gone(thread, task))
		forget_client(thread);
}

/*
 * It serves a client: another one than before, perhaps, that was there already and left it no time to
 * sleep. Then nobody was woken for it, and who lets clients in did so all the same.
 */
static __always_inline void take_next_client(struct thread *thread, struct task_struct *task)
{
	struct total *total;
	struct thread *by;
	u32 listener;

	if (!thread->threaded || thread->serves == UNKNOWN || !client_is_gone(thread, task))
		return;
	forget_client(thread);
	total = total_of(thread);
	listener = total ? total->listener : 0;
	by = listener ? bpf_map_lookup_elem(&threads, &listener) : NULL;
	if (by)
		by->started = 1;
}

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
	if (task->pid == (s32)bpf_get_current_pid_tgid()) {
		take_next_client(thread, task);
		bpf_probe_read_user(&polled, sizeof(polled), (void *)ARGUMENT_1(regs));
	} else if (thread->serves && !client_is_gone(thread, task)) {
		return;
	}
	thread->serves_in = polled.descriptor;
	thread->serves = socket_at(task, polled.descriptor) ?: UNKNOWN;
}

/* The current thread receives from a client, whom it need not poll for. */
static __always_inline void remember_sender(struct thread *thread)
{
	struct task_struct *task = bpf_get_current_task_btf();

	take_next_client(thread, task);
	if (thread->serves && thread->serves != UNKNOWN)
		return;
	/* What it waited for before it served anybody was no lock. */
	if (thread->polling == NEVER) {
		hand_over(thread);
		thread->polling = TIMED;
	}
	/* All calls that receive have their descriptor first. */
	thread->serves_in = ARGUMENT_1(registers());
	thread->serves = socket_at(task, thread->serves_in) ?: UNKNOWN;
}

/*
 * The current thread is about to wake one that waits for a client to serve: who waits for clients
 * to come, and they may take their time, gives it one, as it would start another thread for it.
 */
static __always_inline void hand_client_to(struct thread *idle)
{
	u32 pid = bpf_get_current_pid_tgid();
	struct thread *by = bpf_map_lookup_elem(&threads, &pid);
	struct total *total = total_of(idle);

	if (!by || by->database != idle->database || by->polling != FOREVER)
		return;
	by->started = 1;
	if (total)
		total->listener = pid;
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
 * programs in between that change its user or limit its time. Who writes to a file just now is none:
 * an interrupt came upon it.
 */
static __always_inline void count_clients(u32 database)
{
	struct task_struct *task = bpf_get_current_task_btf();
	int generation;

	if (!is_socket(open_as(task, ARGUMENT_1(registers()))))
		return;
	for (generation = 0; generation < 4; generation++) {
		u32 pid = BPF_CORE_READ(task, tgid);

		if (pid <= 1)
			return;
		count_client(database, pid);
		task = BPF_CORE_READ(task, real_parent);
	}
}

#endif
