//! Writes the recording of a made-up day: `cargo run -p untax-timeline --example day -- FILE [WINDOWS] [DATABASES]`.
//!
//! 8,640 windows of ten seconds, four databases, noise of 3 %, and in each database a step at noon.

#[path = "../tests/common/mod.rs"]
mod common;

use common::{Noise, database, moment, with_disks};
use std::path::Path;
use untax_timeline::{Recorder, RecordingError};

fn main() -> Result<(), RecordingError> {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |at: usize, otherwise: u64| {
        arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(otherwise)
    };
    let path = arguments.get(1).map_or("day.untax", String::as_str);
    let (windows, databases) = (number(2, 8640), number(3, 4));
    let mut recorder = Recorder::open(Path::new(path), 1 << 30)?;
    let mut noise = Noise::new(1);
    for at in 0..windows {
        let disk = if at < windows / 2 { 4e-4 } else { 1e-4 };
        let mut one = || {
            let parts = [
                ("cpu", 2e-4),
                ("run-queue", 3e-5),
                ("disk", disk),
                ("wake-up", 1e-5),
                ("client", 1e-4),
            ];
            let parts = parts.map(|(part, each_s)| (part, each_s * noise.factor()));
            with_disks(database(&parts, noise.factor()), "vda", 0.2, disk / 0.2)
        };
        let mut window = moment(at, one());
        for number in 1..databases {
            window.databases.insert(format!("postgres@{}", 5432 + number), one());
        }
        recorder.add(window)?;
    }
    recorder.write()
}
