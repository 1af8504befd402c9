//! The way between a database and its clients, and which cell of `bench network` is like it.

use super::basis::Basis;
use super::kept::Kept;
use super::nearest::{Key, Nearest, nearest};
use super::needs;
use crate::platform::{Arm, Placement};
use untax_core::advice::Needs;
use untax_core::check::Checked;
use untax_core::network::{DatabaseNetwork, path_like};
use untax_core::window::Pair;
use untax_core::{Reading, Window};

/// The arms of clients on the same host, and on another one whose network is the host's own.
const SAME_HOST: &str = "loopback";
const OTHER_HOST: &str = "wire";

/// The cell that times round trips.
const ROUND_TRIP: &str = "rr";

/// The arm that is like the way of a database's packets.
pub(super) fn now(window: &Window, pair: &Pair, kept: &Kept) -> Reading<String> {
    pair.end.network.as_ref().and_then(|network| {
        if network.own_namespace {
            return of_namespace(window, kept);
        }
        network.clients.as_ref().and_then(|clients| {
            let clients = clients.iter().map(|client| client.is_local);
            match (clients.clone().any(|local| local), clients.clone().any(|local| !local)) {
                (true, false) => Reading::Present(SAME_HOST.to_owned()),
                (false, true) => Reading::Present(OTHER_HOST.to_owned()),
                (true, true) => Reading::absent("it has clients here and on other hosts"),
                (false, false) => Reading::absent(NO_CLIENTS),
            }
        })
    })
}

const NO_CLIENTS: &str =
    "no client was connected over TCP: Unix sockets pass no path of the network";

/// The arm like a namespace's way out: of several with services the one whose number is nearest to the node's.
fn of_namespace(window: &Window, kept: &Kept) -> Reading<String> {
    let host = &window.end.host;
    let overlays = host.links.value().map(|links| {
        let before = window.start.host.links.value();
        links.carrying_since(before)
    });
    let services = host.cluster_network.value().and_then(|cluster| cluster.services.value());
    let path = path_like(&overlays.unwrap_or_default(), services);
    let rules = services.and_then(|services| services.rules.value()).map_or(1, |rules| *rules);
    let of_series = |arm: &&Arm| arm.step.as_ref().is_some_and(|step| step.series == path);
    let away = |arm: &&Arm| {
        let number = arm.step.as_ref().map_or(1, |step| step.number);
        u64::from(number).abs_diff(rules)
    };
    let arms = || kept.results.iter().flat_map(|bench| &bench.arms);
    let arm =
        arms().find(|arm| arm.id == path).or_else(|| arms().filter(of_series).min_by_key(away));
    match arm {
        Some(arm) => Reading::Present(arm.id.clone()),
        None => Reading::Absent(format!("its way is like {path}, which was not measured here")),
    }
}

/// What the prices of paths stand on.
pub(super) fn basis(kept: &Kept, pair: &Pair, checked: Option<&Checked>, needs: &Needs) -> Basis {
    if pair.end.network.value().is_some_and(has_no_clients) {
        return Basis::Unneeded(format!("No path to choose: {NO_CLIENTS}."));
    }
    if let Some(Nearest { key, note }) = nearest(kept, pair.end, needs) {
        return Basis::Cell { key, note };
    }
    round_trips(pair, checked).unwrap_or_else(Basis::Unknown)
}

fn has_no_clients(network: &DatabaseNetwork) -> bool {
    network.clients.value().is_some_and(Vec::is_empty)
}

/// Round trips of a request times the CPU time of one, where no cell is of its engine.
fn round_trips(pair: &Pair, checked: Option<&Checked>) -> Result<Basis, String> {
    let why = |what: &str| {
        format!(
            "no {} was measured over paths here, and {what}; untax bench network --list names the work there is",
            pair.end.product
        )
    };
    let checked = checked.ok_or_else(|| why("the check does not have it"))?;
    let trips = match &checked.network.round_trips_per_request {
        Reading::Present(trips) => *trips,
        gap => return Err(why(&gap.why().unwrap_or_default())),
    };
    let cpu_us = match needs::cpu_us_per_request(pair) {
        Reading::Present(us) => us,
        gap => return Err(why(&gap.why().unwrap_or_default())),
    };
    let key = Key { workload: ROUND_TRIP.to_owned(), placement: Placement::OneCpu };
    Ok(Basis::RoundTrips { key, trips, cpu_us })
}
