//! `dirty-burst`: writers are held back because too many pages wait to be written.

use crate::evidence;
use crate::model::disk_requests;
use crate::model::flood;
use crate::model::stall::{self, Stall, WORTH, Words, percent};
use crate::rule::{Rule, Scope, TaxBase};
use untax_core::activity::Cause;
use untax_core::finding::Says;
use untax_core::io::{Direction, Dirty, Flow, Role};
use untax_core::window::Pair;
use untax_core::{
    Bytes, Diagnosis, Evidence, EvidenceKind, Finding, Io, Reading, Severity, Window,
};

pub const RULE: Rule = Rule {
    id: "dirty-burst",
    summary: "writes are held back because too many changed pages wait for the disk",
    what: "Buffered writes end in memory, until the changed pages reach the thresholds \
           (vm.dirty_ratio or vm.dirty_bytes, of the machine or of the control group's memory). \
           From then on the kernel puts every writer to sleep, even if another program filled the \
           memory: a sort that spills, a dump, a copy. The kernel then writes the flood back, and \
           the log waits behind it.",
    method: "The tax is the traced time that the kernel made threads wait because too many pages \
             were dirty, as a share of active time.",
    measured: "The rule traces time asleep after the kernel had balanced a thread's dirty pages, \
               as a share of active time. No other rule charges this time. Where the database's \
               own bursts do not fit, a higher threshold also ends its waits for the disk to take \
               temporary files. The rule compares Dirty and Writeback of /proc/meminfo with \
               nr_dirty_threshold, seven times from the start of the window to its end. The growth \
               of write_bytes in /proc/PID/io shows the writers. A threshold that is nearly met, \
               and took less than 2 % of the time so far, is info and has no tax.",
    fix: "Limit the flood at its source (io.max of the writer's group). Let the kernel begin to \
          write earlier and in smaller portions: vm.dirty_background_bytes = 64 MiB to 256 MiB. A \
          database that is held back by its own bursts needs room for them: vm.dirty_bytes up to 1 \
          GiB.",
    sources: &[
        "kernel.org: admin-guide/sysctl/vm, dirty_*; filesystems/proc, meminfo and PID/io",
        "kernel source: mm/page-writeback.c, balance_dirty_pages",
    ],
    privilege: "root (CAP_BPF and CAP_PERFMON)",
    minimum_kernel: "5.15 (bpf_task_pt_regs)",
    cost: "a few small files; one of each process, twice",
    tax_base: TaxBase::ActiveTime,
    scope: Scope::Platform,
    evaluate,
};

/// A burst of a database should find room: a second's worth of a fast disk.
const ROOM: Bytes = Bytes::from_mib(1024);

/// From this part of the threshold on, the next burst will be held back: the kernel itself begins
/// at the middle between both thresholds (`dirty_freerun_ceiling`).
const NEAR: f64 = 0.9;

fn evaluate(window: &Window) -> Vec<Diagnosis> {
    stall::per_database(window, RULE.id, |pair| {
        let model = pair.end.model;
        let stall = Stall::of(window, pair, |spent| spent.goes_to(Cause::DirtyPages, model));
        stall.map(|stall| {
            let io = window.io.value();
            let near = io.and_then(|io| io.dirty.value()).is_some_and(|d| fullness(d) >= NEAR);
            match stall {
                Some(stall) if stall.share.mid >= WORTH => {
                    Some(costly_finding(window, stall, pair, io))
                }
                Some(_) if near => Some(near_limit_finding(io?)),
                _ => None,
            }
        })
    })
}

/// What waits to be written, over what may.
fn fullness(dirty: &Dirty) -> f64 {
    let waiting = dirty.dirty_bytes + dirty.writeback_bytes;
    if dirty.threshold_bytes == Bytes(0) {
        return 0.0;
    }
    waiting.0 as f64 / dirty.threshold_bytes.0 as f64
}

fn costly_finding(window: &Window, stall: Stall, pair: &Pair, io: Option<&Io>) -> Says {
    let by_its_group = is_by_group(pair, io);
    let too_small = io.and_then(|io| too_small_limit(pair, io)).filter(|_| !by_its_group);
    let early = too_small.map_or(0.0, |_| early_part(window, pair));
    let stall = stall.with_ended_share(early);
    let (fix, remedy) = match too_small {
        Some(threshold) => (
            format!(
                "raise vm.dirty_bytes up to {ROOM}: its own bursts do not fit within \
                     {threshold}"
            ),
            Some("dirty-room"),
        ),
        None if by_its_group => (FIX_OF_GROUP.to_owned(), None),
        None => (fix(io), Some("dirty-limits")),
    };
    let words = Words {
        summary: format!(
            "{} of its time held back because changed pages wait for the disk",
            percent(stall.share.mid)
        ),
        fix,
        evidence: io
            .map(|io| evidence(io).into_iter().chain(flood::evidence(io)).collect())
            .unwrap_or_default(),
        method: "time asleep in the kernel's balancing of dirty pages, traced, divided by active \
                 time"
            .to_owned(),
        remedy,
    };
    stall::finding(RULE.id, &stall, words)
}

