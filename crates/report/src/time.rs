//! Where a database's time went, in one line.

use crate::format::{self, THIN};
use untax_core::Seconds;
use untax_core::activity::{Cause, Piece};
use untax_core::check::{Checked, TimeShares};
use untax_core::ledger::{Account, Entry};
use untax_core::pressure::Pressure;

/// A database that was asked nothing.
pub const IDLE: &str = "idle: no thread that serves clients was active";

/// Less than this share is nothing to draw a line for.
pub const WORTH: f64 = 0.005;

/// The parts of the active time, in one order for all pictures of it.
pub const PARTS: [&str; 8] = [
    "on CPU",
    "waiting for a CPU",
    "waking a CPU",
    "stopped by a CPU limit",
    "waiting for disks",
    "freeing memory",
    "waiting for locks",
    "sending",
];

/// The share of each in the active time; `None` when it was not traced or there was none.
pub fn shares(time: &TimeShares) -> Option<[f64; 8]> {
    let active = time.active_s.value().filter(|active| active.0 > 0.0)?;
    let seconds = |reading: &untax_core::Reading<Seconds>| reading.value().map_or(0.0, |s| s.0);
    let throttled = seconds(&time.throttled_s);
    let waking = seconds(&time.wake_up_s);
    let all = [
        seconds(&time.on_cpu_s),
        (seconds(&time.runnable_s) - throttled - waking).max(0.0),
        waking,
        throttled,
        seconds(&time.disk_s),
        seconds(&time.reclaim_s),
        seconds(&time.lock_s),
        seconds(&time.network_s),
    ];
    Some(all.map(|part| part / active.0))
}

/// Whether its threads are known to have done nothing.
pub fn is_idle(time: &TimeShares) -> bool {
    time.active_s.value().is_some_and(|active| active.0 <= 0.0)
}

/// The parts of a piece of the window, in the order of [`PARTS`].
pub fn of_piece(piece: &Piece) -> [Seconds; 8] {
    [
        piece.on_cpu_s,
        piece.contended_s,
        piece.wake_up_s,
        piece.throttled_s,
        piece.disk_s,
        piece.reclaim_s,
        piece.lock_s,
        piece.network_s,
    ]
}

/// The parts that are worth a word, the largest first.
pub fn largest_parts(shares: &[f64; 8]) -> Vec<(&'static str, f64)> {
    let mut parts: Vec<_> = PARTS.into_iter().zip(*shares).collect();
    parts.retain(|(_, share)| *share >= WORTH);
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    parts
}

/// The same of a database's time; empty when it was not traced or there was none.
pub fn parts(time: &TimeShares) -> Vec<(&'static str, f64)> {
    shares(time).as_ref().map(largest_parts).unwrap_or_default()
}

/// The same in words, in segments of a line; where nothing was traced, what tasks of its group or of the
/// machine waited for.
pub fn line(db: &Checked) -> Vec<String> {
    if !db.time.active_s.is_present() {
        return db.pressure.value().map(pressure_segments).unwrap_or_default();
    }
    let (parts, unknown) = (parts(&db.time), unknown(&db.time));
    if is_idle(&db.time) && unknown.is_none() {
        return vec![IDLE.to_owned()];
    }
    let is_worth = !parts.is_empty() || unknown.is_some();
    let Some(active) = db.time.active_s.value().filter(|_| is_worth) else {
        return Vec::new();
    };
    let part = |(name, share): &(&'static str, f64)| {
        let within = page_fault_share(&db.time).filter(|_| *name == PARTS[0]).unwrap_or_default();
        format!("{} {name}{within}", format::percent(*share))
    };
    let head = format!("{}{THIN}s active", format::number(active.0));
    std::iter::once(head).chain(parts.iter().map(part)).chain(unknown).collect()
}

/// Waits of unknown meaning, if they are worth a word beside the active time.
pub fn unknown(time: &TimeShares) -> Option<String> {
    let (unknown, active) = (time.unaccounted_s.value()?, time.active_s.value()?);
    let share = unknown.0 / (unknown.0 + active.0);
    let call = time.unaccounted_call.value().map(|call| format!(" (in {call})"));
    (share >= WORTH).then(|| {
        let seconds = format::number(unknown.0);
        format!("{seconds}{THIN}s unknown, perhaps active{}", call.unwrap_or_default())
    })
}

/// What requests took, in segments of a line: what their threads did themselves, and behind other threads.
/// Empty where that is not known, or is nothing.
pub fn ledger(db: &Checked) -> Vec<String> {
    db.ledger.value().map(|ledger| account(&ledger.serving)).unwrap_or_default()
}

fn account(serving: &Account) -> Vec<String> {
    let (all_s, remains_s) = (serving.active_s.0, serving.remains_s.0);
    let own = side(serving, |entry| entry.own_s.0);
    let behind = side(serving, |entry| entry.behind_s.0);
    if all_s <= 0.0 || behind.is_none() && remains_s < WORTH * all_s {
        return Vec::new();
    }
    let head = "of the time of requests".to_owned();
    let own = own.map(|parts| format!("their own: {parts}"));
    let behind = behind.map(|parts| format!("behind other threads: {parts}"));
    let remains = (remains_s >= WORTH * all_s)
        .then(|| format!("behind others, unknown: {}", format::percent(remains_s / all_s)));
    std::iter::once(head).chain(own).chain(behind).chain(remains).collect()
}

