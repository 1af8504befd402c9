//! Calibrations, kept in the state directory and measured by an experiment.

use crate::state::State;
use std::path::PathBuf;
use untax_core::host::HostFacts;
use untax_core::{Calibration, Reading};
use untax_pipeline::PageCosts;

/// The calibration's name in the state directory; `bench pages` keeps its own there too.
const CALIBRATION: &str = "calibration";

/// The name of the one that was replaced last.
const OLDER: &str = "calibration-older";

/// Keeps calibrations in a state directory.
pub struct StatePageCosts<'a>(pub &'a State);

impl StatePageCosts<'_> {
    /// Puts a calibration in the place of the one that checks use, which is kept beside it: gives where,
    /// if there was one.
    pub fn replace(&self, calibration: &Calibration) -> anyhow::Result<Option<PathBuf>> {
        let older = self.kept();
        if let Some(older) = &older {
            self.0.save(OLDER, older)?;
        }
        self.0.save(CALIBRATION, calibration)?;
        older.map(|_| self.0.path(OLDER)).transpose()
    }
}

impl PageCosts for StatePageCosts<'_> {
    fn kept(&self) -> Option<Calibration> {
        self.0.load(CALIBRATION)
    }

    fn measure(&self, host: &HostFacts) -> Reading<Calibration> {
        untax_experiments::calibrate_in_child(host)
    }

    fn keep(&self, calibration: &Calibration) -> Result<(), String> {
        self.replace(calibration).map(drop).map_err(|error| format!("{error:#}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use untax_core::Interval;

    #[test]
    fn a_calibration_that_is_replaced_is_kept_beside_the_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let state = State::new(Some(folder.path().to_owned()));
        let costs = StatePageCosts(&state);
        let of = |minor_fault_ns| Calibration {
            taken_at: Timestamp::UNIX_EPOCH,
            cpu_model: String::new(),
            kernel_release: String::new(),
            source: "check".to_owned(),
            minor_fault_ns: Interval::exact(minor_fault_ns),
            write_fault_ns: None,
            unmap_ns: None,
            touches: Vec::new(),
            touches_missing: None,
        };
        assert_eq!(costs.replace(&of(1.0)).unwrap(), None);
        let older = costs.replace(&of(2.0)).unwrap().unwrap();
        assert_eq!(costs.kept(), Some(of(2.0)));
        assert_eq!(state.load_run::<Calibration>(older.to_str().unwrap(), None).unwrap(), of(1.0));
    }
}
