//! `io-hang`: threads wait inside the filesystem, though not for the disk itself.

use crate::evidence;
use crate::model::reclaim;
use crate::model::stall::{self, Stall, WORTH, Words, percent};
use crate::rule::{Rule, Scope, TaxBase};
use untax_core::activity::{Cause, Doing, Holder};
use untax_core::finding::Says;
use untax_core::io::{Behind, Direction, Place, Role, Writer};
use untax_core::window::Pair;
use untax_core::{Activity, Diagnosis, Evidence, Io, Seconds, Severity, Window};

pub const RULE: Rule = Rule {
    id: "io-hang",
    summary: "threads of the database hang inside the filesystem: its journal, a freeze, its locks",
    what: "A thread that changes a file takes part in the filesystem's current transaction. While \
           the transaction commits, or while another thread holds it open, all others wait. The \
           holder may be a neighbour that its CPU or I/O limit holds back in the middle of it. The \
           holder may also be a flood of pages that ordered mode writes first, or a snapshot that \
           froze the filesystem. The disk itself may be idle.",
    method: "The tax is the traced time that system calls on files wait for 20 ms or more, but not \
             for a block device, as a share of active time.",
    measured: "The rule traces two kinds of time: uninterruptible waits inside system calls on \
               files, without waits for a block device; and waits for a thread in such a wait. The \
               tax is this time, as a share of active time, x the part of these waits that were 20 \
               ms or longer. The rule computes the tax for each slice of the window; a wait seen \
               in few slices gets a wide interval. A hang of one second is never ignored. Any \
               process that ends such a wait is traced from then on, through the journal's own \
               thread. The finding names this process, and the cause that held it up while others \
               waited for it. Where no such process was seen, the rule guesses the holder of the \
               journal from the writers (/proc/PID/io) and the limits of their groups. The rule \
               assumes a freeze where nothing at all is written to the filesystem meanwhile. \
               Neither of these two is proof.",
    fix: "Use a filesystem of its own for the database. Set no I/O or CPU limits on groups that \
          write to the same filesystem; limit them on another one. Use XFS, or ext4 with \
          fast_commit. Keep freezes short.",
    sources: &[
        "kernel.org: filesystems/journalling; filesystems/ext4/journal",
        "kernel source: fs/jbd2/transaction.c, wait_transaction_locked; fs/super.c, freeze_super",
    ],
    privilege: "root (CAP_BPF and CAP_PERFMON)",
    minimum_kernel: "5.15 (bpf_task_pt_regs)",
    cost: "part of the tracing of threads, which aims at 0.5 % of one CPU, 1 % in windows of 5 s",
    tax_base: TaxBase::ActiveTime,
    scope: Scope::Platform,
    evaluate,
};

fn evaluate(window: &Window) -> Vec<Diagnosis> {
    stall::per_database(window, RULE.id, |pair| {
        reclaim::file_stall(window, pair).map(|stall| {
            let activity = pair.activity.value();
            let hung = activity.and_then(|a| a.share_hung(pair.end.model))?;
            let stall = stall?.with_share(hung);
            let longest = activity.map_or(0.0, |a| a.longest(Doing::Filesystem).0);
            if stall.share.mid < WORTH && longest < FAILS_S {
                return None;
            }
            let words = words(&stall, longest, pair, window.io.value());
            let mut says = stall::finding(RULE.id, &stall, words);
            if let Says::Found(finding) = &mut says
                && longest >= FAILS_S
            {
                finding.severity = finding.severity.max(Severity::Low);
            }
            Some(says)
        })
    })
}

/// A wait as long as this makes clients give up, however rare it is: the length of one wait, whatever
/// the length of the window.
const FAILS_S: f64 = 1.0;

