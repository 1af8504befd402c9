// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Accounts for every nanosecond of the threads of chosen databases.
 *
 * A thread is always doing exactly one thing, and what it did is charged when it begins to do
 * another: so no time is counted twice and none is lost. Nothing is copied to user space but one
 * total for each database.
 */
#include "kernel.h"
#include "threads.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct bpf_map;

enum moment { RESUMED, SETTLED, WAITING, MOMENTS };

#define TASK_RUNNING 0
#define TASK_INTERRUPTIBLE 1
#define TASK_UNINTERRUPTIBLE 2
#define TASK_DEAD 0x80
#define TASK_WAKEKILL 0x100
/* Kernels with PREEMPT_RT: for a lock of the kernel. */
#define TASK_RTLOCK_WAIT 0x1000

/* Waits for something to do, unseen by the load average. */
#define TASK_NOLOAD 0x400

/* PF_IO_WORKER of linux/sched.h: its registers are those of the thread that started it. */
#define IO_WORKER 0x10
/* PF_KTHREAD: it has no registers. */
#define KERNEL_THREAD 0x200000

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	/* Set before the program is loaded. */
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct thread);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	/* The last one is of threads that are of no database. */
	__uint(max_entries, MAX_DATABASES + 1);
	__type(key, u32);
	__type(value, struct total);
} totals SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_CLIENTS);
	__type(key, struct client);
	__type(value, u64);
} clients SEC(".maps");

/* Set before the program is loaded: numbers of system calls differ between architectures. */
const volatile struct meanings meanings;

/* Whether only the birth and death of threads are followed just now, as it is at first. */
bool paused = 1;

/*
 * Waits are followed by a clock that stands still in pauses: what a thread did is known for the same stretches
 * of time as that another one waited for it. Since when (ns) the last pause lasts, and how long all were.
 */
u64 paused_at = 1;
u64 skipped;

/*
 * When all threads were resumed, and when they were settled last: CLOCK_MONOTONIC, ns; and how many of them waited
 * for others then, and wait still.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MOMENTS);
	__type(key, u32);
	__type(value, u64);
} moments SEC(".maps");

/* What that clock shows: ns. */
static __always_inline u64 traced_ns(u64 now)
{
	return (paused ? paused_at : now) - skipped;
}

static __always_inline struct total *total_of(struct thread *thread)
{
	u32 database = thread->database;

	return bpf_map_lookup_elem(&totals, &database);
}

/* Where the time of a doing goes, unless another thread ends it. */
static __always_inline u8 cause_of(u8 doing)
{
	u64 index = doing;

	/* The verifier wants the bound on the very register that indexes. */
	asm volatile("%0 &= %1" : "+r"(index) : "i"(MAX_DOINGS - 1));
	return meanings.causes[index];
}

static __always_inline void charge_cause(struct thread *thread, u8 cause, u64 ns)
{
	u64 index = cause;

	/* The verifier wants the bound on the very register that indexes. */
	asm volatile("" : "+r"(index));
	if (index < CAUSES)
		thread->causes[index] += ns;
}

static __always_inline void charge(struct thread *thread, u8 doing, u64 ns)
{
	u64 index = doing;

	/* The verifier wants the bound on the very register that indexes. */
	asm volatile("" : "+r"(index));
	if (index >= DOINGS)
		return;
	thread->spent[index] += ns;
	if (!thread->charged)
		charge_cause(thread, cause_of(doing), ns);
	if (doing == ON_CPU)
		thread->stretch += ns;
}

/*
 * Charges a stretch between two polls, or messages, as far as it has come. The first ones of a new
 * server process or thread, or of one that serves a new client, are the way to the first request, the
 * last one is its end, and one in which a thread started another is the way to that: what a connection
 * costs beside what it is for. A process that starts others does but that, and cleans up after them.
 */
