//! `redis-io-threads`: more than one thread of Redis for reading and writing sockets.

use crate::case::Case;
use crate::remedy::{Draft, Remedy, file_name, told};
use untax_core::plan::Task;

pub const REMEDY: Remedy = Remedy {
    id: "redis-io-threads",
    summary: "threads of Redis for its sockets",
    answers: &["redis-io-threads"],
    plan,
};

/// The most that helps, as redis.conf says itself.
const MOST: u32 = 8;

fn plan(case: &Case) -> Draft {
    let cpus = case.snapshot.host.cpu.value().map_or(2, |cpu| cpu.logical);
    // redis.conf: leave at least one core to everything else.
    let threads = cpus.saturating_sub(1).clamp(2, MOST);
    let task = |database: &untax_core::Database| Task {
        remedy: REMEDY.id.to_owned(),
        summary: format!("{}: io-threads {threads} in redis.conf, restart it", told(database)),
        databases: vec![database.id.clone()],
        file: Some((
            file_name(database, "io-threads.conf"),
            format!("# For redis.conf; takes effect at a restart.\nio-threads {threads}\n"),
        )),
    };
    Draft { tasks: case.concerned().map(task).collect(), ..Draft::default() }
}
