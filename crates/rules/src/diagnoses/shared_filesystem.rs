//! `shared-filesystem`: others use the filesystem or the device of the database.

use crate::evidence;
use crate::model::accounting;
use crate::model::disk_charges;
use crate::model::disk_charges::Charged;
use crate::model::disk_neighbours::occupied_part;
use crate::model::disk_requests;
use crate::model::file_waits::FileWaits;
use crate::model::flood;
use crate::model::stall::{self, Stall, WORTH, Words, percent};
use crate::model::thrashing::Thrashing;
use crate::rule::{Rule, Scope, TaxBase};
use std::collections::{BTreeMap, BTreeSet};
use untax_core::finding::Says;
use untax_core::io::{Direction, Flow, Role};
use untax_core::window::Pair;
use untax_core::{Diagnosis, Evidence, Finding, Interval, Io, Reading, Severity, Window};

pub const RULE: Rule = Rule {
    id: "shared-filesystem",
    summary: "the database shares its filesystem or disk with others that keep it busy",
    what: "A filesystem has one journal, and a disk has one queue. When another database, a backup \
           or a batch job writes there, the log waits behind its requests. A commit of the journal \
           also carries everybody's metadata.",
    method: "The tax is the traced time that threads waited for a device, multiplied by the part \
             that requests of neighbours took.",
    measured: "The rule reads the directories, their filesystems and the owner of each block \
               request. The tax begins with the waiting for disks, and for the filesystem in waits \
               of less than 20 ms. Of this it takes the part above 0.1 ms for a request; an \
               ordinary flash disk that nobody else uses takes that long. A commit includes its \
               wait in the filesystem. The time above 0.1 ms is multiplied by two shares: how much \
               of the window the device was busy, and how much of its work was for others. For \
               reads, the others' part goes by time. For writes, the others' part goes by requests \
               and bytes, as the kernel's I/O cost controller weighs them. Writes of the \
               filesystem itself, such as a journal, serve all databases and are charged to \
               nobody. Pages that neighbours read again because of their own memory limits are \
               charged by neighbour-reclaim. Longer waits for the filesystem are charged by \
               io-hang. CPU time of neighbours that write much, databases excepted, is charged by \
               cpu-contended. The gain includes the part of both that ends with the neighbours. \
               Several databases may share one filesystem and cost each other nothing: such a \
               finding is info and has no tax.",
    fix: "Use a filesystem on a disk of its own for the log, and one for each database. Limit the \
          neighbour's I/O (io.max, io.latency).",
    sources: &[
        "kernel.org: filesystems/journalling; admin-guide/cgroup-v2, IO",
        "kernel sources: block/blk-iocost.c, the model's coefficients of a flash disk",
        "postgresql.org: 30.5 WAL configuration, pg_wal on another disk",
    ],
    privilege: "root (CAP_BPF and CAP_PERFMON)",
    minimum_kernel: "5.15 (bpf_task_pt_regs)",
    cost: "about a microsecond for each block request",
    tax_base: TaxBase::ActiveTime,
    scope: Scope::Platform,
    evaluate,
};

fn evaluate(window: &Window) -> Vec<Diagnosis> {
    stall::per_database(window, RULE.id, |pair| {
        window.io.as_ref().and_then(|io| {
            let shared = shared_devices(io, &pair.end.id);
            charged_stall(window, io, pair).map(|costly| match costly {
                Some(stall) => Some(costly_finding(&stall, io, pair)),
                None => (!shared.is_empty()).then(|| shared_finding(io, pair, &shared)),
            })
        })
    })
}

/// What it waits for others, for the disk and for the filesystem's journal, where that is worth a finding.
fn charged_stall(window: &Window, io: &Io, pair: &Pair) -> Reading<Option<Stall>> {
    disk_requests::disk_stall(window, pair).and_then(|waits| {
        Charged::of(window, pair).and_then(|parts| {
            Behind::of(window, io, pair, &parts).map(|behind| {
                let mut stall = waits?;
                // What they read again because their memory limits are too small is these limits' cost.
                let again = Thrashing::of(window, pair).map_or(0.0, |thrashing| thrashing.disk.mid);
                stall.share = stall.share.times(parts.neighbours).scale(1.0 - again);
                let stall = stall.plus_share(behind.journal).with_ended_share(behind.hangs);
                let stall = stall.with_neighbours_cpu_time(neighbours_cpu_s(window, io, pair));
                (stall.share.mid >= WORTH).then_some(stall)
            })
        })
    })
}

/// Shares of active time that it waits inside the filesystem because others keep the disk busy, to which
/// its journal is written too.
struct Behind {
    /// In waits as any filesystem at work has them.
    journal: Interval,
    /// In hangs, which are the tax of `io-hang`.
    hangs: f64,
}