static __always_inline void charge_stretch(struct thread *thread, bool dies)
{
	struct total *total = total_of(thread);
	/* A thread greets first, so that what its client says of itself seems to be a request. */
	u8 needed = thread->threaded ? 2 : 1;
	/* Who never polled served nobody: it worked for another, or for the server. */
	bool known = thread->born && !thread->missed;
	bool connects = known && (dies ? thread->polls > 0 : thread->polls < needed);

	if (total && (thread->started || connects))
		__sync_fetch_and_add(&total->connecting, thread->stretch);
	else if (total && known && !dies && thread->polls < POLLS)
		__sync_fetch_and_add(&total->first, thread->stretch);
	thread->stretch = 0;
}

static __always_inline void end_stretch(struct thread *thread, bool dies)
{
	charge_stretch(thread, dies);
	if (thread->missed)
		thread->polls = POLLS;
	else if (thread->polls < POLLS)
		thread->polls++;
	thread->missed = 0;
	thread->started &= thread->forks;
}

/* Moves what a thread has spent to the total of its database. */
verified_once int hand_over(struct thread *thread)
{
	struct total *total = thread ? total_of(thread) : NULL;
	u8 polling;
	int doing;

	if (!total)
		return 0;
	polling = thread->polling;
	if (polling >= POLLINGS)
		return 0;
	for (doing = 0; doing < DOINGS; doing++) {
		__sync_fetch_and_add(&total->spent[polling][doing], thread->spent[doing]);
		thread->spent[doing] = 0;
	}
	__sync_fetch_and_add(&total->wake_ups, thread->wake_ups);
	__sync_fetch_and_add(&total->asleep, thread->asleep);
	thread->wake_ups = 0;
	thread->asleep = 0;
	return 0;
}

#include "descriptors.h"
#include "throttled.h"
#include "waits.h"

static __always_inline void begin(struct thread *thread, u8 doing, u64 now)
{
	thread->doing = doing;
	thread->since = now;
}

static __always_inline void begin_runnable(struct thread *thread, struct task_struct *task, u64 now)
{
	if (thread->limited) {
		thread->run_queue = (u64)BPF_CORE_READ(task, se.cfs_rq);
		read_throttling(thread);
	}
	begin(thread, RUNNABLE, now);
}

/* Charges what it has been doing until now. */
verified_once int settle(struct thread *thread, u64 now)
{
	u64 spent, throttled;
	u8 waits;

	if (!thread)
		return 0;
	/* Another CPU has charged it meanwhile, up to a moment that is later than this. */
	if (now <= thread->since)
		return 0;
	spent = now - thread->since;
	/* Without any event so far it keeps its CPU: whoever waits for one gets it soon. */
	if (thread->doing == UNSEEN) {
		charge(thread, thread->on_cpu, spent);
		thread->since = now;
		return 0;
	}

	thread->since = now;
	if (waits_for_peers(thread)) {
		charge(thread, POLL_PEER, spent);
		return 0;
	}
	if (is_long(thread))
		settle_long(thread, spent, now);
	if (thread->doing == OTHER)
		settle_unknown(thread, now);
	waits = thread->doing == RUNNABLE ? CONTENDED : thread->doing;
	if ((waits != CONTENDED && waits != WAKE_UP) || !thread->limited) {
		charge(thread, waits, spent);
		return 0;
	}
	throttled = throttled_part(thread, spent);
	charge(thread, THROTTLED, throttled);
	charge(thread, waits, spent - throttled);
	return 0;
}

