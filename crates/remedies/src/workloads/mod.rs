//! Workloads that `untax verify` knows by name: one file each, for the benchmark that comes with an
//! engine. Pure: they say shell commands, and run none.

mod commands;
mod pgbench;
mod redis_benchmark;
mod sysbench;

pub use commands::{Commands, Load, Workload};

/// All workloads.
pub static WORKLOADS: &[Workload] =
    &[pgbench::WORKLOAD, sysbench::WORKLOAD, redis_benchmark::WORKLOAD];

impl Workload {
    /// The workload of that name.
    pub fn find(id: &str) -> Option<&'static Self> {
        WORKLOADS.iter().find(|workload| workload.id == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_each_says_what_it_does() {
        for (at, workload) in WORKLOADS.iter().enumerate() {
            assert!(!workload.summary.is_empty());
            assert!(WORKLOADS[..at].iter().all(|other| other.id != workload.id));
            assert!(Workload::find(workload.id).is_some());
        }
    }
}
