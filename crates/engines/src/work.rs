//! How much work a server has done so far, by its own count.

use crate::ask::Asker;
use crate::catalogue::by_id;
use untax_core::Reading::{self, Absent, Present};
use untax_host::Host;

/// The count that all clients raise by whole requests, where a server tells it.
const REQUESTS: &str = "transactions";

/// What a server counts of its work since it started: transactions where it tells them, otherwise accesses to
/// cached data. Ratios of two rates are what it is for: its unit is the engine's own.
pub fn count_work(host: &Host, asker: &Asker, engine: &str, pid: u32) -> Reading<u64> {
    let Some(engine) = by_id(engine) else { return Absent(format!("no engine {engine} is known")) };
    let silent = || Absent(format!("{} is not asked for what it counts", engine.summary));
    let Some(question) = asker.start(host, engine, pid) else { return silent() };
    question.finish().and_then(|answer| match answer.counts.get(REQUESTS) {
        Some(requests) => Present(*requests),
        None => answer.accesses,
    })
}
