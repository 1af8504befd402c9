/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the program and its reader (disks.rs) agree on. */
#ifndef UNTAX_DISKS_H
#define UNTAX_DISKS_H

/* What a request is for, in the order of untax_core::io::Role. */
enum role { LOG, DATA, TEMP, OTHER, FILESYSTEM };

/* In the order of untax_core::io::Direction. */
enum direction { READ, WRITE, FLUSH, DISCARD };

/*
 * Buckets of latency: four for each power of two, from 2^10 ns on; of size: from 2^9 bytes on.
 * Both numbers are powers of two.
 */
#define LATENCIES 128
#define SIZES 32

/* Ends of earlier requests that a sequential one may start at. */
#define STREAMS 4

/* Sectors that a log may write again because its last block was not full: PostgreSQL's is 8 KiB. */
#define AGAIN 16

/* Bytes are summed over slots of this length (ns) to find the peak. */
#define SLOT 250000000ULL

/* Beginnings of names that tell what a file is for. */
#define NAMES 16

#define NO_DATABASE 0xffffffff

struct name {
	/* The first eight bytes of the name, and which of them matter. */
	u64 begins;
	u64 mask;
	u8 role;
};

/* A directory, or a single file, of a watched database. */
struct place {
	u32 device;
	u32 unused;
	u64 inode;
};

struct holds {
	u32 database;
	/* Only files of this user, unless any is set: others share the directory. */
	u32 owner;
	u8 any_owner;
	u8 role;
};

struct flow_key {
	u32 device;
	u32 database;
	u8 role;
	u8 direction;
	u16 unused;
};

struct flow {
	u64 requests;
	u64 bytes;
	u64 sequential;
	/* Sums, ns: from issue to completion, and from the request's making to its issue. */
	u64 served;
	u64 queued;
	u64 longest;
	/* Bytes of the slot that is running, and the most of any slot so far. */
	u64 slot;
	u64 in_slot;
	u64 peak;
	u64 ends[STREAMS];
	u64 next_end;
	u32 latencies[LATENCIES];
	u32 sizes[SIZES];
};

/* A request that its device has. */
struct issued {
	struct flow_key key;
	u32 bytes;
	u64 since;
	u64 queued;
	u64 sector;
};

#endif
