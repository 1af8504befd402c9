/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A part of threads.bpf.c: where requests begin of threads that serve a client each. One that is there
 * already is never polled for, but it is received, and it is answered before the next one.
 */
#ifndef UNTAX_MESSAGES_H
#define UNTAX_MESSAGES_H

/* Whether it is seen what it sends and receives. */
static __always_inline bool by_messages(struct thread *thread)
{
	return thread->threaded == RECEIVES && thread->born;
}

/* It polls for the next request, or receives it without. */
static __always_inline void end_request(struct thread *thread)
{
	if (by_messages(thread) && !thread->answered)
		return;
	thread->answered = 0;
	end_stretch(thread, 0);
}

/* The current thread, if it is one that messages tell of. */
static __always_inline struct thread *messaging(void)
{
	u32 pid = bpf_get_current_pid_tgid();
	struct thread *thread = paused ? NULL : bpf_map_lookup_elem(&threads, &pid);

	return thread && by_messages(thread) ? thread : NULL;
}

SEC("raw_tp/sock_send_length")
int BPF_PROG(on_send, void *socket, int length, int flags)
{
	struct thread *thread = length > 0 ? messaging() : NULL;

	if (thread)
		thread->answered = 1;
	return 0;
}

/*
 * What is received first after an answer begins a message, which may come in pieces: of who serves a
 * client a request, most likely. One that was there already is never polled for. Since kernel 6.3.
 */
SEC("raw_tp/sock_recv_length")
int BPF_PROG(on_receive, void *socket, int length, int flags)
{
	struct thread *thread = length > 0 && !(flags & MSG_PEEK) ? messaging() : NULL;

	if (!thread || !thread->answered)
		return 0;
	settle(thread, bpf_ktime_get_ns());
	remember_sender(thread);
	end_request(thread);
	return 0;
}

#endif