fn words(stall: &Stall, longest_s: f64, pair: &Pair, io: Option<&Io>) -> Words {
    let seen = pair.activity.value().and_then(|activity| activity.holders.first());
    let suspect = match seen {
        Some(holder) => Suspect::Holder(holder),
        None => io.map_or(Suspect::Nobody, |io| suspect(io, pair)),
    };
    Words {
        summary: format!(
            "{} of its time waiting inside the filesystem, {} at once{}",
            percent(stall.share.mid),
            Seconds(longest_s),
            suspect.words()
        ),
        fix: suspect.fix(),
        evidence: [Evidence::new(&evidence::LONGEST_WAIT, longest_s, "scheduler's events")]
            .into_iter()
            .chain(pair.activity.value().into_iter().flat_map(|activity| holders(activity)))
            .chain(io.map(|io| evidence(io, pair)).unwrap_or_default())
            .collect(),
        method: "time in uninterruptible waits inside file calls and behind them, block devices \
                 left out, traced, divided by active time"
            .to_owned(),
        remedy: None,
    }
}

/// Who most likely holds what the threads wait for.
enum Suspect<'a> {
    /// A neighbour that was seen to end such waits.
    Holder(&'a Holder),
    /// A writer whose group is limited.
    Limited(&'a Writer),
    /// A writer that floods the disk.
    Flood(&'a Writer),
    /// Nothing was written at all: frozen.
    Frozen(String),
    Nobody,
}

/// A writer of more bytes a second than this may hold up a filesystem: a twentieth of what a fast disk
/// writes (512 MiB/s).
const FLOOD_BYTES_PER_S: f64 = 25.6 * 1024.0 * 1024.0;

/// A limited writer is no suspect beside one that wrote this many times as much.
const LITTLE: u64 = 10;

fn suspect<'a>(io: &'a Io, pair: &Pair) -> Suspect<'a> {
    let id = pair.end.id.as_str();
    // Whether temporary files are written depends on the queries.
    let places = || io.places_of(id).filter(|place| place.role != Role::Temp);
    let silent = |device: &str| {
        let mut flows = io.flows.value().into_iter().flatten();
        // A device made of others has no requests of its own.
        io.device(device)
            .is_some_and(|found| !matches!(found.behind, Behind::Mapped | Behind::Copied))
            && !flows.any(|flow| flow.device == device && flow.direction == Direction::Write)
    };
    let frozen = |place: &&Place| {
        let filesystem = place.filesystem.value()?;
        silent(filesystem.device.as_deref()?).then(|| filesystem.point.clone())
    };
    // A disk of data may well be quiet; one of the log is not while anybody writes.
    let log = places().filter(|place| place.role == Role::Log).find_map(|place| frozen(&place));
    let all: Option<Vec<String>> = places().map(|place| frozen(&place)).collect();
    let point = log.or_else(|| all?.into_iter().next());
    if let (Some(point), true) = (point, io.flows.is_present()) {
        return Suspect::Frozen(point);
    }
    let others = || {
        let writers = io.writers.value().into_iter().flatten();
        writers.filter(|writer| writer.database.as_deref() != Some(id))
    };
    let flood = others()
        .next()
        .filter(|writer| writer.written_bytes.0 as f64 >= FLOOD_BYTES_PER_S * io.window_s.0);
    let limited = others().find(|writer| !writer.limits.is_empty());
    match (limited, flood) {
        (Some(limited), Some(flood))
            if limited.written_bytes.0 < flood.written_bytes.0 / LITTLE =>
        {
            Suspect::Flood(flood)
        }
        (Some(limited), _) => Suspect::Limited(limited),
        (None, Some(flood)) => Suspect::Flood(flood),
        (None, None) => Suspect::Nobody,
    }
}

