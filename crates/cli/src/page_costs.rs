//! Costs that experiments measured on this host, kept in the state directory.

use crate::kept;
use crate::state::State;
use std::path::PathBuf;
use untax_core::host::HostFacts;
use untax_core::{Calibration, PathCosts, Reading};
use untax_experiments::advise::Layer;
use untax_experiments::network::costs;
use untax_pipeline::{NO_PATH_COSTS, PageCosts};

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

    fn paths(&self, host: &HostFacts) -> Reading<PathCosts> {
        let kept = kept::latest(self.0, Layer::Network, host);
        match (kept.results.first(), kept.elsewhere) {
            (Some(bench), _) => Reading::Present(costs(bench)),
            (None, 0) => Reading::Absent(NO_PATH_COSTS.to_owned()),
            (None, _) => Reading::absent(
                "paths were measured on another processor or kernel: untax bench network",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use untax_core::Interval;
    use untax_experiments::Machine;

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

    #[test]
    fn paths_have_the_prices_of_the_last_bench_of_this_machine() {
        let folder = tempfile::tempdir().unwrap();
        let state = State::new(Some(folder.path().to_owned()));
        let mut host = HostFacts::unknown("not read");
        let paths = |host: &HostFacts| StatePageCosts(&state).paths(host);
        assert_eq!(paths(&host).why().as_deref(), Some(NO_PATH_COSTS));
        let machine = Machine::of(&host);
        let bench = serde_json::json!({
            "schema": "untax.bench.network/1", "run": "bench-network-1",
            "taken_at": "2026-01-01T00:00:00Z", "cpu_model": machine.cpu_model,
            "kernel_release": machine.kernel_release, "idle": "", "seed": 1, "budget_s": 1.0,
            "spent_s": 1.0, "baseline": "wire", "arms": [],
            "cells": [{"workload": "rr", "summary": "", "unit": "us", "better": "lower",
                "placement": "one-cpu", "cpus": {"server": [0], "client": [0]}, "state": "measured",
                "blocks": 1, "arms": [], "noise": null}],
            "aa": {"differ": 0, "cells": 0}, "complete": true,
        });
        state.save_run("bench-network-20260101T000000000Z", &bench).unwrap();
        assert_eq!(paths(&host).value().unwrap().run, "bench-network-1");
        host.kernel = Reading::Present(untax_core::host::Kernel {
            release: "7.0".to_owned(),
            arch: String::new(),
            parameters: Reading::absent("not read"),
        });
        let why = paths(&host).why().unwrap();
        assert!(why.contains("another processor or kernel"), "{why}");
    }
}
