//! `oom-near`: a memory limit is about to be met with nothing left to free, or the kernel kills already.

use crate::evidence;
use crate::model::stall;
use crate::model::without_tax;
use crate::rule::{Rule, Scope, TaxBase};
use untax_core::database::{Cgroup, MemoryGroup, Model};
use untax_core::finding::Says;
use untax_core::window::Pair;
use untax_core::{Bytes, Diagnosis, Evidence, Finding, Reading, Severity, Window};

pub const RULE: Rule = Rule {
    id: "oom-near",
    summary: "memory that cannot be freed comes close to the limit of the control group",
    what: "The kernel can drop page cache, but not a buffer pool or a heap. Once only such memory \
           is left under a limit, every allocation goes through reclaim that finds nothing. \
           Clients time out long before the kernel kills the database. It is better to refuse work \
           early.",
    method: "The rule compares the growth of memory in the window with the room that is left below \
             the limit. It has no tax.",
    measured: "Processes of the database's group that the kernel killed in the window make a \
               finding of high severity (oom_kill of memory.events, or of memory.oom_control in \
               v1). Earlier kills are info. Without kills, the rule compares memory.current with \
               memory.max of each group up to the root. The rule subtracts the page cache of files \
               and, in v2, slab_reclaimable (memory.stat). Other programs may be in these groups \
               too; the worst group is reported. The growth in the window gives the time that is \
               left. The rule finds a group with less than 5 % left, or with less than 15 minutes \
               left at this speed. With a quarter or more left, growth by less than 2 % of the \
               limit in the window may come from one query; its severity is low. The severity is \
               also low where shared memory fills (PostgreSQL) and fits in: this growth may end by \
               itself. Until the limit is met, this takes memory and no time, so the tax is \
               unmeasured. After that, reclaim-stall charges the time that reclaim takes.",
    fix: "Raise the limit, or give the database less: maxmemory, shared_buffers, work_mem, fewer \
          connections. Let the application fail fast meanwhile.",
    sources: &[
        "kernel.org: admin-guide/cgroup-v2, memory.stat, memory.events",
        "kernel.org: admin-guide/cgroup-v1/memory",
    ],
    privilege: "none: the files of a control group are readable by all as a rule",
    minimum_kernel: "4.5 (cgroup v2), 2.6.25 (v1)",
    cost: "six files for each group with a limit",
    tax_base: TaxBase::ActiveTime,
    scope: Scope::Platform,
    evaluate,
};

/// With less than this share left, a burst of work may take it.
const TIGHT: f64 = 0.05;

/// With this share left and more …
const MUCH: f64 = 0.25;

/// … growth by less than this share of the limit a second may be one query's: 2 % in ten seconds.
const NOTABLE_PER_S: f64 = 0.002;

/// A person can act within this.
const SOON_S: f64 = 15.0 * 60.0;

/// No time is left to think.
const NOW_S: f64 = 5.0 * 60.0;

fn evaluate(window: &Window) -> Vec<Diagnosis> {
    let found = stall::per_database(window, RULE.id, |pair| {
        let groups = pair.end.cgroup.as_ref().and_then(|cgroup| cgroup.memory.as_ref());
        let killed = killed_finding(window, pair);
        if let Some(killed) = killed.as_ref().filter(|killed| killed.severity > Severity::Info) {
            return Reading::Present(Some(Says::Found(killed.clone())));
        }
        groups.and_then(|groups| {
            // Of several that are as bad, the nearest is the last one here.
            let found = groups.iter().enumerate().rev();
            let found = found.filter_map(|(above, group)| group_finding(pair, group, above > 0));
            let worst = found.max_by_key(|finding| finding.severity);
            match worst.or(killed) {
                Some(finding) => Reading::Present(Some(Says::Found(finding))),
                // A group of which too little is known may be the one.
                None => groups.iter().find_map(gap).unwrap_or(Reading::Present(None)),
            }
        })
    });
    without_tax::with_reasons(window, found, |_| NO_TIME.to_owned())
}

const NO_TIME: &str =
    "it takes memory, and no time until the limit is met; from then on reclaim-stall is its tax";

