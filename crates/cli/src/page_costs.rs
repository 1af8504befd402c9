//! Calibrations, kept in the state directory and measured by an experiment.

use crate::state::State;
use untax_core::host::HostFacts;
use untax_core::{Calibration, Reading};
use untax_pipeline::PageCosts;

/// The calibration's name in the state directory; `bench pages` keeps its own there too.
pub const CALIBRATION: &str = "calibration";

/// Keeps calibrations in a state directory.
pub struct StatePageCosts<'a>(pub &'a State);

impl PageCosts for StatePageCosts<'_> {
    fn kept(&self) -> Option<Calibration> {
        self.0.load(CALIBRATION)
    }

    fn measure(&self, host: &HostFacts) -> Reading<Calibration> {
        untax_experiments::calibrate_in_child(host)
    }

    fn keep(&self, calibration: &Calibration) -> Result<(), String> {
        self.0.save(CALIBRATION, calibration).map_err(|error| format!("{error:#}"))
    }
}
