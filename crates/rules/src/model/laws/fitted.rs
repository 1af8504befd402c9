//! All factors of gains that no law gives and no window shows: what was measured, on which machine, and which
//! cases depend on it.
//!
//! Recorded cases on engines and scenes that were never used to choose a number here are reported apart:
//! `docs/results/truth.md`.

/// By how much more requests a CPU does where it no longer falls idle, over what it does where it always does:
/// threads find the next request there instead of being woken for it. As expected, and at most. A part of it
/// holds for the part of CPUs' time that is idle now and busy then.
///
/// PostgreSQL 15 on two virtual CPUs (EPYC, KVM, kernel 6.18): 63 us for a request under a quota of 0.3 CPU, 42
/// without it (1.5); the lab's causes there 1.2 to 1.8. Depend on it: `cpu-throttled`, `disk-slow`, `io-hang`,
/// `reclaim-stall` with a load that fills the CPUs once the cause is gone.
pub(super) const CHEAPER_WITHOUT_IDLING: [f64; 2] = [0.5, 1.0];

/// The most that a request takes longer on a CPU once neighbours are gone and CPUs fall idle between requests.
///
/// The lab's `cpu-contended` on the machine above: 1.0 to 1.7. Depends on it: the lower bound of `cpu-contended`
/// where idle CPUs sleep.
pub(super) const DEARER_WITH_IDLING: f64 = 1.7;

/// The most that neighbours raise a request's time on CPU by: they evict its data from the caches of the CPUs.
///
/// The lab's `cpu-contended` with neighbours that read and write memory, on the machine above: 1.0 to 1.2.
/// Depends on it: the upper bound of `cpu-contended` and of `neighbour-reclaim`.
pub(super) const CACHE_COST_OF_NEIGHBOURS: f64 = 1.25;

/// By what factor threads compute longer after they were woken on a virtual CPU that had halted: its caches
/// and what it had learnt of branches are gone. As expected, and at most.
///
/// PostgreSQL 15 with one client, on the machine above: 49 us of a CPU for each request without the interrupts
/// that it sent, and 25 us with `guest_halt_poll_ns` = 200000. Not used to choose it: Redis 2.2, MariaDB 2.8,
/// interrupts included. Depends on it: `idle-wakeup` in guests.
pub const COLD_CPU: [f64; 2] = [2.0, 2.8];

/// The part of what cold caches cost connections that is left in a pool, whose connections take turns too.
///
/// PostgreSQL 15 on the machine above: of 43 us that a statement was slower with cold caches, a pool of four
/// connections for each CPU saved 39 of a request where 300 had taken turns, and 34 where 100 had. Depends on
/// it: `too-many-connections`.
pub const LEFT_IN_A_POOL: f64 = 0.15;
