//! Causes on purpose: a scratch database with one problem, switched on and off.
//!
//! One file for each cause, named by the rule that is to find it. Servers, loads and all that is
//! around them come from `untax_scenes`.

mod cause;
mod causes;
mod dose;
mod environment;
mod error;
mod injection;
mod testbed;
mod variant;

pub use cause::{Cause, Guards, Need};
pub use causes::CAUSES;
pub use dose::Dose;
pub use environment::Environment;
pub use error::LabError;
pub use injection::Injection;
pub use testbed::Testbed;
pub use variant::{OtherLoad, Variant};