/// Whether it was held back by the threshold of a group with a memory limit, which v2 has in the same
/// proportion to its memory as the machine's: that of the machine was far away.
fn is_by_group(pair: &Pair, io: Option<&Io>) -> bool {
    let far = io.and_then(|io| io.dirty.value()).is_some_and(|dirty| fullness(dirty) < FAR);
    let limited = pair.end.cgroup.value().is_some_and(|cgroup| {
        let is_v2 = !cgroup.paths.contains_key("memory");
        is_v2 && cgroup.memory.value().is_some_and(|groups| !groups.is_empty())
    });
    far && limited
}

/// Below this part of its threshold the machine holds nobody back, whatever happens between two looks: it
/// begins at the middle between both thresholds.
const FAR: f64 = 0.3;

const FIX_OF_GROUP: &str = "raise the memory limit of its group, or write less at once: the group \
                            has its own threshold, which vm.dirty_bytes of the machine would \
                            lower";

/// The share of its active time in which a database waits for the disk to take temporary files: with
/// room for them they are dropped before they are written.
fn early_part(window: &Window, pair: &Pair) -> f64 {
    let waiting = disk_requests::disk_stall(window, pair).into_value().flatten();
    let part = window.io.value().map_or(0.0, |io| {
        let all = || disk_requests::awaited_requests(io, &pair.end.id);
        let is_early = |f: &&Flow| (f.role, f.direction) == (Role::Temp, Direction::Write);
        disk_requests::device_time_s(all().filter(is_early))
            / disk_requests::device_time_s(all()).max(f64::MIN_POSITIVE)
    });
    waiting.map_or(0.0, |waiting| waiting.share.mid * part)
}

/// A threshold that leaves no room for a burst, where the database wrote the most itself.
fn too_small_limit(pair: &Pair, io: &Io) -> Option<Bytes> {
    let own = io.writers.value()?.first()?.database.as_ref() == Some(&pair.end.id);
    let threshold = io.dirty.value()?.threshold_bytes;
    (own && threshold < ROOM).then_some(threshold)
}

fn near_limit_finding(io: &Io) -> Says {
    Says::Found(Finding {
        evidence: evidence(io),
        remedy: Some("dirty-limits".to_owned()),
        ..Finding::new(
            RULE.id,
            Severity::Info,
            "changed pages are near their limit: the kernel will hold back the next burst",
            fix(Some(io)),
        )
    })
}

fn fix(io: Option<&Io>) -> String {
    let writers = io.and_then(|io| io.writers.value());
    let largest = writers.and_then(|writers| writers.first());
    let start = "set vm.dirty_background_bytes = 128 MiB";
    match largest {
        Some(writer) if writer.database.is_none() => format!(
            "limit the group {} of {} (pid {}) by io.max; {start}",
            writer.cgroup, writer.comm, writer.pid
        ),
        _ => start.to_owned(),
    }
}