/* The current thread's user registers, as it entered the kernel. */
static __always_inline struct pt_regs *registers(void)
{
	return (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
}

static __always_inline const volatile struct syscall *syscall_of(struct pt_regs *regs)
{
	u64 number = SYSCALL_NUMBER(regs);

	if (number >= SYSCALLS)
		return NULL;
	/* The verifier wants the bound on the very register that indexes. */
	asm volatile("%0 &= %1" : "+r"(number) : "i"(SYSCALLS - 1));
	return &meanings.syscalls[number];
}

static __always_inline u8 polls(const volatile struct syscall *call, struct pt_regs *regs)
{
	u8 number = call->timeout;
	u64 timeout = number == 3 ? ARGUMENT_3(regs) : number == 4 ? ARGUMENT_4(regs) : ARGUMENT_5(regs);

	if (call->timeout_by_pointer)
		return timeout ? TIMED : FOREVER;
	return (s32)timeout < 0 ? FOREVER : TIMED;
}

static __always_inline bool serves(struct thread *thread)
{
	return thread->polling == FOREVER || (thread->threaded && thread->polling == TIMED);
}

#include "chains.h"
#include "clients.h"
#include "messages.h"

/*
 * Whether it frees memory, or waits for it as pressure is counted: where that is switched off (psi=0)
 * only the former is known. Bits move with every kernel, and CO-RE finds them through its macro alone.
 */
static __always_inline bool is_short_of_memory(struct thread *thread, struct task_struct *task)
{
	return thread->on_cpu == RECLAIM_ON_CPU || (bpf_core_field_exists(task->in_memstall) &&
						    BPF_CORE_READ_BITFIELD(task, in_memstall));
}

/* Why a thread that is about to leave its CPU in this state, or has left it, does so. */
static __always_inline u8 reason(struct thread *thread, struct task_struct *task, unsigned int state)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	const volatile struct syscall *call = syscall_of(regs);

	thread->waits_in = 0;
	if (task->flags & KERNEL_THREAD) {
		thread->call = 0;
		if (state & (TASK_INTERRUPTIBLE | TASK_NOLOAD))
			return SLEEP;
		return BPF_CORE_READ_BITFIELD(task, in_iowait) ? DISK : FILESYSTEM;
	}
	thread->call = SYSCALL_NUMBER(regs) + 1;
	/* Workers of the kernel serve nobody but the threads that wait for them. */
	if ((task->flags & IO_WORKER) && thread->forks)
		thread->polling = HELPER;
	if (state & TASK_INTERRUPTIBLE) {
		if (task->flags & IO_WORKER)
			return SLEEP;
		if (!call)
			return OTHER;
		if (call->timeout) {
			u8 polling = thread->aside ? TIMED : polls(call, regs);
			/* Threads of a pool take turns at waiting for the clients of all. */
			bool for_all = thread->threaded && call->timeout == 4;

			if (polling > thread->polling && !for_all) {
				/* What it waited for before it served anybody was no lock. */
				if (thread->polling == NEVER)
					hand_over(thread);
				thread->polling = polling;
			}
			/* Of all that poll, epoll alone has its time-out there. */
			if (polling == FOREVER && call->timeout == 4)
				tell_for_whom(thread, task, ARGUMENT_1(regs));
			if (call->timeout == 3)
				remember_client(thread, task, regs);
		} else if (call->sleeps == FUTEX) {
			forget_closed(thread, task);
		}
		return call->sleeps;
	}
	/* Stopped, traced or frozen: nobody knows what for. */
	if (!(state & (TASK_UNINTERRUPTIBLE | TASK_RTLOCK_WAIT)))
		return OTHER;
	if (is_short_of_memory(thread, task))
		return RECLAIM_STALLED;
	/* Who is held back can be killed meanwhile, and who waits for the disk cannot. */
	if (thread->dirty && (state & TASK_WAKEKILL))
		return DIRTY_THROTTLED;
	if (BPF_CORE_READ_BITFIELD(task, in_iowait))
		return DISK;
	return call ? call->waits : FAULT;
}

