//! Benchmarks with factors, levels and paired trials, and what they need of the host.
//!
//! A program that runs them must call [`run_hidden`] first of all: the bench starts it again
//! for its readers, its guard and its calibration.

pub mod advise;
mod affinity;
mod bench;
pub mod calibrate;
mod child;
mod cluster;
mod experiment;
mod hidden;
mod list;
mod locality;
mod machine;
mod memory;
pub mod network;
pub mod pages;
pub mod platform;
pub mod progress;
pub mod runtime;
pub mod schemas;
mod smaps;
mod storage;
mod text_table;

pub use bench::Bench;
pub use calibrate::{Budget, calibrate, calibrate_in_child};
pub use child::HiddenCommand;
pub use experiment::{
    BenchResult, Context, Ending, Experiment, ExperimentError, Listener, RunResult,
};
pub use hidden::run_hidden;
pub use list::EXPERIMENTS;
pub use machine::{Machine, own_cgroup};
pub use progress::{Nobody, Observer, Progress};
