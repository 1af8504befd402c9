//! The clients of a database on this machine.

use crate::model::accounting::others;
use crate::model::cpus;
use std::ops::Add;
use untax_core::window::{Other, Pair};
use untax_core::{Activity, Window};

/// From this part of the busiest client's time on CPU on, a client carries the load.
const ASKS: f64 = 0.1;

/// What they compute, and what bounds that.
pub struct Clients {
    /// Their time on CPU, s.
    pub cpu_s: f64,
    /// As much of it as is on CPUs that the database may use.
    pub here_s: f64,
    /// The most that their threads could have had, s, when that is known.
    pub room_s: Option<f64>,
    /// The part (0..1) of the time that they had work in which they waited for a CPU, when that is
    /// known.
    pub waited: Option<f64>,
}

impl Clients {
    /// Those that were traced, as they asked for something.
    pub fn of(window: &Window, pair: &Pair, activity: &Activity) -> Self {
        let is_client = |other: &&Other| activity.clients.contains(&other.pid);
        let clients = || others(window, pair).filter(is_client);
        let cpu_s = clients().map(|other| other.cpu_s.0).fold(0.0, f64::add);
        let here = |other: &Other| other.cpu_s.0 * cpus::overlap_part(window, pair, other);
        let here_s = clients().map(here).fold(0.0, f64::add);
        let busiest_s = clients().map(|other| other.cpu_s.0).fold(0.0, f64::max);
        // Those that have others ask, or ask now and then, take nothing off them.
        let asks = |other: &&Other| other.cpu_s.0 >= ASKS * busiest_s;
        let room_s = clients().filter(asks).map(|o| o.room_s(pair.seconds)).sum();
        let waited_s: Option<f64> =
            clients().filter(asks).map(|other| Some(other.waited_s?.0)).sum();
        let waited = waited_s.map(|waited_s| waited_s / (waited_s + cpu_s).max(f64::MIN_POSITIVE));
        Self { cpu_s, here_s, room_s, waited }
    }

    /// By what factor throughput can grow until their threads compute all the time.
    pub fn room(&self) -> f64 {
        let room_s = self.room_s.filter(|_| self.cpu_s > 0.0);
        room_s.map_or(f64::INFINITY, |room_s| room_s / self.cpu_s)
    }
}