/// That the kernel killed processes of the database's group.
fn killed_finding(window: &Window, pair: &Pair) -> Option<Finding> {
    let cgroup = pair.end.cgroup.value()?;
    let so_far = *cgroup.oom_kills.value()?;
    // A database that was killed whole and started again is another one in the same group.
    let path = cgroup.memory_path();
    let mut before = window.start.databases.iter().filter_map(|d| d.cgroup.value());
    let before = before.find(|group| group.memory_path() == path);
    let before = before.and_then(|group| group.oom_kills.value());
    let killed = before.and_then(|before| so_far.checked_sub(*before)).unwrap_or(0);
    if so_far == 0 {
        return None;
    }
    let source = format!("oom_kill of {}", path.unwrap_or("its group"));
    let mut evidence = vec![Evidence::new(&evidence::OOM_KILLS_SO_FAR, so_far, &source)];
    if before.is_some() {
        evidence.insert(0, Evidence::new(&evidence::OOM_KILLS, killed, &source));
    }
    let tightest = cgroup.tightest_memory();
    let hits = tightest.and_then(|group| group.at_limit.value());
    evidence.extend(hits.map(|n| Evidence::new(&evidence::AT_LIMIT, *n, "events or failcnt")));
    if let Some((group, limit)) = tightest.and_then(|group| Some((group, group.limit()?))) {
        let source = format!("memory.max or memory.limit_in_bytes of {}", group.cgroup);
        evidence.push(Evidence::new(&evidence::MEMORY_LIMIT, limit.0, source));
        let used = group.usage_bytes.value();
        evidence.extend(used.map(|u| Evidence::new(&evidence::MEMORY_CHARGED, u.0, "its usage")));
    }
    let (severity, summary) = match killed {
        0 => (
            Severity::Info,
            format!("the kernel killed {so_far} of its processes earlier, for lack of memory"),
        ),
        _ => (
            Severity::High,
            format!(
                "the kernel killed {killed} of its processes in the window ({so_far} since its group \
                 was made)"
            ),
        ),
    };
    Some(Finding {
        evidence,
        remedy: tightest.map(|_| "memory-limit".to_owned()),
        ..Finding::new(
            RULE.id,
            severity,
            summary,
            if tightest.is_some() { FIX } else { FIX_OF_MACHINE },
        )
    })
}

/// The first gap among what has to be known of a group that is not without a limit.
fn gap(group: &MemoryGroup) -> Option<Reading<Option<Says>>> {
    let MemoryGroup { max_bytes, usage_bytes, file_bytes, shmem_bytes, .. } = group;
    let limited = !matches!(max_bytes, Reading::Absent(_));
    let needed = [max_bytes, usage_bytes, file_bytes, shmem_bytes];
    let gap = needed.into_iter().find(|reading| limited && !reading.is_present())?;
    Some(gap.clone().map(|_| None))
}

