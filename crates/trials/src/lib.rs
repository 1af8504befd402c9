//! The paired-trial runner: one for `verify`, the lab and every bench.
//!
//! A [`Design`] says what is compared: [`Arm`]s, the cells that each of them is measured in, and
//! the order. A [`Rig`] is what they share (a host with and without a plan, one server, tables in
//! memory): it prepares an arm, runs one trial, and tears down. The [`Runner`] goes through the
//! order, watches guards beside each trial, tells the time left, hands each trial to be saved, and
//! goes on with what an earlier run saved. What the trials show is for [`untax_core::verdict`].

mod clock;
mod design;
mod guards;
mod interrupt;
mod others;
mod pairs;
mod regimes;
mod runner;
mod saved;

pub use design::{
    Arm, Block, Cell, Design, Interleaved, MOST_STEAL, Resource, Slot, Watch, visits,
};
pub use interrupt::{Interrupt, Interrupted, is_ignored};
pub use pairs::{is_unanimous, judged};
pub use regimes::{regimes, without_mixed_pairs};
pub use runner::{Observer, Progress, Rig, Runner, Trial};
pub use saved::{Saved, SavedError};
