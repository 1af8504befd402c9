//! Files of recorded windows: JSON, compressed.

use anyhow::Context;
use std::fs::File;
use std::path::Path;
use untax_core::truth::Recorded;

/// What the scenes start. All other programs of the machine are no part of a recording.
const OF_SCENES: [&str; 15] = [
    "postgres",
    "mariadbd",
    "mysqld",
    "redis-server",
    "valkey-server",
    "pgbench",
    "sysbench",
    "redis-benchmark",
    "valkey-benchma",
    "redis-benchmar",
    "pgbouncer",
    "dd",
    "sh",
    "sleep",
    "untax",
];

/// Whether a program of that name belongs to a scene.
pub fn is_of_scene(name: &str) -> bool {
    OF_SCENES.contains(&name)
}

/// Writes a recording.
pub fn write(recorded: &Recorded, path: &Path) -> anyhow::Result<()> {
    let write = || -> anyhow::Result<()> {
        let file = File::create(path)?;
        let mut zipped = flate2::write::GzEncoder::new(file, flate2::Compression::best());
        serde_json::to_writer(&mut zipped, recorded)?;
        zipped.finish()?;
        Ok(())
    };
    write().with_context(|| format!("cannot write {}; choose another --record", path.display()))
}
