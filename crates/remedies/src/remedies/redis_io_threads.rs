//! `redis-io-threads`: more than one thread of Redis for reading and writing sockets.

use crate::case::Case;
use crate::remedies::directives::knows;
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
    let task = |database: &untax_core::Database| {
        // redis.conf: leave at least one core to everything else.
        let threads = case.cpus(database)?.saturating_sub(1).clamp(2, MOST);
        Some(Task {
            remedy: REMEDY.id.to_owned(),
            summary: format!("{}: io-threads {threads} in redis.conf, restart it", told(database)),
            databases: vec![database.id.clone()],
            file: Some((
                file_name(database, "io-threads.conf"),
                format!("# For redis.conf; takes effect at a restart.\nio-threads {threads}\n"),
            )),
        })
    };
    let knowing = case.concerned().filter(|database| knows(database, "io-threads"));
    Draft { tasks: knowing.filter_map(task).collect(), ..Draft::default() }
}
