//! Soft CPU affinity for each database: it is at home on its preferred CPUs, and uses others while they idle
//! and that pays.
//!
//! The [`policy`] is pure. The user-space backend gives threads their CPUs within their cpuset, on any kernel,
//! and keeps a journal, so that all is put back whatever ends it ([`steer`]). The [`model`] is an
//! instrument for tests.

mod demand;
pub mod event;
pub mod model;
mod pace;
pub mod policy;
pub mod proposal;
pub mod resolve;
mod status;
mod steering;
#[doc(hidden)]
pub mod stress;
mod threads;
pub mod topology;
mod usage;
mod work;

pub use demand::{demands, preferred_cpus};
pub use pace::thread_s;
pub use status::{Left, Status, StopError, status, stop};
pub use steering::{Chosen, Order, SteerError, folder, put_back_rest, steer};
pub use usage::{MachineTime, Usage};