impl Behind {
    fn of(window: &Window, io: &Io, pair: &Pair, parts: &Charged) -> Reading<Self> {
        FileWaits::of(window, io, pair).and_then(|files| {
            if files.working.mid >= WORTH && disk_requests::is_hidden(io, &pair.end.id) {
                return Reading::Absent(disk_requests::STRANGERS.to_owned());
            }
            let crowd = occupied_part(io, &pair.end.id);
            let above =
                disk_charges::part_above(disk_charges::ALONE_S, parts.request_s + files.commit_s);
            let most = if crowd > 0.0 { files.working.high } else { 0.0 };
            Reading::Present(Self {
                journal: Interval::new(0.0, files.working.mid * above * crowd, most),
                hangs: files.hung * crowd,
            })
        })
    }
}

/// A group that wrote less than one in so many bytes of what all did keeps no disk busy.
const LITTLE: f64 = 10.0;

/// How long those that write much had CPUs, who need none without their files. Workers of the kernel write
/// for many, in the group at the top, and another database does more than write.
fn neighbours_cpu_s(window: &Window, io: &Io, pair: &Pair) -> f64 {
    let mut written: BTreeMap<&str, f64> = BTreeMap::new();
    let writers = io.writers.value().into_iter().flatten();
    for writer in writers.filter(|writer| writer.database.is_none() && writer.cgroup != "/") {
        *written.entry(&writer.cgroup).or_default() += writer.written_bytes.0 as f64;
    }
    let all: f64 = written.values().sum();
    let much = |group: &str| written.get(group).is_some_and(|bytes| bytes * LITTLE >= all);
    accounting::cpu_s_in_groups(window, pair, much)
}

/// Other databases that wrote to a filesystem on which this one keeps its log or data.
fn shared_devices<'a>(io: &'a Io, database: &str) -> BTreeSet<&'a str> {
    let numbers = |id: &str| {
        let places = io.places_of(id).filter(|place| place.role != Role::Temp);
        let known = places.filter_map(|place| place.filesystem.value().map(|f| f.number.clone()));
        known.collect::<BTreeSet<String>>()
    };
    let own = numbers(database);
    let writes = |id: &str| io.flows_of(id).any(|flow| flow.direction == Direction::Write);
    let others = io.places.iter().map(|place| place.database.as_str());
    others
        .filter(|id| *id != database && writes(id) && !numbers(id).is_disjoint(&own))
        .filter(|_| writes(database))
        .collect()
}

fn costly_finding(stall: &Stall, io: &Io, pair: &Pair) -> Says {
    let names = disk_requests::devices_of(io, &pair.end.id);
    let flood = if others_read(io, &pair.end.id) { Vec::new() } else { flood::evidence(io) };
    let remedy = (!flood.is_empty()).then_some("io-limit");
    let words = Words {
        summary: format!(
            "{} of its time waiting for {} behind others' requests",
            percent(stall.share.mid),
            names.join(" and ")
        ),
        fix: format!(
            "put the log on a disk of its own; limit {}",
            neighbours_names(io, &pair.end.id)
        ),
        evidence: evidence(io, pair).into_iter().chain(flood).collect(),
        method: "time waiting for block devices and the journal, traced, x part above 0.1 ms for \
                 each of its requests x chance to meet the device busy with others, divided by \
                 active time"
            .to_owned(),
        remedy,
    };
    stall::finding(RULE.id, stall, words)
}

fn shared_finding(io: &Io, pair: &Pair, shared: &BTreeSet<&str>) -> Says {
    let with: Vec<&str> = shared.iter().copied().collect();
    Says::Found(Finding {
        evidence: evidence(io, pair),
        ..Finding::new(
            RULE.id,
            Severity::Info,
            format!("this database shares one filesystem with {}", with.join(", ")),
            "nothing now; with a filesystem for each, one cannot slow the others",
        )
    })
}

/// Whether others read from a database's disks for longer than they write.
fn others_read(io: &Io, database: &str) -> bool {
    let here = disk_requests::devices_of(io, database);
    let of_others = |direction| {
        let is_theirs = |flow: &&Flow| {
            let strange =
                flow.database.as_deref() != Some(database) && flow.role != Role::Filesystem;
            strange && flow.direction == direction && here.contains(&flow.device.as_str())
        };
        disk_requests::device_time_s(io.flows.value().into_iter().flatten().filter(is_theirs))
    };
    of_others(Direction::Read) > of_others(Direction::Write)
}