/// Of a group that is `above` the nearest one with a limit others are members, most likely.
fn group_finding(pair: &Pair, group: &MemoryGroup, above: bool) -> Option<Finding> {
    let (limit, used) = (group.max_bytes.value()?.0 as f64, group.unreclaimable()?.0 as f64);
    let left = (limit - used).max(0.0);
    let grown = growth(pair, group);
    let per_s = grown.map(|grown| grown / pair.seconds);
    let lasts_s = per_s.filter(|per_s| *per_s > 0.0).map_or(f64::INFINITY, |per_s| left / per_s);
    let is_slow = per_s.is_some_and(|per_s| per_s < NOTABLE_PER_S * limit);
    let maybe_brief = left >= MUCH * limit && is_slow;
    if left >= TIGHT * limit && lasts_s >= SOON_S {
        return None;
    }
    let fills = unfilled_bytes(pair, group).filter(|fills| left - fills >= TIGHT * limit);
    let limit_of = if above { "that group's limit" } else { "its limit" };
    let when = if lasts_s < SOON_S {
        format!("{lasts_s:.0} s from {limit_of} at this speed")
    } else {
        format!("{} from {limit_of}", Bytes(left as u64))
    };
    let of = if above {
        format!("in its parent group {}", group.cgroup)
    } else {
        "of its memory".to_owned()
    };
    let severity = if maybe_brief || fills.is_some() {
        Severity::Low
    } else if lasts_s < NOW_S || left < 0.01 * limit {
        Severity::High
    } else {
        Severity::Medium
    };
    let mut evidence = vec![
        Evidence::new(
            &evidence::MEMORY_LIMIT,
            limit as u64,
            format!("memory.max or memory.limit_in_bytes of {}", group.cgroup),
        ),
        Evidence::new(&evidence::MEMORY_FIXED, used as u64, "usage less page cache and slab"),
    ];
    let pool = |bytes| Evidence::new(&evidence::MEMORY_TO_COME, bytes as u64, "its memory");
    evidence.extend(fills.map(pool));
    evidence.extend(per_s.map(|s| Evidence::new(&evidence::MEMORY_GROWTH, s, "over the window")));
    if let Some(count) = group.at_limit.value() {
        evidence.push(Evidence::new(&evidence::AT_LIMIT, *count, "events or failcnt"));
    }
    let cgroup = pair.end.cgroup.value();
    let is_tightest = cgroup.and_then(Cgroup::tightest_memory) == Some(group);
    Some(Finding {
        evidence,
        // It raises the lowest limit.
        remedy: is_tightest.then(|| "memory-limit".to_owned()),
        ..Finding::new(
            RULE.id,
            severity,
            format!("{} {of} cannot be freed, {when}", Bytes(used as u64)),
            if above { FIX_ABOVE } else { FIX },
        )
    })
}

const FIX: &str = "raise the limit of the group, or give the database less; refuse work early";

const FIX_OF_MACHINE: &str =
    "the machine ran out of memory: give the databases less, or move one to another host";

const FIX_ABOVE: &str =
    "find the other program that grows in that group, or raise its limit; refuse work early";

/// What the shared memory of its processes may still grow by until it is as full as it was made, where
/// that is most of what grows; huge pages are no memory of the group.
fn unfilled_bytes(pair: &Pair, group: &MemoryGroup) -> Option<f64> {
    let memory = &pair.end.memory;
    let has_huge_pages = memory.hugetlb_bytes.value()?.0 > 0;
    if pair.end.model != Model::Process || has_huge_pages {
        return None;
    }
    let (now, before) =
        (group.shmem_bytes.value()?.0, earlier_group(pair, group)?.shmem_bytes.value()?.0);
    let fills = now.saturating_sub(before) as f64 >= MOSTLY * growth(pair, group)?;
    let left = memory.shared_bytes.value()?.0.saturating_sub(now);
    (fills && left > 0).then_some(left as f64)
}

/// What is most of something.
const MOSTLY: f64 = 0.9;

/// How much more of the group's memory could not be freed at the end of the window.
fn growth(pair: &Pair, group: &MemoryGroup) -> Option<f64> {
    Some(group.unreclaimable()?.0 as f64 - earlier_group(pair, group)?.unreclaimable()?.0 as f64)
}