fn evidence(io: &Io) -> Vec<Evidence> {
    let mut evidence = Vec::new();
    if let Reading::Present(dirty) = &io.dirty {
        let mut add = |kind: &EvidenceKind, bytes: Bytes, source: &str| {
            evidence.push(Evidence::new(kind, bytes.0, source));
        };
        add(&evidence::DIRTY, dirty.dirty_bytes, "/proc/meminfo Dirty");
        add(&evidence::DIRTY_THRESHOLD, dirty.threshold_bytes, "/proc/vmstat nr_dirty_threshold");
        add(&evidence::WRITEBACK, dirty.writeback_bytes, "/proc/meminfo Writeback");
    }
    let writers = io.writers.value().into_iter().flatten().take(3);
    evidence.extend(writers.map(disk_requests::written_by));
    evidence
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_io;
    use crate::test_window::{self, found};
    use untax_core::activity::Doing;
    use untax_core::database::MemoryGroup;

    #[test]
    fn who_is_held_back_is_told_and_who_wrote_is_named() {
        let mut window = test_window::postgres();
        window.io = test_io::io(Vec::new());
        test_window::trace(&mut window, &[(Doing::OnCpu, 5.0), (Doing::DirtyThrottled, 5.0)]);
        let findings = found(evaluate(&window));
        assert!((findings[0].tax.as_ref().unwrap().share - 0.5).abs() < 1e-9);
        assert!(findings[0].fix.contains("/batch of dd (pid 99)"), "{}", findings[0].fix);
    }

    #[test]
    fn a_database_that_wrote_the_most_needs_room() {
        let mut window = test_window::postgres();
        window.io = test_io::io(Vec::new());
        if let Reading::Present(io) = &mut window.io
            && let Reading::Present(writers) = &mut io.writers
        {
            writers[0].database = Some("postgres:7".to_owned());
        }
        test_window::trace(&mut window, &[(Doing::OnCpu, 5.0), (Doing::DirtyThrottled, 5.0)]);
        let finding = found(evaluate(&window)).remove(0);
        assert!(finding.fix.starts_with("raise vm.dirty_bytes up to 1 GiB"), "{}", finding.fix);
        assert_eq!(finding.remedy.as_deref(), Some("dirty-room"));
        // What it waited for the disk to take of temporary files ends too.
        let times = [(Doing::OnCpu, 2.0), (Doing::Disk, 3.0), (Doing::DirtyThrottled, 5.0)];
        test_window::trace(&mut window, &times);
        let gain = |window: &Window| found(evaluate(window))[0].gain.unwrap().factor;
        assert!((gain(&window) - 2.0).abs() < 1e-9);
        if let Reading::Present(io) = &mut window.io {
            let of = Some("postgres:7");
            let temporary = test_io::flow(of, Role::Temp, Direction::Write, 40, 0.1);
            let log = test_io::flow(of, Role::Log, Direction::Write, 20, 0.1);
            io.flows = Reading::Present(vec![temporary, log]);
        }
        assert!((gain(&window) - 1.0 / 0.3).abs() < 1e-9);
        // Another database's flood is no burst of its own.
        if let Reading::Present(io) = &mut window.io
            && let Reading::Present(writers) = &mut io.writers
        {
            writers[0].database = Some("mysql:8".to_owned());
        }
        let finding = found(evaluate(&window)).remove(0);
        assert_eq!(finding.remedy.as_deref(), Some("dirty-limits"));
    }

    #[test]
    fn a_groups_own_threshold_is_not_the_machines() {
        let mut window = test_window::postgres();
        window.io = test_io::io(Vec::new());
        test_window::trace(&mut window, &[(Doing::OnCpu, 5.0), (Doing::DirtyThrottled, 5.0)]);
        let bytes = |mib| Reading::Present(Bytes::from_mib(mib));
        let group = MemoryGroup {
            max_bytes: bytes(200),
            usage_bytes: bytes(100),
            file_bytes: bytes(50),
            shmem_bytes: bytes(0),
            at_limit: Reading::Present(0),
            ..MemoryGroup::unknown("/db", "max")
        };
        let limit = test_window::limit("/db", Bytes(1), Bytes(0));
        let mut cgroup = test_window::cgroup(vec![limit]).into_value().unwrap();
        cgroup.memory = Reading::Present(vec![group]);
        window.end.databases[0].cgroup = Reading::Present(cgroup);
        let finding = found(evaluate(&window)).remove(0);
        assert_eq!(finding.remedy, None, "a tenth of the machine's threshold is changed");
        assert!(finding.fix.starts_with("raise the memory limit"), "{}", finding.fix);
        if let Reading::Present(io) = &mut window.io
            && let Reading::Present(dirty) = &mut io.dirty
        {
            dirty.dirty_bytes = Bytes(70 << 20);
        }
        let finding = found(evaluate(&window)).remove(0);
        assert_eq!(finding.remedy.as_deref(), Some("dirty-limits"));
    }

    #[test]
    fn near_the_threshold_is_worth_knowing() {
        let mut window = test_window::postgres();
        window.io = test_io::io(Vec::new());
        test_window::trace(&mut window, &[(Doing::OnCpu, 5.0)]);
        assert!(found(evaluate(&window)).is_empty());
        if let Reading::Present(io) = &mut window.io
            && let Reading::Present(dirty) = &mut io.dirty
        {
            dirty.writeback_bytes = Bytes(90 << 20);
        }
        let findings = found(evaluate(&window));
        assert!(findings[0].tax.is_none() && findings[0].severity == Severity::Info);
    }
}
