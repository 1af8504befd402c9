// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Counts block requests by device, database, role and direction, from their issue to a device to
 * their completion. Nothing is copied to user space but one total for each combination.
 */
#include "block.h"
#include "disks.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct bpf_map;

#define REQ_OP_MASK 0xff
#define REQ_OP_READ 0
#define REQ_OP_WRITE 1
#define REQ_OP_FLUSH 2
#define REQ_OP_DISCARD 3
#define REQ_OP_SECURE_ERASE 5
#define REQ_OP_ZONE_APPEND 7
#define REQ_OP_WRITE_ZEROES 9

/* A file and the directories above it, up to a watched one: so many are looked up. */
#define LEVELS 5

#define true 1
#define false 0

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct place);
	__type(value, struct holds);
} places SEC(".maps");

/* Processes of the databases, for requests whose pages belong to no file. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u32);
	__type(value, u32);
} processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct flow_key);
	__type(value, struct flow);
} flows SEC(".maps");

/* By the address of the request: devices reuse few of them. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, struct issued);
} issued SEC(".maps");

/* By the address of what is asked for (struct bio): what others read. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u64);
	__type(value, u8);
} strangers SEC(".maps");

/* Set before the program is loaded. */
const volatile struct name names[NAMES];

/* Zero; too large for the stack. */
struct flow fresh = {};

/*
 * An argument of the tracepoint, counted from the request: older kernels gave the queue before it.
 * Written so that the compiler cannot join both reads into one of a computed address, which the
 * verifier refuses.
 */
#define ARGUMENT(context, at)							\
	({									\
		u64 value;							\
		if (bpf_core_field_exists(((struct gendisk *)0)->part0))	\
			asm volatile("%0 = *(u64 *)(%1 + %2)"			\
				     : "=r"(value) : "r"(context), "i"((at) * 8 + 8));	\
		else								\
			asm volatile("%0 = *(u64 *)(%1 + %2)"			\
				     : "=r"(value) : "r"(context), "i"((at) * 8));	\
		value;								\
	})

static __always_inline u32 device_of(struct request *request)
{
	struct request_queue *queue = BPF_CORE_READ(request, q);
	struct gendisk *disk = NULL;

	if (bpf_core_field_exists(queue->disk))
		disk = BPF_CORE_READ(queue, disk);
	else if (bpf_core_field_exists(request->rq_disk))
		disk = BPF_CORE_READ(request, rq_disk);
	return disk ? BPF_CORE_READ(disk, major) << 20 | BPF_CORE_READ(disk, first_minor) : 0;
}

/* The role that the name of the dentry at this address tells, or -1. */
verified_once int role_of_name(u64 address)
{
	struct dentry *dentry = (struct dentry *)address;
	const unsigned char *text = BPF_CORE_READ(dentry, d_name.name);
	u64 begins = 0;
	int i;

	if (bpf_probe_read_kernel(&begins, sizeof(begins), text))
		return -1;
	for (i = 0; i < NAMES; i++)
		if (names[i].mask && (begins & names[i].mask) == names[i].begins)
			return names[i].role;
	return -1;
}

static __always_inline struct dentry *name_of(struct inode *inode)
{
	struct hlist_node *alias = BPF_CORE_READ(inode, i_dentry.first);
	struct dentry *none = NULL;
	u64 offset;

	if (bpf_core_field_exists(none->d_u))
		offset = __builtin_preserve_field_info(none->d_u, BPF_FIELD_BYTE_OFFSET);
	else if (bpf_core_field_exists(none->d_alias))
		offset = __builtin_preserve_field_info(none->d_alias, BPF_FIELD_BYTE_OFFSET);
	else
		return NULL;
	return alias ? (struct dentry *)((u64)alias - offset) : NULL;
}

