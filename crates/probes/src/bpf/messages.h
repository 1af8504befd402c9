/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A part of threads.bpf.c: where requests begin of processes and threads that serve a client each. One
 * that is there already is never polled for, but it is received, and it is answered before the next one.
 * What a new process polls for first, before it has answered anything, is none: what its client says of
 * itself.
 */
#ifndef UNTAX_MESSAGES_H
#define UNTAX_MESSAGES_H

/* Of linux/socket.h: what is received stays to be received. */
#define MSG_PEEK 2

/* Whether it is seen what threads send and receive. */
bool receives;

/* Run by the reader, when it has attached what follows, and before it detaches it. */
SEC("syscall")
int begin_messages(void *context)
{
	receives = 1;
	return 0;
}

SEC("syscall")
int end_messages(void *context)
{
	receives = 0;
	return 0;
}

static __always_inline bool by_messages(struct thread *thread)
{
	return receives && thread->born;
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
	if (thread->threaded)
		remember_sender(thread);
	end_request(thread);
	return 0;
}

#endif