/// The causes of one side that are worth a word, the largest first.
fn side(account: &Account, of: fn(&Entry) -> f64) -> Option<String> {
    let mut parts: Vec<(Cause, f64)> =
        account.entries.iter().map(|e| (e.cause, of(e) / account.active_s.0)).collect();
    parts.retain(|(_, share)| *share >= WORTH);
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    let words = parts.iter().map(|(c, share)| format!("{} {}", cause(*c), format::percent(*share)));
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// A cause of the ledger in words.
fn cause(of: Cause) -> &'static str {
    match of {
        Cause::Cpu => "on CPU",
        Cause::RunQueue => "run queue",
        Cause::Throttled => "CPU limit",
        Cause::WakeUp => "waking a CPU",
        Cause::Disk => "disk",
        Cause::Kernel => "journal, files and mappings",
        Cause::DirtyPages => "dirty pages",
        Cause::Memory => "memory",
        Cause::Network => "sending",
        Cause::Idle => "waiting for its client",
        Cause::Unresolved => "unknown",
    }
}

/// What is known of tasks that were held up, others' too; nothing when nothing is. Which group that was,
/// `--json` says: paths are long.
fn pressure_segments(pressure: &Pressure) -> Vec<String> {
    let kinds = [
        ("CPU", &pressure.cpu_some),
        ("disks", &pressure.io_some),
        ("memory", &pressure.memory_some),
    ];
    let known = kinds.iter().filter_map(|(what, share)| Some((what, *share.value()?)));
    let said = known.map(|(what, share)| format!("{what} {}", format::percent(share)));
    let mut segments: Vec<String> = said.collect();
    if let Some(first) = segments.first_mut() {
        let place = if pressure.scope == "machine" { "the machine" } else { "its group" };
        *first = format!("pressure on any task of {place}: {first}");
    }
    segments
}

/// What of the time on a CPU went into page faults, if that is worth a word.
fn page_fault_share(time: &TimeShares) -> Option<String> {
    let share = time.minor_faults_s.value()?.0 / time.active_s.value()?.0;
    (share >= WORTH).then(|| format!(" ({} in page faults)", format::percent(share)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_core::Reading::{Absent, Present};

    #[test]
    fn without_tracing_pressure_says_whose_it_is() {
        let mut pressure = Pressure {
            scope: "machine".to_owned(),
            cpu_some: Present(0.31),
            cpu_full: Absent("no meaning".to_owned()),
            io_some: Present(0.0),
            io_full: Present(0.0),
            memory_some: Absent("not there".to_owned()),
            memory_full: Absent("not there".to_owned()),
        };
        let said = |pressure: &Pressure| pressure_segments(pressure).join(" · ").replace(THIN, " ");
        let machine = "pressure on any task of the machine: CPU 31 % · disks 0.0 %";
        assert_eq!(said(&pressure), machine);
        pressure.scope = "group /db".to_owned();
        assert!(said(&pressure).starts_with("pressure on any task of its group: CPU"));
        (pressure.cpu_some, pressure.io_some) = (Absent(String::new()), Absent(String::new()));
        assert_eq!(said(&pressure), "");
    }

    #[test]
    fn requests_say_what_they_did_themselves_and_behind_others() {
        let entry = |cause, own_s, behind_s| Entry {
            cause,
            own_s: Seconds(own_s),
            behind_s: Seconds(behind_s),
        };
        let mut serving = Account {
            active_s: Seconds(10.0),
            entries: vec![entry(Cause::Cpu, 2.0, 1.0), entry(Cause::Disk, 0.01, 6.0)],
            remains_s: Seconds(0.99),
        };
        let said = account(&serving).join(" · ").replace(THIN, " ");
        let words = "of the time of requests · their own: on CPU 20 % · \
                     behind other threads: disk 60 %, on CPU 10 % · behind others, unknown: 9.9 %";
        assert_eq!(said, words);
        serving = Account { entries: vec![entry(Cause::Cpu, 10.0, 0.0)], ..serving };
        serving.remains_s = Seconds(0.0);
        assert!(account(&serving).is_empty(), "nobody waited for another thread");
    }

    #[test]
    fn parts_are_shares_of_active_time_and_idle_is_none() {
        let s = |seconds| Present(Seconds(seconds));
        let mut time = TimeShares {
            active_s: s(10.0),
            on_cpu_s: s(2.0),
            minor_faults_s: s(0.5),
            runnable_s: s(7.0),
            throttled_s: s(6.0),
            disk_s: s(0.01),
            lock_s: s(0.99),
            idle_s: s(50.0),
            ..TimeShares::unknown("not traced")
        };
        let names: Vec<_> = parts(&time).iter().map(|(name, _)| *name).collect();
        assert_eq!(
            names,
            ["stopped by a CPU limit", "on CPU", "waiting for a CPU", "waiting for locks"]
        );
        assert_eq!(unknown(&time), None, "not traced");
        time.unaccounted_s = s(0.04);
        assert_eq!(unknown(&time), None, "too little for a word");
        time.unaccounted_s = s(30.0);
        let words = unknown(&time).unwrap().replace(THIN, " ");
        assert_eq!(words, "30 s unknown, perhaps active");
        time.unaccounted_call = Present("splice".to_owned());
        assert!(unknown(&time).unwrap().ends_with("perhaps active (in splice)"));
        let all: f64 = shares(&time).unwrap().iter().sum();
        assert!((all - 0.1 - 0.901).abs() < 0.1, "it is no part of active time: {all}");
        time.active_s = s(0.0);
        assert!(parts(&time).is_empty());
        time.active_s = Absent("tracing needs root".to_owned());
        assert!(parts(&time).is_empty());
    }
}