/* Finds out whose file the inode at this address is and what it is for. */
verified_once int told_by_file(struct flow_key *key, u64 address)
{
	struct inode *inode = (struct inode *)address;
	u32 owner = BPF_CORE_READ(inode, i_uid.val);
	struct dentry *dentry, *parent;
	struct place place = {};
	struct holds *holds;
	int level, role = -1;

	if (!key || !inode)
		return false;
	place.device = BPF_CORE_READ(inode, i_sb, s_dev);
	place.inode = BPF_CORE_READ(inode, i_ino);
	dentry = name_of(inode);
	for (level = 0; level < LEVELS; level++) {
		holds = bpf_map_lookup_elem(&places, &place);
		if (holds && (holds->any_owner || holds->owner == owner)) {
			key->database = holds->database;
			key->role = role < 0 ? holds->role : role;
			return true;
		}
		if (!dentry)
			return false;
		if (role < 0)
			role = role_of_name((u64)dentry);
		parent = BPF_CORE_READ(dentry, d_parent);
		if (!parent || parent == dentry)
			return false;
		dentry = parent;
		place.inode = BPF_CORE_READ(dentry, d_inode, i_ino);
	}
	return false;
}

/*
 * The first page of a large folio, which knows the file, as _compound_head of linux/page-flags.h finds
 * it: bit 0 says that a page is another one of them. The rest is the address of the first one, or, in
 * newer kernels that give memory of huge pages' descriptors back, a mask that makes it of the
 * page's own. No descriptor lies in the last 4 GiB, where every mask is.
 */
static __always_inline struct page *head_of(struct page *page)
{
	u64 head = 0;

	if (bpf_core_field_exists(page->compound_head))
		head = BPF_CORE_READ(page, compound_head);
	else if (bpf_core_field_exists(page->compound_info))
		head = BPF_CORE_READ(page, compound_info);
	if (!(head & 1))
		return page;
	return (struct page *)(~head >> 32 ? head - 1 : (u64)page & head);
}

/* The file that the first page of a request belongs to. */
static __always_inline struct inode *file_of_page(struct bio *bio)
{
	struct bio_vec *vector = BPF_CORE_READ(bio, bi_io_vec);
	u32 index = BPF_CORE_READ(bio, bi_iter.bi_idx);
	/* The kernel's, of another size than the one here. */
	struct bio_vec *first = (void *)vector + index * bpf_core_type_size(struct bio_vec);
	struct page *page = head_of(BPF_CORE_READ(first, bv_page));
	u64 mapping = (u64)BPF_CORE_READ(page, mapping);

	/* PAGE_MAPPING_ANON: no file. */
	return mapping & 3 ? NULL : BPF_CORE_READ((struct address_space *)mapping, host);
}

/* The address of the file (struct inode) that is written or read directly, past the page cache. */
static __always_inline u64 file_of_direct(struct bio *bio)
{
	struct iomap_dio *direct = BPF_CORE_READ(bio, bi_private);

	return (u64)BPF_CORE_READ(direct, iocb, ki_filp, f_inode);
}

/* The database that the current process is of, if any. */
static __always_inline u32 *database_of_task(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	u32 process = bpf_get_current_pid_tgid() >> 32;
	u32 *database = bpf_map_lookup_elem(&processes, &process);

	if (database)
		return database;
	/* A backend that was started since has a known parent. */
	process = BPF_CORE_READ(task, real_parent, tgid);
	return bpf_map_lookup_elem(&processes, &process);
}

/* Whose request this is, when its pages belong to no file of a database: direct I/O, flushes. */
static __always_inline void told_by_task(struct flow_key *key)
{
	u32 *database = database_of_task();

	if (database)
		key->database = *database;
}

/* PF_KTHREAD of linux/sched.h: a worker that passes on what others have asked for. */
#define KERNEL_THREAD 0x00200000

/* A process asks for something to be read: whether it is a database's. Others may issue the request. */
SEC("raw_tp/block_getrq")
int on_ask(u64 *context)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	u64 address = context[0];
	unsigned int flags = BPF_CORE_READ((struct bio *)address, bi_opf);
	u8 stranger = 1;

	if ((flags & REQ_OP_MASK) != REQ_OP_READ)
		return 0;
	if (database_of_task() || BPF_CORE_READ(task, flags) & KERNEL_THREAD)
		bpf_map_delete_elem(&strangers, &address);
	else
		bpf_map_update_elem(&strangers, &address, &stranger, BPF_ANY);
	return 0;
}

