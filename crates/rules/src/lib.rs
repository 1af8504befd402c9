//! Diagnoses: pure functions from a window to findings. Nothing here reads the host.

mod assemble;
mod catalogue;
mod diagnoses;
mod evidence;
mod model;
mod rule;
#[cfg(test)]
mod test_clients;
#[cfg(test)]
mod test_examples;
#[cfg(test)]
mod test_frequency;
#[cfg(test)]
mod test_io;
#[cfg(test)]
mod test_lengths;
#[cfg(test)]
mod test_window;
mod untraced;

pub use assemble::check;
pub use catalogue::{RULES, find};
pub use evidence::EVIDENCE;
pub use model::accounting::{Demand, time_shares};
pub use rule::Rule;
pub use untraced::{UNTRACED, Untraced};