impl Suspect<'_> {
    fn words(&self) -> String {
        match self {
            Self::Holder(holder) => format!(
                ", behind {} (pid {}) of {}, {}",
                holder.comm,
                holder.pid,
                group(holder),
                held_up(holder.cause)
            ),
            Self::Limited(writer) => format!(
                ", maybe behind {} (pid {}), whose group {} is held back by {}",
                writer.comm,
                writer.pid,
                writer.cgroup,
                writer.limits.first().map_or("a limit", String::as_str)
            ),
            Self::Flood(writer) => format!(
                ", maybe behind {} (pid {}), which wrote {}",
                writer.comm, writer.pid, writer.written_bytes
            ),
            Self::Frozen(point) => format!(": nothing reached the disk of {point}, maybe frozen"),
            Self::Nobody => String::new(),
        }
    }

    fn fix(&self) -> String {
        match self {
            Self::Holder(Holder { cause: Cause::Throttled, .. }) => {
                "raise the CPU limit of that group, move it to another filesystem, or run Linux 6.18"
                    .to_owned()
            }
            Self::Holder(Holder { cause: Cause::Disk, .. }) => {
                "raise the disk limit of that group, or move it to another filesystem".to_owned()
            }
            Self::Holder(holder) => format!("move {} to another filesystem", holder.comm),
            Self::Limited(writer) => {
                format!("keep what {} writes on another filesystem, or lift its limit", writer.comm)
            }
            Self::Flood(writer) => {
                format!("limit the group {} by io.max, or move it to another filesystem", writer.cgroup)
            }
            Self::Frozen(point) => {
                format!("find the program that freezes {point} (a snapshot or a backup); fsfreeze \
                         -u thaws it")
            }
            Self::Nobody => "move the database to a filesystem of its own".to_owned(),
        }
    }
}

/// Its group in words.
fn group(holder: &Holder) -> &str {
    if holder.cgroup.is_empty() { "a group that is gone" } else { &holder.cgroup }
}

/// What holds a neighbour up, in words.
fn held_up(cause: Cause) -> &'static str {
    match cause {
        Cause::Throttled => "stopped by its CPU limit with a lock of the kernel",
        Cause::Disk => "which waited for its disk with a lock of the kernel",
        Cause::RunQueue | Cause::WakeUp => "which waited for a CPU with a lock of the kernel",
        Cause::Memory | Cause::DirtyPages => "which waited for memory with a lock of the kernel",
        _ => "which held a lock of the kernel",
    }
}

/// Neighbours that were seen to hold what others waited for.
fn holders(activity: &Activity) -> Vec<Evidence> {
    let evidence = |holder: &Holder| {
        let who = format!(
            "{} (pid {}) of {}, {}",
            holder.comm,
            holder.pid,
            group(holder),
            held_up(holder.cause)
        );
        Evidence::new(&evidence::KERNEL_HOLDER, holder.time_s.0, "scheduler's events").of(&who)
    };
    activity.holders.iter().take(3).map(evidence).collect()
}

