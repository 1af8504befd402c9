//! Waiting for CPUs that neighbours have: what it comes to, whoever of them is charged.

use crate::model::accounting::{Demand, neighbours_part};
use crate::model::stall::{Stall, WORTH};
use untax_core::activity::Cause;
use untax_core::window::Pair;
use untax_core::{Reading, Window};

/// Waiting for CPUs.
pub struct Contention {
    /// All of it.
    pub stall: Stall,
    /// The part (0..1) of it that is for neighbours.
    pub part: f64,
    /// How long these had the database's CPUs, s.
    pub taken_s: f64,
}

impl Contention {
    /// That of one database; `None` inside when it hardly waited for CPUs.
    pub fn of(window: &Window, pair: &Pair) -> Reading<Option<Self>> {
        let contended =
            Stall::of(window, pair, |spent| spent.goes_to(Cause::RunQueue, pair.end.model));
        contended.and_then(|stall| {
            let Some(stall) = stall.filter(|stall| stall.share.mid >= WORTH) else {
                return Reading::Present(None);
            };
            Demand::of(window, pair).map(|demand| {
                let part = neighbours_part(window, pair, &demand);
                // Where each thread can have a CPU of its own, none waits but for these.
                let taken_s = part * demand.occupied_s();
                let taken = taken_s / pair.seconds;
                let alone = stall.has_cpu_for_each_client(pair);
                Some(Self { stall, part: if alone { taken.min(1.0) } else { part }, taken_s })
            })
        })
    }
}
