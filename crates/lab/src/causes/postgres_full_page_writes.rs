//! Whole pages in the journal after every checkpoint.

use crate::cause::{Cause, Guards, Need};
use crate::environment::Environment;
use untax_scenes::Engine;
use untax_scenes::Settings;

/// What the disk takes a second, with the cause and without: as a cloud volume.
const BYTES_PER_S: u64 = 24 << 20;

/// Settings with which checkpoints come every second, and every few.
const OFTEN: Settings = &[
    ("shared_buffers", "256MB"),
    ("huge_pages", "on"),
    ("max_wal_size", "32MB"),
    ("min_wal_size", "32MB"),
    ("checkpoint_timeout", "30s"),
];
const SELDOM: Settings = &[
    ("shared_buffers", "256MB"),
    ("huge_pages", "on"),
    ("max_wal_size", "96MB"),
    ("min_wal_size", "96MB"),
    ("checkpoint_timeout", "30s"),
];

pub(super) const CAUSE: Cause = Cause {
    id: "postgres-full-page-writes",
    summary: "checkpoints so often that most changes write their whole page to the journal",
    mild: Some("checkpoints a few seconds apart"),
    engines: &[Engine::Postgres],
    left_out: &[
        (
            Engine::Mysql,
            "MariaDB does not suffer from it: its log gets no images of pages; the doublewrite buffer mends torn ones",
        ),
        (Engine::Redis, "Redis does not suffer from it: its log holds commands and no pages"),
    ],
    needs: &[Need::Root, Need::LoopDevice],
    takes: None,
    environment: |engine, dose| Environment {
        fill_mebibytes: 60,
        // Every page was written whole once since the restart.
        settling_s: 5,
        disk_bytes_per_s: Some(BYTES_PER_S),
        settings: &[
            ("shared_buffers", "256MB"),
            ("huge_pages", "on"),
            ("max_wal_size", "8GB"),
            ("checkpoint_timeout", "1h"),
        ],
        cause_settings: Some(dose.of(OFTEN, SELDOM)),
        ..Environment::durable(engine)
    },
    inject: |_| Ok(Guards::none()),
};
