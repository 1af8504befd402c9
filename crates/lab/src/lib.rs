//! Causes on purpose: a scratch database with one problem, switched on and off.
//!
//! One file for each cause, named by the rule that is to find it. Servers, loads and all that is
//! around them come from `untax_scenes`.

mod causes;
mod error;
mod scene;

pub use causes::{CAUSES, Cause, Dose, Injected, Need, Plan};
pub use error::LabError;
pub use scene::Scene;
