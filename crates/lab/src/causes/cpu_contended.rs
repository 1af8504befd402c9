//! Neighbours that want every CPU.

use super::{Cause, Injected, Need, Plan};
use crate::neighbour::Neighbour;
use crate::scene::Scene;
use crate::work::Engine;

/// How many neighbours, each a control group of the weight of the database's own with as many busy
/// programs as there are CPUs: a group's weight counts, and not how many programs are in it.
const NEIGHBOURS: u32 = 6;

pub(super) const CAUSE: Cause = Cause {
    id: "cpu-contended",
    summary: "six neighbours in control groups beside its own, each wanting every CPU",
    engines: &Engine::ALL,
    needs: &[Need::Root, Need::Tool("setpriv", "util-linux")],
    takes: None,
    plan: Plan::calm,
    inject: |_| {
        (0..NEIGHBOURS).try_fold(Injected::nothing(), |injected, _| {
            Ok(injected.and(Neighbour::spinning(Scene::cpus())?))
        })
    },
};