/* Who reads a file of a database and is none of its processes, as a backup does, reads for itself. */
static __always_inline void leave_to_reader(struct flow_key *key, struct bio *bio)
{
	u64 address = (u64)bio;

	/* A device that is busy is issued the same request again. */
	if (key->direction != READ || !bpf_map_lookup_elem(&strangers, &address))
		return;
	key->database = NO_DATABASE;
	key->role = OTHER;
}

/* S_IFMT and S_IFBLK of linux/stat.h. */
#define FILE_TYPE 0170000
#define BLOCK_DEVICE 0060000

/*
 * Whether a filesystem writes what it is made of: it says so (REQ_META), or the page is of the device
 * itself and not of a file on it, as ext4's are, whose journal does not say so in older kernels.
 */
static __always_inline int is_structure(struct flow_key *key, struct bio *bio, struct inode *inode)
{
	u32 meta = 0;

	if (key->direction != WRITE)
		return false;
	if (bpf_core_enum_value_exists(enum req_flag_bits, __REQ_META))
		meta = 1U << bpf_core_enum_value(enum req_flag_bits, __REQ_META);
	return (BPF_CORE_READ(bio, bi_opf) & meta) ||
	       (BPF_CORE_READ(inode, i_mode) & FILE_TYPE) == BLOCK_DEVICE;
}

static __always_inline void tell(struct flow_key *key, struct bio *bio)
{
	struct inode *inode = bio ? file_of_page(bio) : NULL;

	if (told_by_file(key, (u64)inode)) {
		leave_to_reader(key, bio);
		return;
	}
	if (bio && bpf_core_type_exists(struct iomap_dio)) {
		/*
		 * Of other requests this is another structure: then no watched file is found. A piece of
		 * what was too large for the device has the one that it was split from there.
		 */
		struct bio *whole = BPF_CORE_READ(bio, bi_private);

		if (told_by_file(key, file_of_direct(bio)) || told_by_file(key, file_of_direct(whole))) {
			leave_to_reader(key, bio);
			return;
		}
	}
	told_by_task(key);
	if (key->database == NO_DATABASE && is_structure(key, bio, inode))
		key->role = FILESYSTEM;
}

static __always_inline int direction_of(u32 flags)
{
	switch (flags & REQ_OP_MASK) {
	case REQ_OP_READ:
		return READ;
	case REQ_OP_WRITE:
	case REQ_OP_ZONE_APPEND:
		return WRITE;
	case REQ_OP_FLUSH:
		return FLUSH;
	case REQ_OP_DISCARD:
	case REQ_OP_SECURE_ERASE:
	case REQ_OP_WRITE_ZEROES:
		return DISCARD;
	}
	return -1;
}

SEC("raw_tp/block_rq_issue")
int on_issue(u64 *context)
{
	struct request *request = (struct request *)ARGUMENT(context, 0);
	int direction = direction_of(BPF_CORE_READ(request, cmd_flags));
	struct issued now = {};
	u64 address = (u64)request, made;

	if (direction < 0)
		return 0;
	now.key.device = device_of(request);
	now.key.database = NO_DATABASE;
	now.key.role = OTHER;
	now.key.direction = direction;
	tell(&now.key, BPF_CORE_READ(request, bio));
	now.bytes = direction > WRITE ? 0 : BPF_CORE_READ(request, __data_len);
	now.sector = BPF_CORE_READ(request, __sector);
	now.since = bpf_ktime_get_ns();
	made = BPF_CORE_READ(request, start_time_ns);
	now.queued = made && now.since > made ? now.since - made : 0;
	bpf_map_update_elem(&issued, &address, &now, BPF_ANY);
	return 0;
}

