//! One file per command: its arguments and what it does.

pub mod bench_pages;
pub mod capture;
pub mod check;
pub mod explain;
pub mod lab;
pub mod watch;
