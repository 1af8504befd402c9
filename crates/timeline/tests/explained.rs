//! Changes of made-up databases are found, explained, and add up.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

mod common;

use common::{Noise, database, moment, with_disks};
use untax_core::timeline::{Change, Kind, Timeline};
use untax_timeline::{Moment, Recorder, read, timeline};

/// What a recording of these windows says.
fn told(moments: Vec<Moment>) -> Timeline {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("windows");
    let mut recorder = Recorder::open(&path, 64 << 20).unwrap();
    for moment in moments {
        recorder.add(moment).unwrap();
    }
    drop(recorder);
    let result = timeline(&read(&path).unwrap(), "a test");
    for change in result.databases.iter().flat_map(|database| &database.changes) {
        assert_adds_up(change);
    }
    result
}

/// The parts are the change, and so are causes, what is unexplained, and what was taken back.
fn assert_adds_up(change: &Change) {
    let Some(compared) = change.seconds.value() else { return };
    let parts: f64 = compared.parts.iter().map(|part| part.gained_per_s).sum();
    let all = parts + compared.at_once.gained_per_s;
    let gained = change.gained_per_s();
    assert!((all - gained).abs() < 1e-6 * change.after_per_s.max(1.0), "{all} of {gained}");
    let causes: f64 = change.causes.iter().filter_map(|cause| cause.gained_per_s).sum();
    let rest = change.unexplained_per_s.unwrap() + change.offset_per_s.unwrap();
    assert!((causes + rest - gained).abs() < 1e-6 * change.after_per_s.max(1.0), "{change:#?}");
}

fn only(result: &Timeline) -> &Change {
    let changes = &result.databases[0].changes;
    let [change] = &changes[..] else {
        let each = changes
            .iter()
            .map(|one| (one.kind, one.from, one.to, one.before_per_s, one.after_per_s));
        panic!("{:?}", each.collect::<Vec<_>>())
    };
    change
}

fn causes(change: &Change) -> Vec<&str> {
    change.causes.iter().map(|cause| cause.id.as_str()).collect()
}

/// Sixty windows and sixty more, of which the second half is changed.
fn halves(seed: u64, change: impl Fn(usize, f64) -> Moment) -> Vec<Moment> {
    let mut noise = Noise::new(seed);
    (0..120).map(|number| change(number, noise.factor())).collect()
}

#[test]
fn a_cpu_limit_that_is_raised_is_named_with_what_it_brought() {
    let result = told(halves(1, |number, factor| {
        let raised = number >= 60;
        let throttled = if raised { 0.000_02 } else { 0.000_2 };
        let mut values =
            database(&[("cpu", 0.000_2), ("throttled", throttled), ("client", 0.000_15)], factor);
        values.fact("cpu-limit", Some(if raised { "4 CPUs" } else { "2 CPUs" }));
        moment(number as u64, values)
    }));
    let change = only(&result);
    assert_eq!((change.kind, causes(change)), (Kind::Step, vec!["cpu-limit"]));
    let cause = &change.causes[0];
    assert_eq!(cause.text, "the CPU limit changed: from 2 CPUs to 4 CPUs");
    assert!((cause.gained_per_s.unwrap() / change.gained_per_s() - 1.0).abs() < 0.1, "{change:#?}");
    let begun = change.from.as_second() - result.from.as_second();
    assert!((begun - 600).abs() <= 20, "{begun}");
    assert!(change.unexplained_per_s.unwrap().abs() < 0.1 * change.gained_per_s());
}

#[test]
fn without_evidence_a_change_is_unexplained() {
    let result = told(halves(2, |number, factor| {
        let kernel = if number >= 60 { 0.000_05 } else { 0.000_3 };
        moment(number as u64, database(&[("cpu", 0.000_2), ("kernel", kernel)], factor))
    }));
    let change = only(&result);
    assert_eq!(causes(change), [""; 0]);
    assert!((change.unexplained_per_s.unwrap() / change.gained_per_s() - 1.0).abs() < 0.1);
}

