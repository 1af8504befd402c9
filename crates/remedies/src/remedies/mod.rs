//! One file per remedy. A remedy is pure: it says which steps and tasks would remove a cause.

mod boot_loader;
pub mod by_hand;
mod conntrack_max;
mod cpu_governor;
pub mod cpu_latency;
mod cpu_limit;
mod cpu_weight;
mod database_config;
pub mod directives;
mod dirty_limits;
pub mod halt_poll;
pub mod hugepage_boot;
mod hugepage_pool;
pub mod hugetlb_limit;
mod io_limit;
pub mod kubernetes;
pub mod kubernetes_node;
mod kubernetes_runtime;
mod machine_id;
mod memory_limit;
mod memory_protection;
mod numa_balancing;
mod numa_bind;
mod pooler;
mod redis_io_threads;
mod shmem_thp;
mod soft_affinity;
pub mod thp;

use crate::remedy::Remedy;

/// All remedies, in the order in which their steps are done.
pub static REMEDIES: &[Remedy] = &[
    hugetlb_limit::REMEDY,
    hugepage_pool::REMEDY,
    hugepage_boot::REMEDY,
    shmem_thp::REMEDY,
    thp::REMEDY,
    numa_balancing::REMEDY,
    conntrack_max::REMEDY,
    dirty_limits::REMEDY,
    io_limit::REMEDY,
    cpu_limit::REMEDY,
    memory_limit::REMEDY,
    cpu_weight::REMEDY,
    halt_poll::REMEDY,
    cpu_latency::REMEDY,
    cpu_governor::REMEDY,
    memory_protection::REMEDY,
    numa_bind::REMEDY,
    soft_affinity::REMEDY,
    machine_id::REMEDY,
    pooler::REMEDY,
    redis_io_threads::REMEDY,
    // A node has its pages before a database asks for them, or its restart fails.
    kubernetes::REMEDY,
    kubernetes_runtime::REMEDY,
    database_config::REMEDY,
];

/// Those that change how idle CPUs sleep: one client shows what they bring, and many show nothing.
pub const KEEP_CPUS_AWAKE: [&str; 2] = [halt_poll::REMEDY.id, cpu_latency::REMEDY.id];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_list_is_complete_and_says_everything() {
        let ids: BTreeSet<&str> = REMEDIES.iter().map(|remedy| remedy.id).collect();
        assert_eq!(ids.len(), REMEDIES.len(), "an id is used twice");
        for remedy in REMEDIES {
            assert!(!remedy.summary.is_empty() && !remedy.answers.is_empty(), "{}", remedy.id);
        }
    }
}
