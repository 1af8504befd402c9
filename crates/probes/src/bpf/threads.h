/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the program and its reader (threads.rs) agree on. */
#ifndef UNTAX_THREADS_H
#define UNTAX_THREADS_H

/* What a thread is doing, in the order of untax_core::activity::Doing. */
enum doing {
	ON_CPU,
	RECLAIM_ON_CPU,
	CONTENDED,
	THROTTLED,
	WAKE_UP,
	DISK,
	FILESYSTEM,
	DIRTY_THROTTLED,
	RECLAIM_STALLED,
	FUTEX,
	FAULT,
	SEND,
	RECEIVE,
	POLL,
	POLL_PEER,
	DORMANT,
	ASYNC_IO,
	SLEEP,
	OTHER,
	DOINGS,
	/* Not told apart yet: known with the next event. */
	UNSEEN = 254,
	/* Waiting for a CPU; charged to CONTENDED, THROTTLED and WAKE_UP when the wait is over. */
	RUNNABLE = 255,
};

/* How a thread has polled so far, in the order of untax_core::activity::Polling. */
enum polling { NEVER, TIMED, FOREVER, HELPER, POLLINGS };

/*
 * Where time goes, whoever is waited for, in the order of untax_core::activity::Cause: a wait for another
 * thread goes to what that one did.
 */
enum cause {
	CAUSE_CPU,
	CAUSE_RUN_QUEUE,
	CAUSE_THROTTLED,
	CAUSE_WAKE_UP,
	CAUSE_DISK,
	CAUSE_KERNEL,
	CAUSE_DIRTY_PAGES,
	CAUSE_MEMORY,
	CAUSE_NETWORK,
	CAUSE_IDLE,
	CAUSE_UNRESOLVED,
	CAUSES
};

/* What a system call is for, in the order of untax_core::activity::Call. */
enum call { CALL_CONNECTION, CALL_PAGES, CALL_RECEIVE, CALL_WAIT, CALLS };

/* Waits of which the longest ones are kept, from DISK to RECLAIM_STALLED. */
#define LONG_WAITS 4

/* untax_core::activity::HANG_S: ns. */
#define HANG_NS 20000000

/*
 * The stretches of a new server process or thread, until it polls so often, are the way to its
 * first request, and that: parsing, binding and executing it may be asked one by one. One more than
 * untax_core::activity::FIRST_REQUESTS.
 */
#define POLLS 5

/* A new process or thread may be on the way to its first request for so long: ns. */
#define BEGINNING_NS 50000000

#define MAX_DATABASES 64

/* Threads that are of no database and hold what one of them waits for: so many are watched. */
#define MAX_STRANGERS 256

#define SYSCALLS 512

/* What waiting in a system call means. */
struct syscall {
	/* When it sleeps (TASK_INTERRUPTIBLE). */
	u8 sleeps;
	/* When it waits without being interruptible, but not for a disk. */
	u8 waits;
	/* Number of the argument that holds the time-out of a poll; 0 for other calls. */
	u8 timeout;
	/* Whether that argument points to the time-out, rather than being it. */
	u8 timeout_by_pointer;
	/* Whether a thread uses it to wake another of its own database. */
	u8 wakes_peers;
	/* Whether a client uses it to send. */
	u8 sends;
	/* Whether it writes to a file, or waits for what was written. */
	u8 writes;
	/* What it is for; CALLS: anything else. */
	u8 call;
};

struct thread {
	/* When it began to do this: CLOCK_MONOTONIC, ns. */
	u64 since;
	/* Its run queue, and for how long (ns) that had been throttled when the wait began. */
	u64 run_queue;
	u64 throttled;
	u32 database;
	u8 doing;
	/* What its time on CPU is charged to: ON_CPU or RECLAIM_ON_CPU. */
	u8 on_cpu;
	u8 polling;
	/* The next wait is the kernel's, for having dirtied too many pages. */
	u8 dirty;
	/* Its control group, or one above, has a CPU limit. */
	u8 limited;
	/* It ran since its time was taken last. */
	u8 ran;
	/* It was started while its database was watched. */
	u8 born;
	/* How often it has begun to poll, up to POLLS. */
	u8 polls;
	/* It is about to end. */
	u8 dying;
	/* It has started another since it polled last, or, if its database forks, ever. */
	u8 started;
	/* Whether its last page fault was on the memory that holds the data. */
	u8 faults_on_data;
	/* Its database serves each client in a thread: such a thread may poll with a time-out. */
	u8 threaded;
	/* Or in a process: one that polls with a time-out alone serves none. */
	u8 forks;
	/* It has sent something since it received the last message. */
	u8 answered;
	/* It may have polled while nobody looked: how often it did is not known. */
	u8 missed;
	/* Whoever wakes it, it waits for work of its server's and no lock: nobody is its client. */
	u8 aside;
	/* It has waited for a client, or its title says that it serves one. */
	u8 asked;
	/* The process that woke it last with a request. */
	u32 client;
	/* The system call that it waits in, plus one; 0 where that is not known. */
	u32 call;
	/* What it spent on a CPU (ns) since it polled last. */
	u64 stretch;
	/* When this wait began: ns. */
	u64 waits_since;
	/*
	 * Descriptors of epoll, plus one: the one that it waits in without a time-out, and the last ones
	 * seen to be for a client, and for none.
	 */
	u32 waits_in;
	u32 clients_in;
	u32 peers_in;
	/* The descriptor that it polled alone last, and the file that this was: its client's socket. */
	u32 serves_in;
	u64 serves;
	/* How often it had left a CPU when this wait began: while it is as often, the wait goes on. */
	u64 switches;
	/* Whether (1) it waits for a CPU because it was woken, not because it lost its CPU. */
	u64 woken;
	/* When another thread or an interrupt began to wake it: ns; 0 once it is in a run queue. */
	u64 waking;
	/* How often it was woken and got a CPU, and how often that CPU had slept; not in the total yet. */
	u64 wake_ups;
	u64 asleep;
	/* Since when a limit had held its run queue back when `throttled` was read: 0 when none did. */
	u64 stopped_since;
	/* Its task_struct, as an event told it last: it may have ended since, and another one be there. */
	u64 task;
	/* Which history is its own, plus one; 0: none is. */
	u32 history;
	/* Whether (1) the wait that ends just now is charged to what its waker did. */
	u32 charged;
	/* By the clock that stands still in pauses, ns: when its wait began, when the next point is due. */
	u64 waits_from;
	u64 next_point;
	/*
	 * When a wait for others began that none of them has ended so far, and how long it waited since: a timer
	 * may have interrupted that, to look for deadlocks. 0: the next wait is a new one.
	 */
	u64 held_over;
	u64 waited;
	/* Where its time went since then, whoever it waited for: ns. 0: not known yet. */
	u64 known_since;
	u64 causes[CAUSES];
	/* Time (ns) that is not part of its database's total yet. */
	u64 spent[DOINGS];
};

