//! How many server processes and threads a database starts, and how many of them serve clients.

use untax_core::window::Pair;

/// How many server processes, or threads, were started in the window.
pub fn started(pair: &Pair) -> f64 {
    pair.activity.value().map_or(0.0, |activity| activity.started as f64)
}

/// The same for each second that was traced.
pub fn started_per_s(pair: &Pair) -> f64 {
    let traced_s = pair.activity.value().map_or(pair.seconds, |activity| activity.window_s.0);
    started(pair) / traced_s.max(f64::EPSILON)
}

/// How many of these serve nobody: workers of parallel queries, for the most part.
pub fn workers_started(pair: &Pair) -> f64 {
    started(pair) * (1.0 - serving_part(pair))
}

/// The part (0..1) of these that serves a client, as far as the server tells: workers of parallel queries
/// are started like any other process.
pub fn serving_part(pair: &Pair) -> f64 {
    let sessions = pair.told_growth("sessions").into_value();
    sessions.map_or(1.0, |sessions| (sessions / started(pair).max(1.0)).min(1.0))
}