#[test]
fn a_fact_that_does_not_matter_is_no_cause() {
    let result = told(halves(3, |number, factor| {
        let kernel = if number >= 60 { 0.000_05 } else { 0.000_3 };
        let mut values = database(&[("cpu", 0.000_2), ("kernel", kernel)], factor);
        values.fact("memory-limit", Some("4 GiB"));
        values.fact("cpu-limit", Some(if number >= 59 { "8 CPUs" } else { "4 CPUs" }));
        moment(number as u64, values)
    }));
    let change = only(&result);
    assert_eq!(causes(change), [""; 0]);
    let also: Vec<&str> = change.also.iter().map(|fact| fact.id.as_str()).collect();
    assert_eq!(also, ["cpu-limit"]);
}

#[test]
fn fewer_reads_are_a_warm_cache_and_faster_ones_are_local_data() {
    let with = |seed: u64, after: (f64, f64)| {
        told(halves(seed, |number, factor| {
            let (reads, each_s) = if number >= 60 { after } else { (0.2, 0.002) };
            let parts = [("cpu", 0.000_2), ("disk", reads * each_s)];
            moment(number as u64, with_disks(database(&parts, factor), "vda", reads, each_s))
        }))
    };
    assert_eq!(causes(only(&with(4, (0.02, 0.002)))), ["cache"]);
    let local = with(5, (0.2, 0.000_3));
    assert_eq!(causes(only(&local)), ["read-latency"]);
    assert!(only(&local).causes[0].text.contains("a read 2.0 ms → 300.0 us"), "{local:#?}");
}

#[test]
fn data_that_becomes_local_bit_by_bit_is_a_ramp() {
    let mut noise = Noise::new(6);
    let moments = (0..240).map(|number: u64| {
        let far = match number {
            0..90 => 1.0,
            90..150 => 1.0 - (number - 90) as f64 / 60.0,
            _ => 0.0,
        };
        let each_s = 0.000_2 + 0.001_8 * far;
        let parts = [("cpu", 0.000_2), ("disk", 0.2 * each_s)];
        let values = database(&parts, noise.factor());
        moment(number, with_disks(values, "vda", 0.2, each_s))
    });
    let result = told(moments.collect());
    let change = only(&result);
    assert_eq!((change.kind, causes(change)), (Kind::Ramp, vec!["read-latency"]));
}

#[test]
fn a_live_migration_is_told_by_the_clock_and_what_the_other_host_has() {
    let result = told(halves(7, |number, factor| {
        let moved = number >= 60;
        let cpu = if moved { 0.000_2 } else { 0.000_4 };
        let mut values = database(&[("cpu", cpu), ("client", 0.000_1)], factor);
        let requests = values.numbers["requests"];
        values.number("cpu_s", requests * cpu);
        let mut moment = moment(number as u64, values);
        if moved {
            moment.at += jiff::SignedDuration::from_millis(2100);
        } else {
            moment.host.number("steal_s", 4.0);
        }
        moment
    }));
    let change = only(&result);
    assert_eq!(causes(change), ["moved-host"]);
    let text = &change.causes[0].text;
    assert!(text.contains("clock behind by 0.00 s → 2.10 s"), "{text}");
    assert!(text.contains("steal 16.7 % → 0.0 %"), "{text}");
    let notes: Vec<&str> = result.notes.iter().map(|note| note.id.as_str()).collect();
    assert_eq!(notes, ["clock-step"]);
}

/// A neighbour comes, and threads wait so long for CPUs before and after.
fn neighbour_comes([before, after]: [f64; 2]) -> Timeline {
    told(halves(8, |number, factor| {
        let queue = if number >= 60 { after } else { before };
        let parts = [("cpu", 0.000_2), ("run-queue", queue)];
        let mut moment = moment(number as u64, database(&parts, factor));
        if number >= 60 {
            moment.host.number("neighbour.backup.cpu_s", 9.0);
        }
        moment
    }))
}

