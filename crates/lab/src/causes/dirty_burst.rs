//! Limits of dirty pages that are too low for what the database writes at once.

use crate::cause::{Cause, Guards, Need};
use crate::environment::Environment;
use untax_core::Bytes;
use untax_scenes::DirtyLimits;
use untax_scenes::{Engine, Kind, Work};

/// As set for a machine that copies large files.
const BACKGROUND: Bytes = Bytes::from_mib(16);
const MOST: Bytes = Bytes::from_mib(32);

/// What the disk takes a second, with the cause and without: as a cloud volume. Nothing of a file
/// that is removed soon enough needs to be there.
const BYTES_PER_S: u64 = 20 << 20;

pub(super) const CAUSE: Cause = Cause {
    id: "dirty-burst",
    summary: "at most 32 MiB of dirty pages, under sorts that spill more and drop it again",
    mild: None,
    engines: &[Engine::Postgres],
    left_out: &[
        (
            Engine::Mysql,
            "the lab does not do it to MariaDB: InnoDB writes past the page cache (O_DIRECT), and temporary files are not on the slow disk",
        ),
        (
            Engine::Redis,
            "the lab does not do it to Redis: it has it flush each write, so that few changed pages wait",
        ),
    ],
    needs: &[Need::Root, Need::LoopDevice],
    takes: None,
    environment: |engine, _| Environment {
        work: Some(Work { kind: Kind::Spills, clients: 1 }),
        disk_bytes_per_s: Some(BYTES_PER_S),
        ..Environment::durable(engine)
    },
    inject: |_| Ok(Guards::of(DirtyLimits::set(BACKGROUND, MOST)?)),
};
