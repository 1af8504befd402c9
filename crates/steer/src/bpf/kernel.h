/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the program uses of the kernel's sched_ext. Structures have the members that are used alone: libbpf
 * finds each by its name in the running kernel.
 */
#ifndef UNTAX_STEER_KERNEL_H
#define UNTAX_STEER_KERNEL_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <linux/version.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef _Bool bool;
#define true 1
#define false 0

/* enum scx_dsq_id_flags, scx_kick_flags and scx_ops_flags of kernel/sched/ext_internal.h. */
#define SCX_DSQ_GLOBAL ((1ULL << 63) | 1)
#define SCX_DSQ_LOCAL ((1ULL << 63) | 2)
#define SCX_KICK_IDLE (1ULL << 0)
#define SCX_OPS_SWITCH_PARTIAL (1ULL << 3)

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct cpumask {
	unsigned long bits[1];
};

struct task_struct {
	int pid;
	int tgid;
	int nr_cpus_allowed;
	const struct cpumask *cpus_ptr;
	struct task_struct *real_parent;
};

struct scx_init_task_args {
	bool fork;
};

enum scx_exit_kind {
	SCX_EXIT_NONE,
};

struct scx_exit_info {
	enum scx_exit_kind kind;
	const char *reason;
	char *msg;
};

struct scx_cpu_release_args;

#pragma clang attribute pop

struct sched_ext_ops {
	s32 (*select_cpu)(struct task_struct *p, s32 prev_cpu, u64 wake_flags);
	void (*enqueue)(struct task_struct *p, u64 enq_flags);
	void (*dispatch)(s32 cpu, struct task_struct *prev);
	void (*cpu_release)(s32 cpu, struct scx_cpu_release_args *args);
	void (*cpu_online)(s32 cpu);
	void (*cpu_offline)(s32 cpu);
	s32 (*init_task)(struct task_struct *p, struct scx_init_task_args *args);
	s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	u64 flags;
	u32 timeout_ms;
	char name[128];
};

/* Headers have it from Linux 6.4 on. The loader compares it with the kernel's, so it is named and made alike. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 4, 0)
struct bpf_iter_num {
	u64 __opaque[1];
} __attribute__((aligned(8)));
#endif

s32 scx_bpf_create_dsq(u64 dsq_id, s32 node) __ksym __weak;
void scx_bpf_dsq_insert(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags) __ksym __weak;
bool scx_bpf_dsq_move_to_local(u64 dsq_id) __ksym __weak;
void scx_bpf_kick_cpu(s32 cpu, u64 flags) __ksym __weak;
bool scx_bpf_test_and_clear_cpu_idle(s32 cpu) __ksym __weak;
u32 scx_bpf_reenqueue_local(void) __ksym __weak;
bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *mask) __ksym __weak;

#endif