/// The group at the start of the window.
fn earlier_group<'a>(pair: &Pair<'a>, group: &MemoryGroup) -> Option<&'a MemoryGroup> {
    let start = pair.start.filter(|_| pair.seconds > 0.0)?;
    let start: &Reading<Vec<MemoryGroup>> = &start.cgroup.value()?.memory;
    start.value()?.iter().find(|found| found.cgroup == group.cgroup)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_window::{self, found, gaps};

    fn group(used_mib: u64) -> MemoryGroup {
        let bytes = |mib| Reading::Present(Bytes::from_mib(mib));
        MemoryGroup {
            max_bytes: bytes(1000),
            usage_bytes: bytes(used_mib + 100),
            file_bytes: bytes(150),
            shmem_bytes: bytes(50),
            at_limit: Reading::Present(0),
            ..MemoryGroup::unknown("/db", "max")
        }
    }

    fn window(from_mib: u64, to_mib: u64) -> Window {
        let mut window = test_window::postgres();
        for (snapshot, used) in [(&mut window.start, from_mib), (&mut window.end, to_mib)] {
            let limit = test_window::limit("/db", Bytes(1), Bytes(0));
            let mut groups = test_window::cgroup(vec![limit]).into_value().unwrap();
            groups.memory = Reading::Present(vec![group(used)]);
            snapshot.databases[0].cgroup = Reading::Present(groups);
        }
        window
    }

    fn grown(from_mib: u64, to_mib: u64) -> Vec<Finding> {
        found(evaluate(&window(from_mib, to_mib)))
    }

    #[test]
    fn growth_tells_how_long_it_lasts() {
        // 500 MiB left, 100 MiB in ten seconds: fifty seconds.
        let findings = grown(400, 500);
        assert!(findings[0].summary.contains("50 s from its limit"), "{}", findings[0].summary);
        assert_eq!(findings[0].severity, Severity::High);
        assert!(grown(500, 500).is_empty());
        assert!(grown(600, 500).is_empty(), "it shrinks");
        assert_eq!(grown(490, 500)[0].severity, Severity::Low, "with half of it left");
        assert_eq!(grown(890, 900)[0].severity, Severity::High);
    }

    #[test]
    fn what_takes_no_time_yet_says_so() {
        let said = evaluate(&window(400, 500));
        assert!(found(said.clone())[0].tax.is_none());
        assert_eq!(gaps(said), [format!("tax: {NO_TIME}")]);
        assert!(gaps(evaluate(&window(500, 500))).is_empty(), "nothing is found");
    }

    #[test]
    fn a_pool_that_fills_is_full_one_day() {
        // 500 MiB left, of which shared memory may fill what it is larger than these.
        let severity_with = |huge: Reading<Bytes>, pool_mib, filled_mib: [u64; 2]| {
            let mut window = window(400, 500);
            let ends = [&mut window.start, &mut window.end];
            for (snapshot, filled_mib) in ends.into_iter().zip(filled_mib) {
                let database = &mut snapshot.databases[0];
                database.memory.shared_bytes = Reading::Present(Bytes::from_mib(pool_mib));
                database.memory.hugetlb_bytes = huge.clone();
                let Reading::Present(cgroup) = &mut database.cgroup else { panic!("it has one") };
                let Reading::Present(groups) = &mut cgroup.memory else { panic!("it is limited") };
                groups[0].shmem_bytes = Reading::Present(Bytes::from_mib(filled_mib));
                groups[0].file_bytes = Reading::Present(Bytes::from_mib(100 + filled_mib));
            }
            found(evaluate(&window))[0].severity
        };
        let severity = |pool, filled| severity_with(Reading::Present(Bytes(0)), pool, filled);
        assert_eq!(severity(400, [50, 150]), Severity::Low);
        for huge in [Reading::Denied("status".to_owned()), Reading::Present(Bytes::MIB_2)] {
            assert_eq!(severity_with(huge, 400, [50, 150]), Severity::High, "it may be no pool's");
        }
        assert_eq!(severity(400, [50, 50]), Severity::High, "something else grows");
        assert_eq!(severity(150, [50, 150]), Severity::High, "it is full");
        assert_eq!(severity(610, [50, 150]), Severity::High, "it does not fit");
    }

    #[test]
    fn growth_that_is_not_known_is_not_zero() {
        let known = |finding: &Finding| finding.evidence.iter().any(|one| one.name == "growth");
        assert!(known(&grown(960, 960)[0]));
        let mut window = window(960, 960);
        window.start.databases.clear();
        assert!(!known(&found(evaluate(&window))[0]));
    }

    #[test]
    fn what_cannot_be_read_of_a_group_is_a_gap() {
        let mut window = window(500, 500);
        let mut gaps_with = |group: MemoryGroup| {
            let Reading::Present(cgroup) = &mut window.end.databases[0].cgroup else {
                panic!("it has a group")
            };
            cgroup.memory = Reading::Present(vec![group]);
            gaps(evaluate(&window))
        };
        let denied = || Reading::Denied("memory.max".to_owned());
        let unread = MemoryGroup { max_bytes: denied(), ..group(500) };
        assert_eq!(gaps_with(unread), ["permission denied: memory.max"]);
        let failed = Reading::Failed("no shmem".to_owned());
        let unread = MemoryGroup { shmem_bytes: failed, ..group(500) };
        assert_eq!(gaps_with(unread), ["could not be read: no shmem"]);
        let unlimited = Reading::Absent("unlimited".to_owned());
        let unread = MemoryGroup { max_bytes: unlimited, usage_bytes: denied(), ..group(500) };
        assert!(gaps_with(unread).is_empty());
    }

    #[test]
    fn of_groups_the_worst_is_told_and_whose_it_is() {
        let mut window = window(400, 400);
        for (snapshot, used) in [(&mut window.start, 400), (&mut window.end, 990)] {
            let Reading::Present(cgroup) = &mut snapshot.databases[0].cgroup else {
                panic!("it has a group")
            };
            let pods = MemoryGroup { cgroup: "/pods".to_owned(), ..group(used) };
            let own =
                MemoryGroup { max_bytes: Reading::Present(Bytes::from_mib(500)), ..group(400) };
            cgroup.memory = Reading::Present(vec![own, pods]);
        }
        let of_pods = found(evaluate(&window)).remove(0);
        assert_eq!((of_pods.severity, of_pods.remedy.as_deref()), (Severity::High, None));
        assert!(of_pods.summary.contains("in its parent group /pods"), "{}", of_pods.summary);
        let Reading::Present(cgroup) = &mut window.end.databases[0].cgroup else { unreachable!() };
        let Reading::Present(groups) = &mut cgroup.memory else { unreachable!() };
        groups[0].usage_bytes = Reading::Present(Bytes::from_mib(598));
        let own = found(evaluate(&window)).remove(0);
        assert!(own.summary.contains("of its memory"), "as bad, and nearer: {}", own.summary);
        assert_eq!(own.remedy.as_deref(), Some("memory-limit"));
    }

    /// A window in which the kernel's count of killed processes of its group went so, 500 MiB below the
    /// limit.
    fn killing(before: Reading<u64>, after: u64) -> Window {
        let mut window = window(500, 500);
        let counts = [before, Reading::Present(after)];
        for (snapshot, count) in [&mut window.start, &mut window.end].into_iter().zip(counts) {
            let Reading::Present(cgroup) = &mut snapshot.databases[0].cgroup else {
                panic!("it has a group")
            };
            cgroup.oom_kills = count;
        }
        window
    }

    #[test]
    fn a_process_that_was_killed_is_told_however_much_is_left() {
        let finding = found(evaluate(&killing(Reading::Present(3), 5))).remove(0);
        assert_eq!(finding.severity, Severity::High);
        assert!(finding.summary.contains("killed 2 of its processes in the window (5"));
        assert_eq!(finding.remedy.as_deref(), Some("memory-limit"));
        let ids: Vec<&str> = finding.evidence.iter().map(|one| one.id.as_str()).collect();
        assert!(ids.contains(&"oom-kills") && ids.contains(&"memory-limit-hits"), "{ids:?}");
    }

    #[test]
    fn earlier_kills_are_worth_knowing_and_none_are_nothing() {
        for before in [Reading::Present(5), Reading::Absent("not in the capture".to_owned())] {
            let finding = found(evaluate(&killing(before, 5))).remove(0);
            assert_eq!(finding.severity, Severity::Info, "{}", finding.summary);
        }
        assert!(found(evaluate(&killing(Reading::Present(0), 0))).is_empty());
    }

    #[test]
    fn a_database_that_was_killed_whole_and_restarted_is_told_by_its_group() {
        let mut window = killing(Reading::Present(0), 1);
        window.start.databases[0].id = "postgres:5".to_owned();
        assert_eq!(found(evaluate(&window))[0].severity, Severity::High);
    }

    #[test]
    fn without_a_limit_it_was_the_machine_that_had_no_memory() {
        let mut window = killing(Reading::Present(0), 1);
        let Reading::Present(cgroup) = &mut window.end.databases[0].cgroup else { unreachable!() };
        cgroup.memory = Reading::Present(Vec::new());
        let finding = found(evaluate(&window)).remove(0);
        assert!(finding.fix.contains("machine") && finding.remedy.is_none(), "{}", finding.fix);
    }

    #[test]
    fn tight_is_found_without_growth() {
        let findings = grown(960, 960);
        assert_eq!(findings[0].severity, Severity::Medium);
        assert!(findings[0].summary.contains("40 MiB from its limit"), "{}", findings[0].summary);
    }
}
