//! What benches print, for the list of formats.

pub use crate::locality::schema::LocalityBench;
pub use crate::pages::schema::PagesBench;
pub use crate::platform::PlatformBench;

use crate::affinity::model::Modelled;

/// What `untax bench affinity` prints: trials, or with `--model` what a model gives.
#[derive(schemars::JsonSchema)]
#[serde(untagged)]
pub enum AffinityBench {
    /// Trials.
    Trials(Box<PlatformBench>),
    /// A model.
    Model(Modelled),
}
