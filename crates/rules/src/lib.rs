//! Diagnoses: pure functions from a window to findings. Nothing here reads the host.

mod accounting;
mod assemble;
mod catalogue;
mod hugepage_limit;
mod hugepages_idle;
mod hugepages_short;
mod page_table_bloat;
mod pools;
mod small_pages;
#[cfg(test)]
mod test_window;
mod thp_mode;

pub use accounting::{CpuDemand, time_shares};
pub use assemble::check;
pub use catalogue::{RULES, Rule, find};
