/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Soft affinity inside the kernel, for the threads of some instances alone (SCX_OPS_SWITCH_PARTIAL).
 *
 * A thread that wakes gets an idle CPU of those that its instance prefers, otherwise an idle one of those that
 * the instance may use now, otherwise it waits in the queue of its instance. A CPU takes from the queues of the
 * instances that prefer it first, then from those that may use it. The policy in user space says which CPUs
 * may be used: so an instance has others than its own only above the threshold of that policy.
 */
#include "kernel.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

enum {
	MOST_INSTANCES = 64,
	MOST_CPUS = 1024,
	WORDS = MOST_CPUS / 64,
	/* How far up a process tree an instance is looked for. */
	MOST_ANCESTORS = 32,
};

/* About what the kernel's own scheduler gives on 8 CPUs or more (base_slice_ns, 2.8 to 3 ms). */
#define SLICE_NS 3000000

/* A thread that waits longer than this ends the program; the kernel allows 30 s at most. */
#define TIMEOUT_MS 10000

/* clang describes a structure as a whole only where there is one, and no function of the kernel takes another. */
struct cpumask described;

/* CPUs as bits; all is written by user space, while the program runs. */
struct instance {
	u64 is_there;
	u64 preferred[WORDS];
	u64 usable[WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MOST_INSTANCES);
	__type(key, u32);
	__type(value, struct instance);
} instances SEC(".maps");

/* The main process of each instance, with the place of the instance. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MOST_INSTANCES);
	__type(key, u32);
	__type(value, u32);
} roots SEC(".maps");

/* The place of a thread's instance. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u32);
} members SEC(".maps");

/* Why the kernel ended it; the kind is 0 until then. */
struct ended {
	u32 kind;
	char reason[60];
	char message[256];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct ended);
} ended SEC(".maps");

static bool has(const u64 *words, u32 cpu)
{
	u64 word = cpu / 64;

	/* clang would leave the check out where it knows better than the verifier. */
	barrier_var(word);
	if (word >= WORDS)
		return false;
	return words[word] >> (cpu % 64) & 1;
}

static struct instance *instance_at(u32 place)
{
	struct instance *instance = bpf_map_lookup_elem(&instances, &place);

	return instance && instance->is_there ? instance : NULL;
}

/* The place of a thread's instance; none where it is of none. */
static u32 *place_of(struct task_struct *p)
{
	return bpf_task_storage_get(&members, p, NULL, 0);
}

/*
 * The first of these CPUs that a thread may use, which is idle if that is asked for; -1 where there is none. One
 * that was idle counts as busy from now on. Where threads of a core are numbered far apart, as is usual, the
 * first threads of all cores come before the second ones.
 */
static s32 first_of(const u64 *words, struct task_struct *p, bool is_idle)
{
	s32 cpu;

	/* The verifier follows a plain loop through every CPU and gives up; it knows the kernel's own iterator. */
	bpf_for(cpu, 0, MOST_CPUS) {
		if (!has(words, cpu) || !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		if (!is_idle || scx_bpf_test_and_clear_cpu_idle(cpu))
			return cpu;
	}
	return -1;
}

static s32 idle_of(const u64 *words, struct task_struct *p, s32 prev_cpu)
{
	if (prev_cpu >= 0 && prev_cpu < MOST_CPUS && has(words, prev_cpu) &&
	    bpf_cpumask_test_cpu(prev_cpu, p->cpus_ptr) && scx_bpf_test_and_clear_cpu_idle(prev_cpu))
		return prev_cpu;
	return first_of(words, p, true);
}

SEC("struct_ops/soft_select_cpu")
s32 BPF_PROG(soft_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct instance *instance;
	u32 *place = place_of(p);
	s32 cpu;

	instance = place ? instance_at(*place) : NULL;
	if (!instance)
		return prev_cpu;
	cpu = idle_of(instance->preferred, p, prev_cpu);
	if (cpu < 0)
		cpu = idle_of(instance->usable, p, prev_cpu);
	if (cpu < 0)
		return prev_cpu;
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SLICE_NS, 0);
	return cpu;
}