/// The largest writer that is not this database, in words, where others write to its disks more than
/// they read.
fn neighbours_names(io: &Io, database: &str) -> String {
    if others_read(io, database) {
        return "those that read from it (a backup, a scan)".to_owned();
    }
    let mut writers = io.writers.value().into_iter().flatten();
    let largest = writers.find(|writer| writer.database.as_deref() != Some(database));
    largest.map_or_else(
        || "the others on it".to_owned(),
        |writer| format!("{} (pid {}, group {})", writer.comm, writer.pid, writer.cgroup),
    )
}

fn evidence(io: &Io, pair: &Pair) -> Vec<Evidence> {
    let id = pair.end.id.as_str();
    let mut evidence = disk_requests::evidence(io, id);
    evidence.push(Evidence::new(
        &evidence::DISK_CROWD,
        occupied_part(io, id),
        "/proc/diskstats, block requests traced",
    ));
    let writers = io.writers.value().into_iter().flatten();
    let others = writers.filter(|writer| writer.database.as_deref() != Some(id));
    evidence.extend(others.take(3).map(disk_requests::written_by));
    evidence
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_io::{flow, io};
    use crate::test_window::{self, found};
    use untax_core::activity::Doing;
    use untax_core::io::Writer;
    use untax_core::window::Other;
    use untax_core::{Bytes, Seconds};

    #[test]
    fn neighbours_are_charged_by_what_they_occupy_and_named() {
        let mut window = test_window::postgres();
        test_window::trace(&mut window, &[(Doing::OnCpu, 5.0), (Doing::Disk, 5.0)]);
        let mine = flow(Some("postgres:7"), Role::Log, Direction::Write, 100, 0.005);
        window.io = io(vec![mine.clone()]);
        assert!(found(evaluate(&window)).is_empty(), "alone");
        let others = flow(None, Role::Other, Direction::Write, 300, 0.005);
        window.io = io(vec![mine, others]);
        let findings = found(evaluate(&window));
        let expected = 0.5 * (1.0 - 0.000_1 / 0.05) * 0.8 * 0.75;
        assert!((findings[0].tax.as_ref().unwrap().share - expected).abs() < 1e-9);
        assert!(findings[0].fix.contains("dd (pid 99, group /batch)"), "{}", findings[0].fix);
    }

    #[test]
    fn a_journal_waits_behind_neighbours_as_a_log_does() {
        let mut window = test_window::postgres();
        test_window::trace(&mut window, &[(Doing::OnCpu, 4.0), (Doing::Filesystem, 6.0)]);
        let hung = |window: &mut Window, seconds: f64| {
            let mut activities = window.activity.as_mut().into_value().unwrap().iter_mut();
            activities.next().unwrap().slices[0].hung_s = Some(Seconds(seconds));
        };
        hung(&mut window, 0.0);
        let mine = flow(Some("postgres:7"), Role::Log, Direction::Write, 1000, 0.005);
        // However much it reads besides.
        let reads = flow(Some("postgres:7"), Role::Data, Direction::Read, 100_000, 0.000_05);
        window.io = io(vec![mine.clone(), reads.clone()]);
        assert!(found(evaluate(&window)).is_empty(), "alone");
        let others = flow(None, Role::Other, Direction::Write, 6000, 0.005);
        window.io = io(vec![mine, reads, others]);
        let mut told = |hung_s| {
            hung(&mut window, hung_s);
            let finding = found(evaluate(&window)).remove(0);
            (finding.tax.unwrap().share, finding.gain.unwrap().factor)
        };
        // Of 6 s for a thousand commits all but 0.1 ms each, on a disk that others keep busy for 60 %.
        let (share, gain) = told(0.0);
        assert!((share - 0.59 * 0.6).abs() < 1e-9, "{share}");
        assert!((gain - 1.0 / (1.0 - share)).abs() < 1e-9, "{gain}");
        // Half of it are hangs: another's tax, and yet the neighbours'.
        let (share, gain) = told(3.0);
        assert!((share - 0.29 * 0.6).abs() < 1e-9, "{share}");
        assert!((gain - 1.0 / (1.0 - share - 0.3 * 0.6)).abs() < 1e-9, "{gain}");
    }

    #[test]
    fn waits_for_another_machines_disk_are_no_neighbours() {
        let mut window = test_window::postgres();
        test_window::trace(&mut window, &[(Doing::OnCpu, 4.0), (Doing::Filesystem, 6.0)]);
        if let Reading::Present(activities) = &mut window.activity {
            activities[0].slices[0].hung_s = Some(Seconds(0.0));
        }
        let mine = flow(Some("postgres:7"), Role::Log, Direction::Write, 1000, 0.005);
        window.io = io(vec![mine, flow(None, Role::Other, Direction::Write, 3000, 0.005)]);
        assert_eq!(found(evaluate(&window)).len(), 1);
        if let Reading::Present(io) = &mut window.io
            && let Reading::Present(filesystem) = &mut io.places[0].filesystem
        {
            filesystem.network = Some("nfs4".to_owned());
        }
        assert!(found(evaluate(&window)).is_empty());
    }

    #[test]
    fn reads_are_no_commits() {
        let mut window = test_window::postgres();
        let spent = [(Doing::OnCpu, 1.0), (Doing::Disk, 9.0), (Doing::Filesystem, 0.01)];
        test_window::trace(&mut window, &spent);
        let reads = flow(Some("postgres:7"), Role::Data, Direction::Read, 100_000, 0.000_09);
        let log = flow(Some("postgres:7"), Role::Log, Direction::Write, 1, 0.000_09);
        let others = flow(None, Role::Other, Direction::Write, 100_000, 0.000_09);
        for own in [vec![reads.clone()], vec![reads.clone(), log]] {
            window.io = io([own, vec![others.clone()]].concat());
            assert!(found(evaluate(&window)).is_empty(), "each took what any disk takes");
        }
    }

    #[test]
    fn where_requests_are_hidden_it_is_not_known() {
        let mut window = test_window::postgres();
        test_window::trace(&mut window, &[(Doing::OnCpu, 5.0), (Doing::Filesystem, 5.0)]);
        if let Reading::Present(activities) = &mut window.activity {
            activities[0].slices[0].hung_s = Some(Seconds(0.0));
        }
        window.io = io(vec![flow(None, Role::Other, Direction::Write, 9000, 0.005)]);
        assert!(evaluate(&window).is_empty(), "it waits for no disk");
        if let Reading::Present(io) = &mut window.io {
            io.devices[0].behind = untax_core::io::Behind::Copied;
        }
        assert!(test_window::gaps(evaluate(&window))[0].contains("dm-crypt"));
    }

    #[test]
    fn only_who_writes_much_stops_computing_without_its_files() {
        let mut window = test_window::postgres();
        let times = [(Doing::OnCpu, 4.0), (Doing::Contended, 3.0), (Doing::Disk, 3.0)];
        test_window::trace(&mut window, &times);
        let mine = flow(Some("postgres:7"), Role::Log, Direction::Write, 100, 0.005);
        window.io = io(vec![mine, flow(None, Role::Other, Direction::Write, 300, 0.005)]);
        if let Reading::Present(io) = &mut window.io
            && let Reading::Present(writers) = &mut io.writers
        {
            let batch = writers[0].clone();
            let written = |cgroup: &str, part| Writer {
                cgroup: cgroup.to_owned(),
                written_bytes: Bytes(batch.written_bytes.0 / part),
                ..batch.clone()
            };
            writers.extend([written("/build", 100), written("/", 1)]);
        }
        let mut gain = |groups: &[&str]| {
            window.others = groups.iter().map(|group| computes(group)).collect();
            found(evaluate(&window))[0].gain.unwrap().factor
        };
        let nobody = gain(&[]);
        let batch = gain(&["/batch"]);
        assert!(batch > nobody * 1.05, "{batch} {nobody}");
        assert!((gain(&["/batch", "/build", "/"]) - batch).abs() < 1e-9);
    }

    fn computes(cgroup: &str) -> Other {
        Other {
            cgroup: Reading::Present(cgroup.to_owned()),
            ..Other::unknown(50, "cc", Seconds(3.0), "not read")
        }
    }

    #[test]
    fn who_reads_is_no_writer() {
        let mut window = test_window::postgres();
        test_window::trace(&mut window, &[(Doing::OnCpu, 5.0), (Doing::Disk, 5.0)]);
        let mine = flow(Some("postgres:7"), Role::Log, Direction::Write, 100, 0.005);
        let backup = flow(None, Role::Other, Direction::Read, 300, 0.005);
        window.io = io(vec![mine, backup]);
        let fix = found(evaluate(&window)).remove(0).fix;
        assert!(fix.ends_with("limit those that read from it (a backup, a scan)"), "{fix}");
    }

    #[test]
    fn two_databases_at_peace_are_worth_knowing() {
        let mut window = test_window::postgres();
        test_window::trace(&mut window, &[(Doing::OnCpu, 5.0)]);
        let both = ["postgres:7", "mysql:9"]
            .map(|id| flow(Some(id), Role::Log, Direction::Write, 100, 0.000_1));
        window.io = io(both.to_vec());
        if let Reading::Present(io) = &mut window.io {
            let mut other = io.places[0].clone();
            other.database = "mysql:9".to_owned();
            io.places.push(other);
        }
        let findings = found(evaluate(&window));
        assert_eq!(findings[0].severity, Severity::Info);
        assert!(findings[0].summary.contains("mysql:9"));
    }
}
