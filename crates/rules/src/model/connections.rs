//! What clients that connect again and again cost a database.

use crate::model::accounting::{Demand, neighbours_part};
use crate::model::base_pages;
use crate::model::cold_caches::catalog_share;
use crate::model::event_loop::{connection_call_share, connection_own_share};
use crate::model::process_starts::serving_part;
use crate::model::stall::{Stall, WORTH};
use untax_core::activity::{Doing, MANY_CONNECTIONS_PER_S};
use untax_core::database::Model;
use untax_core::window::Pair;
use untax_core::{Interval, Reading, Window};

/// The part of the first three requests of a thread's new client that colder caches take: with it the
/// tax is what the server's time on CPU for each connection says, with and without. Of MariaDB 10.11 that
/// took 0.4 with one request and 0.2 with eight.
const COLD: f64 = 0.3;

/// Where requests are told by when they are waited for, the way to the first is not known of threads with
/// more of them for each connection than this: one, and the word that ends the connection, which
/// MariaDB counts too.
const MOST_TOLD: f64 = 2.2;

const HIDDEN: &str = "a thread that finds a request there does not wait for it; this kernel cannot tell \
    several requests of one connection from its beginning (6.3 and later can)";

/// What connections cost, when it is worth a finding.
pub fn cost(window: &Window, pair: &Pair) -> Reading<Option<Stall>> {
    // Processes and threads have a beginning and an end for each client, a loop has not. What
    // neighbours took of its waiting is no part of what its calls are charged.
    if pair.end.model == Model::Loop {
        return of_loop(window, pair);
    }
    let told = pair.activity.value().is_some_and(|activity| activity.requests_seen);
    let filling = match pair.end.model {
        Model::Thread if told => [COLD; 2],
        // A thread that finds the next request there already serves several before it waits for one,
        // and all of them would count as the way to the first.
        Model::Thread if counts(pair).is_some_and(|c| c.each > MOST_TOLD) => {
            return Reading::Absent(HIDDEN.to_owned());
        }
        // Who is not told may fill all of them.
        _ => catalog_share(pair).map_or([0.0, 1.0], |filling| [filling.of_first; 2]),
    };
    Stall::of_connections(window, pair, filling, serving_part(pair)).map(|stall| {
        let stall = stall?;
        let left = (stall.share.mid - charged_elsewhere(window, pair, stall.share.mid)).max(0.0);
        let part = if stall.share.mid > 0.0 { left / stall.share.mid } else { 0.0 };
        let stall = stall.times(part);
        // A process that finds each request there never waits for one: then nothing of it was charged.
        let unseen = pair.end.model == Model::Process && !told;
        let low = stall.share.low;
        let stall = if unseen { stall.with_bounds(low, 1.0) } else { stall };
        Some(stall).filter(|stall| stall.share.mid >= WORTH)
    })
}

/// The same of an event loop.
fn of_loop(window: &Window, pair: &Pair) -> Reading<Option<Stall>> {
    // Without the counts that tell it may be none, or all that is left.
    let own = connection_own_share(pair).unwrap_or(Interval::new(0.0, 0.0, 1.0));
    let calls = connection_call_share(pair);
    let taken = calls.map(|calls| calls.plus(own).clamp(0.0, 1.0));
    // Clients make as many system calls for it; what their own programs take nobody knows.
    let of_calls =
        calls.zip(taken).map_or(0.0, |(calls, taken)| calls.mid / taken.mid.max(f64::EPSILON));
    Stall::of_calls(window, pair, taken).map(|stall| {
        let stall = stall.filter(|stall| stall.share.mid >= WORTH)?;
        let of_clients = stall.share.mid * of_calls;
        Some(stall.with_clients_part(of_clients))
    })
}

/// Whether it takes samples to tell, and too few were taken.
pub fn is_unsampled(pair: &Pair) -> bool {
    pair.end.model == Model::Loop && connection_call_share(pair).is_none()
}

/// What other rules charge of the time that connections took: faults on small pages, and waiting
/// for CPUs that neighbours had.
fn charged_elsewhere(window: &Window, pair: &Pair, share: f64) -> f64 {
    let contended = Stall::of(window, pair, |spent| spent.doing == Doing::Contended);
    let contended = contended.into_value().flatten().map_or(0.0, |stall| stall.share.mid);
    // What neighbours had of its waiting was not stolen.
    let part = Demand::of(window, pair).into_value().map_or(0.0, |demand| {
        (neighbours_part(window, pair, &demand) / demand.unstolen_part()).min(1.0)
    });
    base_pages::share_of_faults(window, pair) + share * contended * part
}

/// Connections and requests of a window, when so many connect that somebody may suffer.
pub fn counts<'a>(pair: &Pair<'a>) -> Option<Counts<'a>> {
    let connections = pair.end.traits.connections_counter.as_deref()?;
    let requests = pair.end.traits.requests_counter.as_deref()?;
    // An engine that is not asked, or refuses, has said so with its settings already.
    let grown = |name: &str| pair.told_growth(name).into_value();
    let (connected, asked) = (grown(connections)?, grown(requests)?);
    let per_s = connected / pair.seconds.max(f64::EPSILON);
    if per_s < MANY_CONNECTIONS_PER_S {
        return None;
    }
    Some(Counts { per_s, each: asked / connected, connections, requests })
}

/// Connections and requests of a window.
pub struct Counts<'a> {
    /// Connections each second.
    pub per_s: f64,
    /// Requests of each connection.
    pub each: f64,
    /// What the engine calls its count of connections.
    pub connections: &'a str,
    /// What the engine calls its count of requests.
    pub requests: &'a str,
}

/// The share of its time on CPU that a loop is charged for connections' system calls; `None` inside when it
/// is charged nothing. A window whose samples are too few to tell is a gap.
pub fn charged_to_loop(window: &Window, pair: &Pair) -> Reading<Option<Interval>> {
    if pair.end.model != Model::Loop || counts(pair).is_none() {
        return Reading::Present(None);
    }
    let calls = connection_call_share(pair);
    if calls.is_none() && has_samples(pair) {
        return Reading::absent(TOO_FEW);
    }
    let charged = cost(window, pair).into_value().flatten();
    Reading::Present(charged.and(calls))
}

const TOO_FEW: &str = "its connections were sampled too seldom; use a longer --window";

/// Whether system calls were sampled, however seldom.
fn has_samples(pair: &Pair) -> bool {
    let slices = pair.activity.value().into_iter().flat_map(|activity| &activity.slices);
    slices.filter_map(|slice| slice.sampled).any(|sampled| sampled.calling.is_some())
}
