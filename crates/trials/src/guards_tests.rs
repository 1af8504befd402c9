//! Tests of the guards, on hosts that are made up.

use super::*;
use untax_host::Record;

/// A host whose machine counted so many ticks, with more files.
fn host(ticks: [u32; 3], files: &[(&str, &str)]) -> Host {
    let [busy, idle, steal] = ticks;
    let stat = format!("cpu  {busy} 0 0 {idle} 0 0 0 {steal} 0 0\n");
    let record = Record::default()
        .with_answer("clock_ticks_per_second", &Reading::Present(100_u64))
        .with_file("/proc/stat", &stat);
    let files = files.iter().fold(record, |record, (path, text)| record.with_file(path, text));
    Host::from_record(files)
}

/// The guards of a trial of ten seconds between two hosts.
fn guards(before: &Host, after: &Host, watch: &Watch, asked_s: u64) -> Vec<Guard> {
    let seconds = Duration::from_secs;
    let before = Readings::at(before, watch, seconds(5), seconds(1_000_005));
    let after = Readings::at(after, watch, seconds(15), seconds(1_000_015));
    before.guards(&after, watch, Some(seconds(asked_s)))
}

fn exceeded(guards: &[Guard]) -> Vec<&'static str> {
    guards.iter().filter(|guard| guard.is_exceeded()).map(|guard| guard.id.id()).collect()
}

#[test]
fn a_quiet_machine_spoils_nothing() {
    let watch = Watch { spare: vec![Resource::Cpu], ..Watch::default() };
    let made = guards(&host([0; 3], &[]), &host([1000, 1000, 20], &[]), &watch, 10);
    assert_eq!(exceeded(&made), Vec::<&str>::new());
    assert_eq!(made.len(), 4);
    assert!(made.iter().all(|guard| guard.value.is_present()), "{made:?}");
}

#[test]
fn steal_above_a_tenth_of_the_cpu_time_spoils() {
    let made = |steal| {
        let watch = Watch::default();
        guards(&host([0; 3], &[]), &host([1000, 1000 - steal, steal], &[]), &watch, 10)
    };
    assert_eq!(exceeded(&made(200)), Vec::<&str>::new());
    assert_eq!(exceeded(&made(201)), ["steal"]);
    let stricter = Watch { most_steal: 0.02, ..Watch::default() };
    let few = guards(&host([0; 3], &[]), &host([1000, 940, 60], &[]), &stricter, 10);
    assert_eq!(exceeded(&few), ["steal"]);
}

#[test]
fn a_trial_of_few_ticks_does_not_tell_of_steal() {
    let made = guards(&host([0; 3], &[]), &host([5, 5, 5], &[]), &Watch::default(), 10);
    assert_eq!(exceeded(&made), Vec::<&str>::new());
    assert!(made[0].value.why().is_some());
}

#[test]
fn a_machine_that_cannot_be_read_spoils_nothing_and_says_so() {
    let nothing = Host::from_record(Record::default());
    let watch = Watch {
        groups: vec!["/sys/fs/cgroup/load".to_owned()],
        spare: vec![
            Resource::Cpu,
            Resource::Link("eth0".to_owned()),
            Resource::Disk("vda".to_owned()),
        ],
        ..Watch::default()
    };
    let made = guards(&nothing, &nothing, &watch, 10);
    assert_eq!(exceeded(&made), Vec::<&str>::new());
    assert_eq!(made.iter().filter(|guard| guard.value.why().is_some()).count(), 5);
}

#[test]
fn a_throttled_group_spoils_by_either_version_of_control_groups() {
    let group = "/sys/fs/cgroup/load";
    let watch = Watch { groups: vec![group.to_owned()], ..Watch::default() };
    let path = format!("{group}/cpu.stat");
    let at = |text: &str| host([1000, 1000, 0], &[(&path, text)]);
    for (none, few, many) in [
        ("throttled_usec 7", "throttled_usec 400007", "throttled_usec 600007"),
        ("throttled_time 7", "throttled_time 400000007", "throttled_time 600000007"),
    ] {
        assert_eq!(exceeded(&guards(&at(none), &at(few), &watch, 10)), Vec::<&str>::new());
        let made = guards(&at(none), &at(many), &watch, 10);
        assert_eq!(exceeded(&made), ["group-throttled"]);
        let guard = made.iter().find(|guard| guard.is_exceeded()).unwrap();
        assert_eq!(guard.to_string(), format!("group-throttled of {group} 0.06, more than 0.05"));
    }
}

#[test]
fn a_full_link_and_a_busy_disk_and_busy_cpus_spoil_where_they_must_be_spared() {
    let link = |sent: &str| {
        [
            ("/sys/class/net/eth0/speed", "1000\n".to_owned()),
            ("/sys/class/net/eth0/statistics/rx_bytes", "5\n".to_owned()),
            ("/sys/class/net/eth0/statistics/tx_bytes", sent.to_owned()),
        ]
    };
    let disk = |busy_ms: u32| format!("253 0 vda 1 1 1 1 1 1 1 1 0 {busy_ms} 1\n");
    let at = |ticks, sent: &str, busy_ms| {
        let mut files = link(sent).to_vec();
        files.push(("/proc/diskstats", disk(busy_ms)));
        let files: Vec<(&str, &str)> = files.iter().map(|(p, text)| (*p, text.as_str())).collect();
        host(ticks, &files)
    };
    let spare =
        vec![Resource::Cpu, Resource::Link("eth0".to_owned()), Resource::Disk("vda".to_owned())];
    let watch = Watch { spare, ..Watch::default() };
    let before = at([0; 3], "0", 0);
    // 1 Gbit/s for ten seconds are 1.25 GB.
    let idle = guards(&before, &at([1800, 200, 0], "1000000000", 9000), &watch, 10);
    assert_eq!(exceeded(&idle), Vec::<&str>::new());
    let full = guards(&before, &at([1950, 50, 0], "1200000000", 9900), &watch, 10);
    assert_eq!(exceeded(&full), ["cpu-saturated", "link-saturated", "disk-saturated"]);
    let unwatched = guards(&before, &at([1950, 50, 0], "1200000000", 9900), &Watch::default(), 10);
    assert_eq!(exceeded(&unwatched), Vec::<&str>::new());
}

#[test]
fn a_clock_that_was_set_and_a_wrong_length_spoil() {
    let watch = Watch::default();
    let quiet = host([1000, 1000, 0], &[]);
    let seconds = Duration::from_secs;
    let before = Readings::at(&quiet, &watch, seconds(0), seconds(1_000_000));
    let set = Readings::at(&quiet, &watch, seconds(10), seconds(1_000_011));
    assert_eq!(exceeded(&before.guards(&set, &watch, None)), ["clock-jump"]);
    let asked = |asked_s| guards(&quiet, &quiet, &watch, asked_s);
    assert_eq!(exceeded(&asked(4)), ["trial-length"]);
    assert_eq!(exceeded(&asked(21)), ["trial-length"]);
    assert_eq!(exceeded(&asked(5)), Vec::<&str>::new());
    // A sleep of 20 ms may take three times as long without a fault of the trial.
    let later = Duration::from_millis(60);
    let short = Readings::at(&quiet, &watch, later, seconds(1_000_000) + later);
    let asked = Some(Duration::from_millis(20));
    assert_eq!(exceeded(&before.guards(&short, &watch, asked)), Vec::<&str>::new());
}