SEC("struct_ops/soft_enqueue")
void BPF_PROG(soft_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct instance *instance;
	u32 *place = place_of(p);
	s32 cpu;

	if (p->nr_cpus_allowed == 1) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SLICE_NS, enq_flags);
		return;
	}
	instance = place ? instance_at(*place) : NULL;
	/* A thread that may use none of these CPUs would wait in that queue for ever. */
	if (!place || !instance || first_of(instance->preferred, p, false) < 0) {
		scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SLICE_NS, enq_flags);
		return;
	}
	scx_bpf_dsq_insert(p, *place, SLICE_NS, enq_flags);
	cpu = first_of(instance->preferred, p, true);
	if (cpu < 0)
		cpu = first_of(instance->usable, p, true);
	if (cpu >= 0)
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

SEC("struct_ops/soft_dispatch")
void BPF_PROG(soft_dispatch, s32 cpu, struct task_struct *prev)
{
	if (cpu < 0 || cpu >= MOST_CPUS)
		return;
	for (u32 place = 0; place < MOST_INSTANCES; place++) {
		struct instance *instance = instance_at(place);

		if (!instance)
			break;
		if (has(instance->preferred, cpu) && scx_bpf_dsq_move_to_local(place))
			return;
	}
	for (u32 place = 0; place < MOST_INSTANCES; place++) {
		struct instance *instance = instance_at(place);

		if (!instance)
			break;
		if (has(instance->usable, cpu) && scx_bpf_dsq_move_to_local(place))
			return;
	}
}

/* A thread of another class took the CPU: what waits there goes where it can run. */
SEC("struct_ops/soft_cpu_release")
void BPF_PROG(soft_cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	scx_bpf_reenqueue_local();
}

/* With these two, the kernel keeps the program when CPUs come and go; user space gives new CPUs. */
SEC("struct_ops/soft_cpu_online")
void BPF_PROG(soft_cpu_online, s32 cpu)
{
}

SEC("struct_ops/soft_cpu_offline")
void BPF_PROG(soft_cpu_offline, s32 cpu)
{
}

/* The place of the nearest ancestor that is the main process of an instance; -1 where there is none. */
static s32 place_in_tree(struct task_struct *p)
{
	struct task_struct *ancestor = p;

	for (u32 step = 0; step < MOST_ANCESTORS; step++) {
		u32 tgid = BPF_CORE_READ(ancestor, tgid);
		u32 *place = bpf_map_lookup_elem(&roots, &tgid);

		if (place)
			return *place;
		if (tgid <= 1)
			return -1;
		ancestor = BPF_CORE_READ(ancestor, real_parent);
		if (!ancestor)
			return -1;
	}
	return -1;
}

/* Runs for every thread when the program begins, and for every new one. One without memory for its place is
 * scheduled like a thread of no instance. */
SEC("struct_ops.s/soft_init_task")
s32 BPF_PROG(soft_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	s32 place = -1;
	u32 *own;

	if (args->fork) {
		/* The new thread has no parent yet: its maker runs. */
		own = bpf_task_storage_get(&members, bpf_get_current_task_btf(), NULL, 0);
		if (own)
			place = *own;
	} else {
		place = place_in_tree(p);
	}
	if (place < 0)
		return 0;
	own = bpf_task_storage_get(&members, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (own)
		*own = place;
	return 0;
}

SEC("struct_ops.s/soft_init")
s32 BPF_PROG(soft_init)
{
	for (u32 place = 0; place < MOST_INSTANCES; place++) {
		s32 error = scx_bpf_create_dsq(place, -1);

		if (error)
			return error;
	}
	return 0;
}

SEC("struct_ops/soft_exit")
void BPF_PROG(soft_exit, struct scx_exit_info *info)
{
	u32 zero = 0;
	struct ended *why = bpf_map_lookup_elem(&ended, &zero);

	if (!why)
		return;
	bpf_probe_read_kernel_str(why->reason, sizeof(why->reason), BPF_CORE_READ(info, reason));
	bpf_probe_read_kernel_str(why->message, sizeof(why->message), BPF_CORE_READ(info, msg));
	why->kind = BPF_CORE_READ(info, kind);
}

SEC(".struct_ops.link")
struct sched_ext_ops soft_ops = {
	.select_cpu = (void *)soft_select_cpu,
	.enqueue = (void *)soft_enqueue,
	.dispatch = (void *)soft_dispatch,
	.cpu_release = (void *)soft_cpu_release,
	.cpu_online = (void *)soft_cpu_online,
	.cpu_offline = (void *)soft_cpu_offline,
	.init_task = (void *)soft_init_task,
	.init = (void *)soft_init,
	.exit = (void *)soft_exit,
	.flags = SCX_OPS_SWITCH_PARTIAL,
	.timeout_ms = TIMEOUT_MS,
	.name = "untax_soft",
};
