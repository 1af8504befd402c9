/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The few fields of kernel structures that the programs read. CO-RE relocates each access to where
 * the running kernel has the field, so neither order nor size matters here.
 */
#ifndef UNTAX_KERNEL_H
#define UNTAX_KERNEL_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef _Bool bool;

/*
 * Of functions that the verifier shall look at once, not with every call: that is most of what a
 * program costs. They are not static, take numbers and pointers that may be NULL, and give a number.
 */
#define verified_once __noinline

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct rq {
	u64 clock;
	u64 clock_task;
	u64 clock_pelt;
	unsigned long lost_idle_time;
};

struct cfs_rq {
	struct rq *rq;
	int throttle_count;
	u64 throttled_clock_task;
	u64 throttled_clock_task_time;
	u64 throttled_clock_pelt;
	u64 throttled_clock_pelt_time;
	u64 throttled_clock_self;
	u64 throttled_clock_self_time;
};

struct sched_entity {
	struct cfs_rq *cfs_rq;
};

struct file;

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct task_struct {
	int pid;
	int tgid;
	struct task_struct *real_parent;
	unsigned int __state;
	unsigned long nvcsw;
	unsigned long nivcsw;
	unsigned int flags;
	int on_cpu;
	struct sched_entity se;
	struct files_struct *files;
	unsigned int in_iowait : 1;
	unsigned int in_memstall : 1;
};

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r10, r8, dx, si, di, orig_ax;
};
#define SYSCALL_NUMBER(registers) ((registers)->orig_ax)
#define ARGUMENT_1(registers) ((registers)->di)
#define ARGUMENT_2(registers) ((registers)->si)
#define ARGUMENT_3(registers) ((registers)->dx)
#define ARGUMENT_4(registers) ((registers)->r10)
#define ARGUMENT_5(registers) ((registers)->r8)
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs {
	u64 regs[31];
	int syscallno;
};
#define SYSCALL_NUMBER(registers) ((u64)(registers)->syscallno)
#define ARGUMENT_1(registers) ((registers)->regs[0])
#define ARGUMENT_2(registers) ((registers)->regs[1])
#define ARGUMENT_3(registers) ((registers)->regs[2])
#define ARGUMENT_4(registers) ((registers)->regs[3])
#define ARGUMENT_5(registers) ((registers)->regs[4])
#endif

#pragma clang attribute pop

/* Since Linux 6.2. */
extern struct task_struct *bpf_task_from_pid(s32 pid) __ksym __weak;
extern void bpf_task_release(struct task_struct *task) __ksym __weak;

#endif
