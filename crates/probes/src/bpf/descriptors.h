/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A part of threads.bpf.c: what the descriptors of a process are. */
#ifndef UNTAX_DESCRIPTORS_H
#define UNTAX_DESCRIPTORS_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* What follows three underscores is no part of a name to CO-RE: block.h has other fields of them. */
struct inode___mode {
	unsigned short i_mode;
	unsigned long i_ino;
};

struct file___mode {
	struct inode___mode *f_inode;
	void *private_data;
};

struct rb_node {
	struct rb_node *rb_right;
	struct rb_node *rb_left;
};

struct rb_root {
	struct rb_node *rb_node;
};

struct rb_root_cached {
	struct rb_root rb_root;
};

struct epoll_filefd {
	struct file___mode *file;
};

/* One of those that an epoll descriptor polls. */
struct epitem {
	struct rb_node rbn;
	struct epoll_filefd ffd;
};

struct eventpoll {
	struct rb_root_cached rbr;
};

#pragma clang attribute pop

#define FORMAT_OF_MODE 0xf000
#define SOCKET 0xc000

/* The file that a descriptor of a process is open as; NULL when it is closed. */
static __always_inline struct file___mode *open_as(struct task_struct *task, u32 descriptor)
{
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file___mode *file = NULL;
	struct file **slots;

	if (!table || descriptor >= BPF_CORE_READ(table, max_fds))
		return NULL;
	slots = BPF_CORE_READ(table, fd);
	bpf_probe_read_kernel(&file, sizeof(file), &slots[descriptor]);
	return file;
}

/* The number of a socket: the next one may well have its place in memory, and its descriptor. */
static __always_inline u64 socket_at(struct task_struct *task, u32 descriptor)
{
	struct file___mode *file = open_as(task, descriptor);

	return file ? BPF_CORE_READ(file, f_inode, i_ino) : 0;
}

static __always_inline bool is_socket(struct file___mode *file)
{
	return file && (BPF_CORE_READ(file, f_inode, i_mode) & FORMAT_OF_MODE) == SOCKET;
}

static __always_inline bool is_polled_socket(struct rb_node *node)
{
	struct epitem *item = (void *)node - bpf_core_field_offset(struct epitem, rbn);

	return node && is_socket(BPF_CORE_READ(item, ffd.file));
}

/* The tree of what an epoll descriptor polls; NULL when that is nothing, or cannot be read. */
static __always_inline struct rb_node *polled_by(struct task_struct *task, u32 descriptor)
{
	struct eventpoll *polled = BPF_CORE_READ(open_as(task, descriptor), private_data);

	return BPF_CORE_READ(polled, rbr.rb_root.rb_node);
}

/* Whether a socket is in it, or more than the three that are looked at. */
static __always_inline bool holds_socket(struct rb_node *root)
{
	struct rb_node *left = BPF_CORE_READ(root, rb_left), *right = BPF_CORE_READ(root, rb_right);

	return is_polled_socket(root) || is_polled_socket(left) || is_polled_socket(right) ||
	       BPF_CORE_READ(left, rb_left) || BPF_CORE_READ(left, rb_right) ||
	       BPF_CORE_READ(right, rb_left) || BPF_CORE_READ(right, rb_right);
}

#endif
