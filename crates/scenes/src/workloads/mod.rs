//! The workloads that people run, one file each.

mod big_sort;
mod copy_in;
mod copy_out;
mod logical_replication;
mod parallel_query;
mod pgbouncer;
mod read_write;
mod standby;
mod tpcc;
mod vacuum;

use crate::workload::Workload;

/// TPC-C of 2 warehouses with so many terminals without think time, on the server of a setup.
pub fn tpcc(setup: &crate::Setup, terminals: u32) -> Result<crate::Prepared, crate::SceneError> {
    tpcc::with_terminals(setup, terminals)
}

/// Whether `go-tpc` is there, which TPC-C on MariaDB and MySQL needs.
pub fn has_go_tpc() -> bool {
    tpcc::go_tpc().is_ok()
}

/// All of them.
pub static WORKLOADS: &[Workload] = &[
    read_write::WORKLOAD,
    copy_in::WORKLOAD,
    copy_out::WORKLOAD,
    big_sort::WORKLOAD,
    parallel_query::WORKLOAD,
    vacuum::WORKLOAD,
    standby::WORKLOAD,
    logical_replication::WORKLOAD,
    pgbouncer::WORKLOAD,
    tpcc::WORKLOAD,
    tpcc::WITH_THINK_TIME,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_workload_has_a_name_and_servers_of_its_own() {
        let mut ids: Vec<&str> = WORKLOADS.iter().map(|workload| workload.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), WORKLOADS.len());
        assert!(WORKLOADS.iter().all(|workload| !workload.releases.is_empty()));
    }
}