#[test]
fn what_makes_requests_slower_explains_none_that_got_faster() {
    let result = neighbour_comes([0.000_2, 0.000_01]);
    let change = only(&result);
    assert!(change.gained_per_s() > 0.0);
    assert_eq!(causes(change), [""; 0], "{change:#?}");
}

#[test]
fn a_neighbour_that_comes_is_named() {
    let result = neighbour_comes([0.000_01, 0.000_2]);
    let change = only(&result);
    assert_eq!(causes(change), ["neighbour"]);
    assert!(change.gained_per_s() < 0.0);
    assert!(change.causes[0].text.contains("backup 0.00 CPUs → 0.90 CPUs"), "{change:#?}");
}

#[test]
fn more_clients_are_another_load() {
    let result = told(halves(9, |number, factor| {
        let client = if number >= 60 { 0.000_1 } else { 0.001 };
        moment(number as u64, database(&[("cpu", 0.000_2), ("client", client)], factor))
    }));
    assert_eq!(causes(only(&result)), ["load"]);
}

#[test]
fn a_gap_a_restart_and_an_upgrade_are_said_and_not_guessed() {
    let mut noise = Noise::new(10);
    let moments = (0..160).map(|number: u64| {
        let late = number >= 80;
        let cpu = if late { 0.000_1 } else { 0.000_2 };
        let mut values = database(&[("cpu", cpu), ("client", 0.000_1)], noise.factor());
        if late {
            values.fact("version", Some("18.1"));
            values.fact("instance", Some("977:200"));
        }
        // An hour is missing.
        moment(if late { number + 360 } else { number }, values)
    });
    let result = told(moments.collect());
    assert!(
        result.notes.iter().any(|note| note.id == "gap" && note.text.ends_with("for 60 min")),
        "{:?}",
        result.notes
    );
    let change = only(&result);
    assert_eq!((change.kind, causes(change)), (Kind::Gap, vec!["version"]));
    let notes: Vec<&str> = result.databases[0].notes.iter().map(|note| note.id.as_str()).collect();
    assert_eq!(notes, ["restarted", "version"]);
}

#[test]
fn memory_that_moves_between_nodes_is_said_without_a_claim_about_throughput() {
    let result = told(halves(13, |number, factor| {
        let mut values = database(&[("cpu", 0.000_2), ("disk", 0.000_1)], factor);
        let near = if number >= 60 { 0.96 } else { 0.03 };
        values.number("memory-on-node.0_bytes", 1e9 * near);
        values.number("memory-on-node.1_bytes", 1e9 * (1.0 - near));
        moment(number as u64, values)
    }));
    let database = &result.databases[0];
    assert!(database.changes.is_empty(), "{:?}", database.changes);
    let [note] = &database.notes[..] else { panic!("{:?}", database.notes) };
    assert_eq!(note.id, "placement");
    assert_eq!(note.text, "memory moved between nodes: 3 % → 96 % of it is on node 0");
    assert_eq!(note.at.unwrap().as_second() - result.from.as_second(), 600);
}

#[test]
fn a_load_that_is_steady_has_no_change() {
    let result = told(halves(11, |number, factor| {
        moment(number as u64, database(&[("cpu", 0.000_2), ("disk", 0.000_1)], factor))
    }));
    assert!(result.databases[0].changes.is_empty());
    assert_eq!(result.databases[0].untold, None);
    assert!(result.notes.is_empty());
}

#[test]
fn time_that_was_not_measured_is_said_and_facts_are_named_all_the_same() {
    let result = told(halves(12, |number, factor| {
        let raised = number >= 60;
        let each = if raised { 0.000_2 } else { 0.000_4 };
        let mut values = database(&[("cpu", each)], factor);
        values.numbers.remove("time.cpu_s");
        values.fact("cpu-limit", Some(if raised { "4 CPUs" } else { "2 CPUs" }));
        moment(number as u64, values)
    }));
    let change = only(&result);
    assert!(!change.seconds.is_present());
    assert_eq!(causes(change), ["cpu-limit"]);
    assert_eq!(change.causes[0].gained_per_s, None);
    assert_eq!(change.unexplained_per_s, None);
}
