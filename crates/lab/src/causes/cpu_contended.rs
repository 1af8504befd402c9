//! Neighbours that want every CPU.

use super::{Cause, Injected, Need, Plan};
use crate::scene::Scene;
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
    plan: |engine, _| Plan::calm(engine),
    inject: |scene| {
        let (neighbours, cpus) = scene.dose().of((NEIGHBOURS, Scene::cpus()), (1, 1));
        (0..neighbours).try_fold(Injected::nothing(), |injected, _| {
            Ok(injected.and(Neighbour::spinning(cpus)?))
        })
    },
};
