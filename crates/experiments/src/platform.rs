//! The frame of the platform benches: what alternatives of one layer cost the same work, in one command.
//!
//! A *family* (runtime, network, storage) names its alternatives and its work; all else is here: the order of
//! trials, the noise floor, guards, budget, resuming, results, screens, pages, and guards of a build.
//!
//! # Words
//! - An [`Arm`] is one alternative: runc, a bridge, xfs. The first one is the *baseline*: every other is
//!   divided by it. An arm that cannot run here says why in one line, and is listed.
//! - A [`Workload`] is some work with a unit, and whether more or less of that is better.
//! - A [`Placement`] says which CPUs servers and clients have: [`Cpus`]. It is named in every cell.
//! - A [`Cell`] is a workload in a placement. A *block* measures a cell once with every arm, in random order,
//!   and the baseline twice: the second time under the name [`AGAIN`], an arm like any other. What these two
//!   differ by is the noise floor (A/A).
//! - A trial gives a [`Measured`]: a value, operations, and named extras ([`Extra`]): percentiles, calls.
//!
//! # How a family plugs in
//! 1. Arguments: a `clap::Parser` with `#[command(flatten)] common: platform::Arguments`, and its own.
//! 2. A value that implements [`Family`]: `arms`, `workloads`, `needs`, and `start`, which brings up one arm
//!    for one cell and gives a [`Running`]. That measures once for each `trial` and is dropped afterwards:
//!    whatever was started is taken away by `Drop`, and by a shell of `scenes` when this program is killed.
//!    Starting and warming up happen in `start`, never in `trial`.
//! 3. An [`Experiment`](crate::Experiment) whose `run` parses the arguments and calls
//!    [`entry::run`] with a [`About`] (id, schema, title), and whose `read` is [`entry::read`].
//! 4. The entry in `list.rs`.
//!
//! The frame measures beside every trial, for every family alike: CPU time of the machine for each operation,
//! how often idle CPUs slept for each operation, throttling of the groups that [`Running::groups`] names, and
//! what the guards of `untax_trials` watch, other programs included.
//!
//! A family adds to the result what explains it through [`Running::trial`]'s extras and [`Arm::configuration`];
//! figures of an arm that hold for all its cells (nanoseconds of a system call) are a workload like any other,
//! with `explains: true`: they are shown beside the ratios and are no ratio of their own. Where a baseline counts
//! its system calls ([`CALLS`]) and a cell in [`NS_PER_CALL`] says what one costs in each arm, the frame says how
//! much of each ratio that explains.

mod arguments;
mod arm;
pub(crate) mod beside;
mod budget;
mod cell;
pub mod entry;
mod error;
mod explain;
mod family;
mod guard;
mod html;
mod junit;
mod lines;
mod machine;
mod markdown;
mod measured;
mod order;
mod phrases;
mod placement;
mod results;
mod run;
mod schema;
mod shown;
mod terminal;
mod warnings;

#[cfg(test)]
mod fake;

pub use arguments::Arguments;
pub use arm::{AGAIN, Arm, Setting, Step};
pub use cell::{Better, Cell, Published, StandsFor, Workload};
pub use entry::About;
pub use error::{PlatformError, Trouble};
pub use explain::{CALLS, NS_PER_CALL};
pub use family::{Family, Needs, Running};
pub use measured::{Extra, Measured};
pub use placement::{Cpus, Placement};
pub use schema::{
    AaCount, ArmResult, CellResult, CellState, Line, PlatformBench, Ratio, TrialResult,
};
pub use warnings::KINDS as WARNINGS;
