//! Diagnoses: pure functions from a window to findings. Nothing here reads the host.

mod accounting;
mod assemble;
mod catalogue;
mod clients;
mod cni_path;
mod conntrack_pressure;
mod cpu_contended;
mod cpu_throttled;
mod cpus;
mod crowd;
mod dirty_burst;
mod disk;
mod disk_limit;
mod disk_slow;
mod duplicate_machine_id;
mod event_loop;
mod file_waits;
mod filling;
mod hugepage_limit;
mod hugepages_idle;
mod hugepages_short;
mod images;
mod io_hang;
mod lock_contended;
mod memory;
mod mysql_temp_files;
mod neighbour_reclaim;
mod numa_churn;
mod numa_remote;
mod oom_near;
mod page_table_bloat;
mod pools;
mod postgres_full_page_writes;
mod pressure;
mod reclaim_stall;
mod redis_network_bound;
mod sandboxed_runtime;
mod shared_filesystem;
mod short_connections;
mod small_pages;
mod stall;
mod storage_remote;
mod tcp_retransmit;
#[cfg(test)]
mod test_io;
#[cfg(test)]
mod test_window;
mod thp_mode;
mod too_many_connections;
mod unpriced;
mod vm_steal;

pub use accounting::{Demand, time_shares};
pub use assemble::check;
pub use catalogue::{RULES, Rule, find};
