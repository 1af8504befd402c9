//! Shared memory on pages of 4 KiB.

use crate::cause::{Cause, Guards, Need};
use crate::environment::Environment;
use untax_scenes::{Engine, Kind, Work};

/// Processes suffer most: each has page tables of its own. Fewer than are too many by themselves: 32
/// were, for two CPUs, in one check of five.
const CLIENTS: u32 = 30;

/// MariaDB's threads share theirs, and lose a few percent at most; more of them than CPUs would wait
/// for locks as long.
const THREADS: u32 = 4;

pub(super) const CAUSE: Cause = Cause {
    id: "small-pages",
    summary: "1 GiB of buffers on pages of 4 KiB rather than 2 MiB, read by 30 clients, or four of MariaDB",
    mild: None,
    engines: &[Engine::Postgres, Engine::Mysql],
    left_out: &[(
        Engine::Redis,
        "the lab does not do it to Redis: it takes no huge pages from a pool; what transparent ones do to it is thp-mode",
    )],
    needs: &[Need::Root],
    takes: None,
    environment: |engine, _| {
        environment(engine, if engine == Engine::Mysql { THREADS } else { CLIENTS })
    },
    inject: |_| Ok(Guards::none()),
};

/// Buffers of 1 GiB, full; the cause is that they are not on huge pages.
pub(super) fn environment(engine: Engine, clients: u32) -> Environment {
    let (settings, cause_settings): (untax_scenes::Settings, untax_scenes::Settings) = match engine
    {
        Engine::Postgres => (
            &[("shared_buffers", "1GB"), ("huge_pages", "on")],
            &[("shared_buffers", "1GB"), ("huge_pages", "off")],
        ),
        _ => (
            &[("innodb_buffer_pool_size", "1G"), ("large-pages", "1")],
            &[("innodb_buffer_pool_size", "1G"), ("large-pages", "0")],
        ),
    };
    Environment {
        settings,
        cause_settings: Some(cause_settings),
        work: Some(Work { kind: Kind::Reads, clients }),
        fill_mebibytes: 700,
        huge_pages: 720,
        settling_s: 8,
        ..Environment::healthy(engine)
    }
}
