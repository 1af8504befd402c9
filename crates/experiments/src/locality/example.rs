//! A result for tests.

use super::judge::{Made, judge};
use super::schema::{GuardResult, Levels, LocalityBench, SCHEMA, Scene};
use jiff::Timestamp;
use std::time::Duration;
use untax_core::timeline::{Cause, Change, Database, Kind, SCHEMA as TIMELINE, Series, Timeline};
use untax_core::{Bytes, Reading};

/// A moment, seconds after the first window began.
pub(super) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_790_000_000 + seconds).unwrap()
}

/// A timeline of steps, each of which its cause alone made: when, why, and by how many requests a second.
pub(super) fn timeline(steps: &[(i64, &str, f64)]) -> Timeline {
    let change = |(number, (at_s, id, gained)): (usize, &(i64, &str, f64))| Change {
        kind: Kind::Step,
        from: at(*at_s),
        to: at(*at_s),
        rank: number as u32 + 1,
        before_per_s: 100.0,
        after_per_s: 100.0 + gained,
        seconds: Reading::absent("of a test"),
        causes: if id.is_empty() { Vec::new() } else { vec![cause(id, *gained)] },
        unexplained_per_s: None,
        offset_per_s: None,
        also: Vec::new(),
    };
    let database = Database {
        name: "postgres@5432".to_owned(),
        engine: "postgres".to_owned(),
        untold: None,
        changes: steps.iter().enumerate().map(change).collect(),
        notes: Vec::new(),
        series: Series {
            at_s: vec![at(0).as_second() as f64, at(500).as_second() as f64],
            per_s: vec![Some(100.0), Some(200.0)],
            ..Series::default()
        },
        storage: Vec::new(),
        storage_in_words: String::new(),
    };
    Timeline {
        schema: TIMELINE.to_owned(),
        source: "a test".to_owned(),
        from: at(0),
        to: at(500),
        windows: 100,
        window_s: 5.0,
        notes: Vec::new(),
        databases: vec![database],
    }
}

fn cause(id: &str, gained_per_s: f64) -> Cause {
    Cause {
        id: id.to_owned(),
        text: format!("{id} of a test"),
        gained_per_s: Some(gained_per_s),
        parts: Vec::new(),
        facts: Vec::new(),
    }
}

fn made(id: &str, text: &str, at_s: i64, expected: &str) -> Made {
    let (id, text, expected) = (id.to_owned(), text.to_owned(), vec![expected.to_owned()]);
    let client = Some(Levels { before_per_s: 251.0, after_per_s: 510.0 });
    Made { id, text, from: at(at_s), to: at(at_s + 1), expected, client }
}

/// Four steps, of which three were found and two named rightly, and a change that nobody made.
pub(super) fn bench() -> LocalityBench {
    let mut timeline = timeline(&[
        (98, "cpu-limit", 256.76),
        (202, "data-moved", 50.0),
        (300, "cache", 70.0),
        (450, "", -40.0),
    ]);
    let first = &mut timeline.databases[0].changes[0];
    (first.before_per_s, first.after_per_s) = (250.0, 512.0);
    let steps = vec![
        made("cpu-limit", "the CPU limit is raised from 0.08 to 1.10 CPUs", 100, "cpu-limit"),
        made("tablespace-1", "tablespace 1 of 3 moves", 200, "data-moved"),
        made("tablespace-2", "tablespace 2 of 3 moves", 300, "data-moved"),
        made("tablespace-3", "tablespace 3 of 3 moves", 400, "data-moved"),
    ];
    let (steps, others) = judge(steps, &timeline, Duration::from_secs(5));
    let asked = "named < 4".to_owned();
    LocalityBench {
        schema: SCHEMA.to_owned(),
        run: "bench-locality-1".to_owned(),
        taken_at: at(500),
        cpu_model: "a CPU".to_owned(),
        kernel_release: "6.12".to_owned(),
        idle: "of a test".to_owned(),
        budget_s: 480.0,
        window_s: 5.0,
        level_s: 100.0,
        scene: Scene {
            clients: 8,
            tables: 3,
            data_bytes: Bytes::from_mib(96),
            memory_limit_bytes: Bytes::from_mib(64),
            unlimited_per_s: 4200.0,
            cpu_s_of_request: 0.000_3,
            reads_of_request: 2.3,
            cpus_before: 0.08,
            cpus_after: 1.1,
            slow_reads_per_s: 1200,
        },
        steps,
        others,
        guards: vec![GuardResult { asked, value: 2, failed: true }],
        warnings: Vec::new(),
        recording: "/var/lib/untax/bench-locality.untax".to_owned(),
        timeline,
        complete: true,
    }
}
