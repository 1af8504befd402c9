/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The few fields of block requests, pages and files that the disks program reads. As in kernel.h,
 * CO-RE finds each of them where the running kernel has it.
 */
#ifndef UNTAX_BLOCK_H
#define UNTAX_BLOCK_H

#include "kernel.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct hlist_node {
	struct hlist_node *next;
};

struct hlist_head {
	struct hlist_node *first;
};

struct qstr {
	const unsigned char *name;
};

struct super_block {
	u32 s_dev;
};

struct inode {
	u16 i_mode;
	struct {
		u32 val;
	} i_uid;
	unsigned long i_ino;
	struct super_block *i_sb;
	struct hlist_head i_dentry;
};

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
	/* Where the names of one inode are linked; a member of d_u up to 7.2. */
	struct hlist_node d_u;
	struct hlist_node d_alias;
};

struct address_space {
	struct inode *host;
};

struct page {
	unsigned long compound_head;
	/* What newer kernels (seen in 7.3) have in its place. */
	unsigned long compound_info;
	struct address_space *mapping;
};

enum req_flag_bits {
	__REQ_META = 12,
};

struct bio_vec {
	struct page *bv_page;
};

struct bvec_iter {
	unsigned int bi_idx;
};

struct bio {
	unsigned int bi_opf;
	struct bvec_iter bi_iter;
	struct bio_vec *bi_io_vec;
	void *bi_private;
};

/* As part of a disk up to Linux 5.10, which also gave the queue to each tracepoint of a request. */
struct hd_struct {
	int partno;
};

struct gendisk {
	int major;
	int first_minor;
	/* Now a pointer: another field to CO-RE. */
	struct hd_struct part0;
};

struct request_queue {
	struct gendisk *disk;
};

struct request {
	struct request_queue *q;
	unsigned int cmd_flags;
	unsigned int __data_len;
	u64 __sector;
	struct bio *bio;
	u64 start_time_ns;
	/* Up to Linux 5.16. */
	struct gendisk *rq_disk;
};

/* Direct I/O to files of ext4, xfs, btrfs, …: fs/iomap/direct-io.c. */
struct file {
	struct inode *f_inode;
};

struct kiocb {
	struct file *ki_filp;
};

struct iomap_dio {
	struct kiocb *iocb;
};

#pragma clang attribute pop

#endif