SEC("raw_tp/sched_switch")
int BPF_PROG(on_switch, bool preempted, struct task_struct *prev, struct task_struct *next)
{
	/* The same as prev, but the verifier lets its fields be read without a helper. */
	struct task_struct *current = bpf_get_current_task_btf();
	u32 leaves = current->pid, enters = BPF_CORE_READ(next, pid);
	struct thread *thread;
	u64 now = 0;

	thread = leaves ? bpf_map_lookup_elem(&threads, &leaves) : NULL;
	if (thread) {
		unsigned int state = preempted ? TASK_RUNNING : current->__state;

		if (paused) {
			if (state & TASK_DEAD)
				let_go(thread, leaves);
			return 0;
		}
		now = bpf_ktime_get_ns();
		/* Whatever was known of it: who leaves a CPU was on it. */
		thread->doing = thread->on_cpu;
		thread->ran = 1;
		settle(thread, now);
		keep_point(thread, leaves, now);
		if (state & TASK_DEAD) {
			end_stretch(thread, 1);
			hand_over(thread);
			let_go(thread, leaves);
		} else if (state == TASK_RUNNING) {
			thread->woken = 0;
			begin_runnable(thread, prev, now);
		} else {
			begin(thread, reason(thread, current, state), now);
			count_wait(thread, current->nvcsw + current->nivcsw, now);
			begin_chain(thread);
			if (thread->doing == POLL)
				end_request(thread);
		}
	}
	thread = enters && !paused ? bpf_map_lookup_elem(&threads, &enters) : NULL;
	if (thread) {
		now = now ?: bpf_ktime_get_ns();
		thread->task = (u64)next;
		if (thread->doing == UNSEEN)
			begin_runnable(thread, next, thread->since);
		if (thread->doing == RUNNABLE && thread->woken) {
			thread->wake_ups++;
			/* No other thread had this CPU: it slept, and had to wake up first. */
			if (!leaves) {
				thread->asleep++;
				thread->doing = WAKE_UP;
			}
		}
		settle(thread, now);
		thread->dirty = 0;
		begin(thread, thread->on_cpu, now);
	}
	return 0;
}

#include "wake_ups.h"

SEC("raw_tp/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct *task)
{
	return woken(task);
}

SEC("raw_tp/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	u32 of = BPF_CORE_READ(parent, pid), pid = BPF_CORE_READ(child, pid);
	struct thread *thread = bpf_map_lookup_elem(&threads, &of), *fresh;
	struct total *total;
	u32 database;
	u64 now;

	if (!thread || is_stranger(thread))
		return 0;
	database = thread->database;
	thread->started = 1;
	total = bpf_map_lookup_elem(&totals, &database);
	if (total)
		__sync_fetch_and_add(&total->started, 1);
	fresh = blank_thread(STARTED);
	if (!fresh)
		return 0;
	fresh->database = database;
	fresh->born = 1;
	fresh->limited = thread->limited;
	fresh->threaded = thread->threaded;
	fresh->forks = thread->forks;
	now = bpf_ktime_get_ns();
	fresh->known_since = traced_ns(now);
	fresh->on_cpu = ON_CPU;
	fresh->woken = 1;
	begin_runnable(fresh, child, now);
	if (bpf_map_update_elem(&threads, &pid, fresh, BPF_ANY) && total)
		__sync_fetch_and_add(&total->lost, 1);
	return 0;
}

/* On its way out: while paused, its last switch is not seen. */
SEC("raw_tp/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	u32 pid = bpf_get_current_pid_tgid();
	struct thread *thread = bpf_map_lookup_elem(&threads, &pid);

	if (thread && paused)
		let_go(thread, pid);
	else if (thread)
		thread->dying = 1;
	return 0;
}

SEC("raw_tp/balance_dirty_pages")
int BPF_PROG(on_dirty)
{
	u32 pid = bpf_get_current_pid_tgid();
	struct thread *thread = paused ? NULL : bpf_map_lookup_elem(&threads, &pid);

	/* The kernel looks at who writes whether or not it then holds it back. */
	if (thread)
		thread->dirty = 1;
	return 0;
}

#include "reclaim.h"
#include "retransmits.h"
#include "samples.h"
#include "slices.h"
