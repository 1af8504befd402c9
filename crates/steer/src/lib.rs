//! Soft CPU affinity for each database: it is at home on its preferred CPUs, and uses others while they idle
//! and that pays.
//!
//! The [`policy`] is pure. The user-space backend gives threads their CPUs within their cpuset, on any kernel,
//! and keeps a journal, so that all is put back whatever ends it ([`steer`]). The [`model`] is an
//! instrument for tests.

mod beside;
mod demand;
pub mod event;
mod ext;
pub mod model;
mod order;
mod pace;
pub mod policy;
pub mod proposal;
mod published;
pub mod resolve;
mod status;
mod steering;
#[doc(hidden)]
pub mod stress;
mod threads;
pub mod topology;
mod usage;
mod work;

pub use beside::{Beside, Done};
pub use demand::{demands, preferred_cpus};
pub use ext::{ExtError, Refusal};
pub use order::{Backend, Chosen, Order, SteerError};
pub use pace::thread_s;
pub use published::{Steered, steered_now};
pub use status::{Left, Status, StopError, status, stop};
pub use steering::{folder, put_back_rest, steer};
pub use usage::{MachineTime, Usage};
