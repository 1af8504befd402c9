//! Neighbours that want every CPU.

use crate::cause::{Cause, Guards, Need};
use crate::environment::Environment;
use crate::testbed::Testbed;
use untax_scenes::Engine;
use untax_scenes::Neighbour;

/// How many neighbours, each a control group of the weight of the database's own with as many busy
/// programs as there are CPUs: a group's weight counts, and not how many programs are in it.
const NEIGHBOURS: u32 = 6;

pub(super) const CAUSE: Cause = Cause {
    id: "cpu-contended",
    summary: "six neighbours in control groups beside its own, each wanting every CPU",
    mild: Some("one neighbour that wants one CPU"),
    engines: &Engine::ALL,
    left_out: &[],
    needs: &[Need::Root, Need::Tool("setpriv", "util-linux")],
    takes: None,
    environment: |engine, _| Environment::healthy(engine),
    inject: |testbed| {
        let (neighbours, cpus) = testbed.dose().of((NEIGHBOURS, Testbed::cpus()), (1, 1));
        (0..neighbours)
            .try_fold(Guards::none(), |guards, _| Ok(guards.and(Neighbour::of_cpus(cpus)?)))
    },
};
