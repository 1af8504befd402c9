/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A part of threads.bpf.c: how much of their time on a CPU the threads spend in page faults and in
 * system calls of some kinds. No event tells when a fault has been served, and one for each system
 * call costs too much, so stacks are sampled.
 */
#ifndef UNTAX_SAMPLES_H
#define UNTAX_SAMPLES_H

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RANGES);
	__type(key, u32);
	__type(value, struct range);
} ranges SEC(".maps");

/* The reader names them, and asks by find_functions. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FUNCTIONS);
	__type(key, u32);
	__type(value, struct function);
} functions SEC(".maps");

static const char WHERE[] SEC(".rodata.where") = "%pS";

static long find_one(struct bpf_map *map, const u32 *index, struct function *sought, void *context)
{
	u64 address = 0;

	if (bpf_kallsyms_lookup_name(sought->name, sizeof(sought->name), 0, &address))
		return 0;
	bpf_snprintf(sought->told, sizeof(sought->told), WHERE, &address, sizeof(address));
	sought->address = address;
	return 0;
}

/*
 * Run by the reader: kernels that sort their symbols find them at once. It is far slower to have all
 * of them written out, as others must.
 */
SEC("syscall")
int find_functions(void *context)
{
	/* As old as sorted symbols. */
	if (bpf_ksym_exists(bpf_task_from_pid))
		bpf_for_each_map_elem(&functions, find_one, NULL, 0);
	return 0;
}

struct stack {
	u64 addresses[MAX_DEPTH];
};

/* Too large for a program's own stack. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct stack);
} stacks SEC(".maps");

static __always_inline bool is_within(u32 range, u64 address)
{
	struct range *found = bpf_map_lookup_elem(&ranges, &range);

	return found && address >= found->from && address < found->to;
}

SEC("raw_tp/page_fault_user")
int BPF_PROG(on_page_fault, unsigned long address)
{
	u32 pid = bpf_get_current_pid_tgid();
	struct thread *thread = bpf_map_lookup_elem(&threads, &pid);

	if (thread && !paused)
		thread->faults_on_data = is_within(thread->database, address);
	return 0;
}

/*
 * The function of the kernel that this address is in, of those for pages of files and for requests;
 * RANGES: another one.
 */
verified_once u32 function_at(u64 address)
{
	u32 range;

	for (range = KERNEL_FAULTS; range < KERNEL_UNLOCKS; range++)
		if (is_within(range, address))
			return range;
	return RANGES;
}

/*
 * Whether the current thread is in a page fault, and the innermost of the functions for pages of files
 * and for requests that it is in; RANGES: in none. Where it executes its own program there is no stack
 * of the kernel's.
 */
static __always_inline bool is_faulting(void *context, u32 *innermost)
{
	u32 zero = 0, range;
	struct stack *stack = bpf_map_lookup_elem(&stacks, &zero);
	bool faulting = 0;
	int frame;
	long bytes;

	*innermost = RANGES;
	if (!stack)
		return 0;
	/* Frames of an earlier sample are none of this one. */
	for (frame = 0; frame <= WAKING_DEPTH; frame++)
		stack->addresses[frame] = 0;
	bytes = bpf_get_stack(context, stack, sizeof(*stack), 0);
	for (frame = 0; frame < MAX_DEPTH; frame++) {
		if (frame * (long)sizeof(u64) >= bytes)
			break;
		range = function_at(stack->addresses[frame]);
		if (range == KERNEL_FAULTS)
			faulting = 1;
		else if (*innermost == RANGES)
			*innermost = range;
	}
	return faulting;
}

/*
 * Whether the thread has just woken another. Interrupts are off while it does, and while it sends one
 * to the CPU that shall run the other: a sample falls on the end of that.
 */
static __always_inline bool is_waking(void)
{
	u32 zero = 0, range;
	struct stack *stack = bpf_map_lookup_elem(&stacks, &zero);
	int frame;

	if (!stack || !is_within(KERNEL_UNLOCKS, stack->addresses[0]))
		return 0;
	for (frame = 1; frame <= WAKING_DEPTH; frame++)
		for (range = KERNEL_WAKES; range < RANGES; range++)
			if (is_within(range, stack->addresses[frame]))
				return 1;
	return 0;
}

/*
 * Registers of a thread that executes its own program hold no system call, nor do a fault's. Gives
 * whether it is one that reads or writes a file.
 */
static __always_inline bool count_call(struct total *total)
{
	struct pt_regs *regs = registers();
	const volatile struct syscall *call = syscall_of(regs);
	u8 kind = call ? call->call : CALLS;

	if (kind >= CALLS || bpf_get_current_task_btf()->flags & IO_WORKER)
		return 0;
	if (kind == CALL_PAGES && is_socket(open_as(bpf_get_current_task_btf(), ARGUMENT_1(regs)))) {
		if (call->sends)
			return 0;
		kind = CALL_RECEIVE;
	}
	__sync_fetch_and_add(&total->calling[kind], 1);
	return kind == CALL_PAGES;
}

SEC("perf_event")
int on_sample(void *context)
{
	u32 pid = bpf_get_current_pid_tgid();
	struct thread *thread = bpf_map_lookup_elem(&threads, &pid);
	struct total *total = thread && !paused ? total_of(thread) : NULL;
	bool pages, faulting;
	u32 place;

	if (!total)
		return 0;
	__sync_fetch_and_add(&total->sampled, 1);
	/* What frees memory is charged as that. */
	if (thread->on_cpu != ON_CPU)
		return 0;
	pages = count_call(total);
	faulting = is_faulting(context, &place);
	if (place >= KERNEL_ENDS && place < RANGES)
		__sync_fetch_and_add(&total->completing, 1);
	else if (pages && place >= KERNEL_READS && place < RANGES)
		__sync_fetch_and_add(&total->reading, 1);
	if (is_waking())
		__sync_fetch_and_add(&total->waking, 1);
	if (faulting) {
		__sync_fetch_and_add(&total->faulting, 1);
		if (thread->faults_on_data)
			__sync_fetch_and_add(&total->faulting_on_data, 1);
	}
	return 0;
}

#endif