/* Position of the highest bit. */
static __always_inline u32 log2(u64 value)
{
	u32 at = 0;

	if (value >> 32) { value >>= 32; at += 32; }
	if (value >> 16) { value >>= 16; at += 16; }
	if (value >> 8) { value >>= 8; at += 8; }
	if (value >> 4) { value >>= 4; at += 4; }
	if (value >> 2) { value >>= 2; at += 2; }
	return at + (value >> 1);
}

verified_once u32 latency_bucket(u64 ns)
{
	u32 power = log2(ns), bucket;

	if (power < 10)
		return 0;
	bucket = (power - 10) * 4 + ((ns >> (power - 2)) & 3);
	return bucket < LATENCIES ? bucket : LATENCIES - 1;
}

verified_once u32 size_bucket(u64 bytes)
{
	u32 power = log2(bytes);

	if (power < 9)
		return 0;
	return power - 9 < SIZES ? power - 9 : SIZES - 1;
}

/* The verifier wants the bound on the very register that indexes. */
#define count(buckets, at, size)						\
	({									\
		u64 bound = (at);						\
		asm volatile("%0 &= %1" : "+r"(bound) : "i"((size) - 1));	\
		__sync_fetch_and_add(&(buckets)[bound], 1);			\
	})

/*
 * Two processors may be here for the same flow. Counts are exact; which slot a byte falls into,
 * and which of two ends is remembered, may be off for requests of the same microsecond.
 */
static __always_inline void add(struct flow *flow, struct issued *was, u64 now)
{
	u64 served = now > was->since ? now - was->since : 0;
	u64 slot = now / SLOT, end = was->sector + (was->bytes >> 9);
	u32 bucket = latency_bucket(served);
	bool sequential = false;
	int i;

	__sync_fetch_and_add(&flow->requests, 1);
	__sync_fetch_and_add(&flow->bytes, was->bytes);
	__sync_fetch_and_add(&flow->served, served);
	__sync_fetch_and_add(&flow->queued, was->queued);
	if (served > flow->longest)
		flow->longest = served;
	count(flow->latencies, bucket, LATENCIES);
	if (!was->bytes)
		return;
	bucket = size_bucket(was->bytes);
	count(flow->sizes, bucket, SIZES);
	for (i = 0; i < STREAMS; i++)
		if (was->sector <= flow->ends[i] && was->sector + AGAIN >= flow->ends[i])
			sequential = true;
	if (sequential)
		__sync_fetch_and_add(&flow->sequential, 1);
	flow->ends[flow->next_end++ & (STREAMS - 1)] = end;
	if (flow->slot != slot) {
		flow->slot = slot;
		flow->in_slot = 0;
	}
	flow->in_slot += was->bytes;
	if (flow->in_slot > flow->peak)
		flow->peak = flow->in_slot;
}

SEC("raw_tp/block_rq_complete")
int on_complete(u64 *context)
{
	struct request *request = (struct request *)ARGUMENT(context, 0);
	u64 address = (u64)request, now;
	/* After the request and its error. */
	u32 done = ARGUMENT(context, 2);
	struct issued *was = bpf_map_lookup_elem(&issued, &address);
	struct flow *flow;

	if (!was || done < BPF_CORE_READ(request, __data_len))
		return 0;
	now = bpf_ktime_get_ns();
	flow = bpf_map_lookup_elem(&flows, &was->key);
	if (!flow) {
		bpf_map_update_elem(&flows, &was->key, &fresh, BPF_NOEXIST);
		flow = bpf_map_lookup_elem(&flows, &was->key);
	}
	if (flow)
		add(flow, was, now);
	bpf_map_delete_elem(&issued, &address);
	return 0;
}

static long forget_one(struct bpf_map *map, const struct flow_key *key, struct flow *flow,
		       void *context)
{
	flow->longest = 0;
	flow->peak = 0;
	flow->in_slot = 0;
	return 0;
}

/* Run by the reader, when a window begins. */
SEC("syscall")
int forget_peaks(void *context)
{
	bpf_for_each_map_elem(&flows, forget_one, NULL, 0);
	return 0;
}
