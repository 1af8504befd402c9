//! A memory limit below what is being written.

use crate::cause::{Cause, Guards, Need};
use crate::environment::Environment;
use untax_scenes::{Engine, Kind, Work};

/// What is left to eight connections and the page cache. The clean part of it goes cheaply; what
/// costs is that changed pages must be written before they can go.
const LEFT_BYTES: u64 = 96 << 20;
const MILD_BYTES: u64 = 320 << 20;

/// What the disk takes a second, with the cause and without.
const BYTES_PER_S: u64 = 40 << 20;

pub(super) const CAUSE: Cause = Cause {
    id: "reclaim-stall",
    summary: "a memory limit that leaves 96 MiB to data of 600 MiB that clients change, or read",
    mild: Some("a limit that leaves 320 MiB"),
    engines: &[Engine::Postgres, Engine::Mysql],
    left_out: &[(
        Engine::Redis,
        "the lab does not do it to Redis: its data are no page cache that could be freed, and a limit below them gets it killed",
    )],
    needs: &[Need::Root, Need::LoopDevice],
    takes: None,
    environment: |engine, _| environment(engine),
    inject: |testbed| {
        let kept = testbed.group().unreclaimable_bytes()?;
        let left = testbed.dose().of(LEFT_BYTES, MILD_BYTES);
        Ok(Guards::of(testbed.group().limit_memory(kept + left)?))
    },
};

/// Data in the page cache rather than in the server's own memory.
pub(super) fn environment(engine: Engine) -> Environment {
    let settings: untax_scenes::Settings = match engine {
        Engine::Mysql => &[
            ("innodb_buffer_pool_size", "32M"),
            ("large-pages", "1"),
            ("innodb_flush_method", "fsync"),
        ],
        _ => &[("shared_buffers", "16MB"), ("huge_pages", "on")],
    };
    Environment {
        settings,
        // MariaDB's changes wait for the disk with a limit and without; its reads do not.
        work: Some(Work {
            kind: if engine == Engine::Mysql { Kind::Reads } else { Kind::Writes },
            clients: 8,
        }),
        fill_mebibytes: 600,
        disk_mebibytes: Some(4096),
        disk_bytes_per_s: Some(BYTES_PER_S),
        ..Environment::healthy(engine)
    }
}