fn evidence(io: &Io, pair: &Pair) -> Vec<Evidence> {
    let id = pair.end.id.as_str();
    let mut evidence = Vec::new();
    let own = |device: &str| {
        let mut places = io.places_of(id).filter_map(|place| place.filesystem.value());
        places.any(|filesystem| filesystem.device.as_deref() == Some(device))
    };
    for journal in io.journals.iter().filter(|journal| own(&journal.device)) {
        let source = format!("/proc/fs/jbd2 of {}", journal.device);
        if let Some(Seconds(time)) = journal.commit_s.value() {
            evidence.push(Evidence::new(&evidence::JOURNAL_COMMIT, *time, &*source));
        }
        let transactions = journal.transactions;
        evidence.push(Evidence::new(&evidence::JOURNAL_TRANSACTIONS, transactions, source));
    }
    let writers = io.writers.value().into_iter().flatten().take(3);
    evidence.extend(writers.map(|writer| {
        let limits = writer.limits.join("; ");
        let writing = format!("{} ({}) {limits}", writer.comm, writer.cgroup);
        let source = format!("/proc/{}/io", writer.pid);
        let written = Evidence::new(&evidence::WRITTEN_BY, writer.written_bytes.0, source);
        written.of(writing.trim())
    }));
    evidence
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_io::{flow, io};
    use crate::test_window::{self, found};
    use untax_core::activity::Longest;
    use untax_core::io::Role;
    use untax_core::{Bytes, Reading};

    fn window() -> Window {
        let mut window = test_window::postgres();
        test_window::trace(&mut window, &[(Doing::OnCpu, 2.0), (Doing::Filesystem, 8.0)]);
        hung(&mut window, 8.0);
        window.io = io(vec![flow(None, Role::Other, Direction::Write, 10, 0.001)]);
        window
    }

    #[test]
    fn short_waits_are_the_filesystem_at_work_and_one_long_one_is_never_ignored() {
        let mut window = window();
        let severity = |window: &Window| found(evaluate(window)).first().map(|f| f.severity);
        assert_eq!(severity(&window), Some(Severity::High));
        hung(&mut window, 0.1);
        assert_eq!(severity(&window), None);
        longest(&mut window, 1.0);
        assert_eq!(severity(&window), Some(Severity::Low));
    }

    fn hung(window: &mut Window, time_s: f64) {
        if let Reading::Present(all) = &mut window.activity {
            all[0].slices[0].hung_s = Some(Seconds(time_s));
        }
    }

    fn longest(window: &mut Window, time_s: f64) {
        if let Reading::Present(all) = &mut window.activity {
            let longest = Longest { doing: Doing::Filesystem, time_s: Seconds(time_s) };
            all[0].longest = vec![longest];
        }
    }

    #[test]
    fn a_neighbour_that_was_seen_with_the_lock_is_named_with_what_held_it_up() {
        let mut window = window();
        let Reading::Present(all) = &mut window.activity else { panic!("it is traced") };
        all[0].holders = vec![Holder {
            pid: 77,
            comm: "backup".to_owned(),
            cgroup: "/slow".to_owned(),
            cause: Cause::Throttled,
            time_s: Seconds(7.0),
        }];
        let finding = found(evaluate(&window)).remove(0);
        assert!(
            finding.summary.contains("behind backup (pid 77) of /slow, stopped by its CPU limit")
        );
        assert!(finding.fix.contains("raise the CPU limit"), "{}", finding.fix);
    }

    #[test]
    fn a_limited_neighbour_is_named_first() {
        let findings = found(evaluate(&window()));
        assert!((findings[0].tax.as_ref().unwrap().share - 0.8).abs() < 1e-9);
        assert!(findings[0].summary.contains("/batch is held back by io.max"));
    }

    #[test]
    fn beside_a_flood_little_is_no_suspect() {
        let mut window = window();
        if let Reading::Present(io) = &mut window.io
            && let Reading::Present(writers) = &mut io.writers
        {
            let flood =
                Writer { written_bytes: Bytes(8 << 30), limits: Vec::new(), ..writers[0].clone() };
            writers[0].written_bytes = Bytes(1 << 20);
            writers.insert(0, flood);
        }
        assert!(found(evaluate(&window))[0].summary.contains("which wrote 8 GiB"));
    }

    #[test]
    fn a_quiet_disk_of_data_is_not_frozen() {
        let mut window = window();
        if let Reading::Present(io) = &mut window.io {
            io.devices
                .push(untax_core::io::Device { name: "vdb".to_owned(), ..io.devices[0].clone() });
            let Reading::Present(filesystem) = &mut io.places[0].filesystem else { unreachable!() };
            filesystem.device = Some("vdb".to_owned());
        }
        assert!(!found(evaluate(&window))[0].summary.contains("frozen"));
    }

    #[test]
    fn a_flood_and_a_freeze_are_told_apart() {
        let mut window = window();
        if let Reading::Present(io) = &mut window.io
            && let Reading::Present(writers) = &mut io.writers
        {
            writers[0].limits.clear();
            writers[0].written_bytes = Bytes(1 << 30);
        }
        assert!(found(evaluate(&window))[0].summary.contains("which wrote 1 GiB"));
        window.io = io(Vec::new());
        assert!(found(evaluate(&window))[0].summary.contains("maybe frozen"));
        // Its requests are those of the devices that it is made of.
        if let Reading::Present(io) = &mut window.io {
            io.devices[0].behind = Behind::Mapped;
        }
        assert!(!found(evaluate(&window))[0].summary.contains("frozen"));
    }
}