/* A thread of no database that held what others waited for in the kernel, and what it did meanwhile: ns. */
struct holder {
	char comm[16];
	u64 causes[CAUSES];
};

/* What the threads of one database did: time in ns. */
struct total {
	u64 spent[POLLINGS][DOINGS];
	u64 started;
	/*
	 * Of processes and threads that were born: until they polled first (threads: twice), and after
	 * they polled last; and what those took that started them or handed them a client.
	 */
	u64 connecting;
	/* What their first requests took. */
	u64 first;
	/* The longest waits. */
	u64 longest[LONG_WAITS];
	/* Time in waits for a filesystem that were as long as a hang. */
	u64 hung;
	/*
	 * Samples of its threads on a CPU; of these, but for what frees memory, those in a page
	 * fault, and of those the ones on the data's memory.
	 */
	u64 sampled;
	u64 faulting;
	u64 faulting_on_data;
	/* Those that fill the page cache from a disk, but for freeing memory for it. */
	u64 reading;
	/* Those in which a thread was interrupted as requests to block devices were done. */
	u64 completing;
	/* Those in which a thread woke another, as interrupts came on again. */
	u64 waking;
	/* Those in system calls of each kind, page faults included. */
	u64 calling[CALLS];
	/* How often a thread that was woken got a CPU, and how often that CPU had slept. */
	u64 wake_ups;
	u64 asleep;
	/* Threads that there was no room for. */
	u64 lost;
	/* The thread that gave another one a client last. */
	u64 listener;
	/* The longest wait of unknown meaning, and the system call that it was in, plus one. */
	u64 unknown_longest;
	u64 unknown_call;
	/* What other threads did during waits that they ended, a part of what was spent in these. */
	u64 behind[POLLINGS][DOINGS][CAUSES];
};

/* A power of two, no less than the doings are. */
#define MAX_DOINGS 32

/* What the program is told: what system calls mean, where the time of each doing goes. */
struct meanings {
	struct syscall syscalls[SYSCALLS];
	u8 causes[MAX_DOINGS];
	/* How many threads may have a history. */
	u64 histories;
};

/* Addresses, the last one not among them. */
struct range {
	u64 from;
	u64 to;
};

/*
 * After the memory of each database: where the kernel begins to serve a page fault, where it looks
 * for pages of a file that it has, where it gets those that it has not, where it ends requests to
 * block devices as they are done, where it lets interrupts in again, and where it wakes threads.
 */
#define KERNEL_FAULTS MAX_DATABASES
#define KERNEL_LOOKS (KERNEL_FAULTS + 1)
#define KERNEL_READS (KERNEL_LOOKS + 1)
#define KERNEL_ENDS (KERNEL_READS + 3)
#define KERNEL_UNLOCKS (KERNEL_ENDS + 2)
#define KERNEL_WAKES (KERNEL_UNLOCKS + 1)
#define RANGES (MAX_DATABASES + 15)

/* A function of the kernel: its name, where it is and what that address is called, with its size. */
struct function {
	char name[40];
	char told[64];
	u64 address;
};

#define FUNCTIONS (RANGES - MAX_DATABASES)

/* The deepest stack that is searched for them. */
#define MAX_DEPTH 48

/* So many frames above the innermost one may lie between it and the function that wakes. */
#define WAKING_DEPTH 3

/* A process that sends to a database, or has started one that does. */
struct client {
	u32 database;
	u32 pid;
};

/* Of the sends of one process to a thread the first in a slice is counted, and one of so many. */
#define CLIENT_SAMPLING 64
#define MAX_CLIENTS 256

/* A socket's own TCP port in a network namespace. */
struct port {
	u32 network;
	u32 number;
};

#define MAX_PORTS 4096

#endif
