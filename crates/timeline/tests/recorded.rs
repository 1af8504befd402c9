//! Recordings: small, whole up to where they are torn, and bounded.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test may fail"
)]

mod common;

use common::{Noise, database, moment, with_disks};
use std::fs;
use std::path::Path;
use untax_timeline::{Moment, Recorder, RecordingError, read, timeline};

const LIMIT: u64 = 64 << 20;

fn busy(number: u64, noise: &mut Noise) -> Moment {
    let mut parts = Vec::new();
    for (part, s) in
        [("cpu", 2e-4), ("run-queue", 3e-5), ("disk", 1e-4), ("wake-up", 1e-5), ("client", 1e-4)]
    {
        parts.push((part, s * noise.factor()));
    }
    let values = with_disks(
        database(&parts, noise.factor()),
        "vda",
        0.2 * noise.factor(),
        0.002 * noise.factor(),
    );
    moment(number, values)
}

fn record(path: &Path, numbers: std::ops::Range<u64>, limit: u64) {
    let mut noise = Noise::new(numbers.start);
    let mut recorder = Recorder::open(path, limit).unwrap();
    for number in numbers {
        recorder.add(busy(number, &mut noise)).unwrap();
    }
}

fn windows(path: &Path) -> u64 {
    timeline(&read(path).unwrap(), "").windows
}

fn notes(path: &Path) -> Vec<String> {
    timeline(&read(path).unwrap(), "").notes.into_iter().map(|note| note.id).collect()
}

#[test]
fn an_hour_of_a_database_takes_less_than_100_kb() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hour");
    record(&path, 0..360, LIMIT);
    let size = fs::metadata(&path).unwrap().len();
    assert!(size < 100_000, "{size} bytes");
    assert_eq!(windows(&path), 360);
}

#[test]
fn a_torn_end_loses_a_minute_and_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("torn");
    record(&path, 0..60, LIMIT);
    let whole = fs::read(&path).unwrap();
    for cut in [1, 10, 200] {
        fs::write(&path, &whole[..whole.len() - cut]).unwrap();
        assert_eq!((windows(&path), notes(&path)), (54, vec!["torn-end".to_owned()]), "{cut}");
    }
    // It goes on behind what is whole.
    record(&path, 60..66, LIMIT);
    assert_eq!((windows(&path), notes(&path)), (60, vec!["gap".to_owned()]));
}

#[test]
fn damage_costs_an_hour_at_most_and_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged");
    record(&path, 0..1080, LIMIT);
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    fs::write(&path, &bytes).unwrap();
    let left = windows(&path);
    assert!((720..1080).contains(&left), "{left}");
    assert!(notes(&path).contains(&"damaged".to_owned()));
}

#[test]
fn both_files_of_a_recording_stay_below_its_limit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long");
    let limit = 40_000;
    record(&path, 0..900, limit);
    let size = |name: &str| fs::metadata(folder.path().join(name)).unwrap().len();
    assert!(size("long") + size("long.1") <= limit, "{} and {}", size("long"), size("long.1"));
    assert!(size("long.1") > limit / 4);
    let history = read(&path).unwrap();
    let result = timeline(&history, "");
    assert!(result.windows < 900 && result.notes.is_empty(), "{:?}", result.notes);
    // Facts are known from the first window on, wherever the file begins.
    assert_eq!(result.databases[0].engine, "postgres");
}

#[test]
fn what_is_no_recording_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    for (text, newer) in
        [("my notes\n", false), ("untax.recording/2\nabc", true), ("{\"schema\":1}", false)]
    {
        fs::write(&path, text).unwrap();
        for refused in [Recorder::open(&path, LIMIT).err(), read(&path).err()] {
            let is_newer = matches!(refused.unwrap(), RecordingError::Newer(..));
            assert_eq!(is_newer, newer, "{text}");
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    fs::write(&path, "").unwrap();
    assert!(matches!(read(&path), Err(RecordingError::Empty(_))));
    assert!(matches!(read(&folder.path().join("none")), Err(RecordingError::File(..))));
    assert!(matches!(Recorder::open(folder.path(), LIMIT), Err(RecordingError::File(..))));
}

#[test]
fn a_file_has_one_recorder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shared");
    let first = Recorder::open(&path, LIMIT).unwrap();
    assert!(matches!(Recorder::open(&path, LIMIT), Err(RecordingError::Busy(_))));
    drop(first);
    Recorder::open(&path, LIMIT).unwrap();
}
