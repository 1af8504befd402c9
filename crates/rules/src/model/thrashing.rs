//! Neighbours that read again and again what their own memory limit evicts: what that costs a database
//! beside them, on its disk and on its CPUs.
//!
//! Both costs are parts of what all neighbours cost it (`shared-filesystem`, `cpu-contended`), so that what
//! is charged here is charged there no more.

use crate::model::accounting;
use crate::model::contention::Contention;
use crate::model::disk_charges;
use crate::model::disk_neighbours;
use crate::model::memory_limits::{is_below, nearest_met_limit, own_group};
use crate::model::stall::{Stall, WORTH};
use std::collections::BTreeMap;
use untax_core::pressure::GroupMemory;
use untax_core::window::{Other, Pair};
use untax_core::{Bytes, Interval, Window};

/// A group whose limit is in the way of its own processes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thrasher<'a> {
    /// The group with the limit.
    pub limited: &'a str,
    /// Pages that its processes read again soon after they were evicted.
    pub read_again_pages: u64,
    /// Memory that they took, pages.
    pub taken_pages: u64,
}

/// What such neighbours cost a database: at least [`WORTH`] of its active time together.
pub struct Thrashing<'a> {
    /// They, the one that read most again first.
    pub groups: Vec<Thrasher<'a>>,
    /// The part (0..1) of what others cost it on its disks.
    pub disk: Interval,
    /// The part (0..1) of what neighbours cost it on its CPUs.
    pub cpu: Interval,
    /// How long its CPUs were in the kernel for that, s.
    pub kernel_s: Interval,
    /// All of it.
    pub stall: Stall,
}

/// The neighbours of a database that read again what their own limits evict. A limit that the database is
/// under too is not theirs alone: `neighbour-reclaim` and `reclaim-stall` have that.
pub fn thrashers<'a>(window: &'a Window, pair: &Pair<'a>) -> Vec<Thrasher<'a>> {
    let mut found: BTreeMap<&str, Thrasher> = BTreeMap::new();
    for (group, limited) in limited_neighbours(window, pair) {
        let Some(again) = group.read_again_pages.value().copied().filter(|again| *again > 0) else {
            continue;
        };
        let none = Thrasher { limited, read_again_pages: 0, taken_pages: 0 };
        let thrasher = found.entry(limited).or_insert(none);
        thrasher.read_again_pages += again;
        thrasher.taken_pages += group.taken_pages;
    }
    let mut found: Vec<Thrasher> = found.into_values().collect();
    found.sort_by_key(|thrasher| std::cmp::Reverse(thrasher.read_again_pages));
    found
}

/// The groups that met a limit which the database is not under, each with the one of that limit.
fn limited_neighbours<'a>(
    window: &'a Window,
    pair: &Pair<'a>,
) -> impl Iterator<Item = (&'a GroupMemory, &'a str)> {
    let groups = window.groups.value().map(Vec::as_slice).unwrap_or_default();
    let own = own_group(pair).unwrap_or("/");
    let covers = |group: &str, path: &str| group == path || is_below(path, group);
    let limited = move |group: &'a GroupMemory| {
        let limited = nearest_met_limit(groups, &group.cgroup);
        Some((group, limited.filter(|limited| !covers(limited, own))?))
    };
    groups.iter().filter(move |group| !covers(own, &group.cgroup)).filter_map(limited)
}

/// Why it is not known whether a neighbour that met its own limit reads again what that evicts; `None` where it
/// is known of all of them.
pub fn uncounted_reads(window: &Window, pair: &Pair) -> Option<String> {
    limited_neighbours(window, pair).find_map(|(group, limited)| {
        let why = group.read_again_pages.why()?;
        Some(format!("whether {limited} reads again what its limit evicts is not known: {why}"))
    })
}

impl<'a> Thrashing<'a> {
    /// What it comes to, if it is worth a finding.
    pub fn of(window: &'a Window, pair: &Pair<'a>) -> Option<Self> {
        let groups = thrashers(window, pair);
        if groups.is_empty() {
            return None;
        }
        let disk = disk_part(window, pair, &groups);
        let (cpu, kernel_s) = cpu_part(window, pair, &groups);
        let waiting = disk_charges::charged_stall(window, pair, |charged| charged.neighbours);
        let disk_share = waiting.map_or(Interval::exact(0.0), |stall| stall.share.times(disk));
        let contention = Contention::of(window, pair).into_value().flatten();
        let cpu_share = contention.map_or(Interval::exact(0.0), |contention| {
            contention.stall.share.scale(contention.part).times(cpu)
        });
        let stall = Stall::of(window, pair, |_| false).into_value().flatten()?;
        let stall =
            stall.plus_share(disk_share).plus_share(cpu_share).with_freed_time(kernel_s.mid);
        (stall.share.mid >= WORTH).then_some(Self { groups, disk, cpu, kernel_s, stall })
    }
}

impl Thrashing<'_> {
    /// What is left to other causes of the time (s) for which a process had the database's CPUs.
    pub fn rest_s(&self, other: &Other, taken_s: f64) -> f64 {
        taken_s - kernel_s_of(&self.groups, other, taken_s).map_or(0.0, |kernel_s| kernel_s.mid)
    }
}

/// The part of the time that others keep a database's disks busy which they read again in: their reads' part of
/// it, times what is read again of their reads. Which disks a group reads from is not counted: at least what
/// the reads from other disks cannot hold is from these, at most all.
fn disk_part(window: &Window, pair: &Pair, groups: &[Thrasher]) -> Interval {
    let Some(io) = window.io.value() else { return Interval::exact(0.0) };
    let page = window.end.host.base_page_bytes.value().copied().unwrap_or(Bytes::KIB_4).0 as f64;
    let again: f64 = groups.iter().map(|group| group.read_again_pages as f64 * page).sum();
    let reads = disk_neighbours::reads_of_others(io, &pair.end.id);
    if reads.here_bytes <= 0.0 {
        return Interval::exact(0.0);
    }
    let part = |bytes: f64, of: f64| (bytes / of).clamp(0.0, 1.0);
    let low = part(again - reads.elsewhere_bytes, reads.here_bytes);
    let mid = part(again, reads.here_bytes + reads.elsewhere_bytes);
    Interval::new(low, mid, part(again, reads.here_bytes)).scale(reads.part_of_occupied)
}

/// The part of the neighbours' time on a database's CPUs that is in the kernel for pages read again, and that
/// time. To get a page, and to free one for it, takes as long whether it was there before or not: of the
/// kernel's time as much is for pages read again as they are of all that was taken. At most all of it is;
/// where the kernel's time is not known, at most all there is.
fn cpu_part(window: &Window, pair: &Pair, groups: &[Thrasher]) -> (Interval, Interval) {
    let neighbours = accounting::neighbours(window, pair);
    let all_s: f64 = neighbours.iter().map(|(_, taken_s)| taken_s).sum();
    let of_one = |other: &Other, taken_s: f64| kernel_s_of(groups, other, taken_s);
    let each = neighbours.iter().filter_map(|(other, taken_s)| of_one(other, *taken_s));
    let kernel_s = each.fold(Interval::exact(0.0), Interval::plus);
    if all_s > 0.0 { (kernel_s.scale(1.0 / all_s), kernel_s) } else { (kernel_s, kernel_s) }
}

/// The same of one process that had a database's CPUs for `taken_s` seconds; none of one that is in no such group.
fn kernel_s_of(groups: &[Thrasher], other: &Other, taken_s: f64) -> Option<Interval> {
    let path = other.cgroup.value()?;
    let group = groups.iter().find(|g| g.limited == path || is_below(path, g.limited))?;
    let again = group.read_again_pages as f64 / group.taken_pages.max(1) as f64;
    Some(match other.system_s {
        Some(system_s) => {
            let system = taken_s * (system_s.0 / other.cpu_s.0.max(f64::MIN_POSITIVE)).min(1.0);
            Interval::new(0.0, system * again.min(1.0), system)
        }
        None => Interval::new(0.0, 0.0, taken_s),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;
    use crate::model::stall;
    use crate::test_io::{flow, io};
    use crate::test_window;
    use untax_core::activity::Doing;
    use untax_core::io::{Direction, Role};
    use untax_core::{Finding, Reading, Seconds};

    fn group(cgroup: &str, at_limit: u64, again: u64, taken: u64) -> GroupMemory {
        GroupMemory {
            cgroup: cgroup.to_owned(),
            at_limit,
            taken_pages: taken,
            pages_each: 1.0,
            read_again_pages: Reading::Present(again),
            stalled_s: Reading::absent("v1"),
        }
    }

    /// A healthy PostgreSQL that waits for its log, and for CPUs, beside a pod that reads 4000 pages from its
    /// disk, of which it reads so many again, in a second and a half on its CPUs.
    fn window(again: u64, at_limit: u64) -> Window {
        let mut window = test_window::postgres();
        let doing = [(Doing::OnCpu, 2.0), (Doing::Contended, 4.0), (Doing::Disk, 4.0)];
        test_window::trace(&mut window, &doing);
        let limit = test_window::limit("/pod/db", Bytes(1), Bytes(0));
        window.end.databases[0].cgroup = test_window::cgroup(vec![limit]);
        let mut theirs = flow(None, Role::Other, Direction::Read, 4000, 0.002);
        theirs.bytes = Bytes(4000 * 4096);
        let mine = flow(Some("postgres:7"), Role::Log, Direction::Write, 1000, 0.002);
        window.io = io(vec![mine, theirs]);
        window.groups = Reading::Present(vec![
            group("/thrash", at_limit, 0, 0),
            group("/thrash/app", 0, again, 4000),
            group("/pod/db", 0, 0, 50),
        ]);
        let reader = Other {
            cgroup: Reading::Present("/thrash/app".to_owned()),
            system_s: Some(Seconds(6.0)),
            ..Other::unknown(50, "cat", Seconds(8.0), "not read")
        };
        window.others = vec![reader];
        window
    }

    fn taxes(window: &Window) -> Vec<(&'static str, Finding)> {
        let rules = ["neighbour-reclaim", "shared-filesystem", "cpu-contended", "reclaim-stall"];
        let found = |rule: &'static str| {
            let found = test_window::found((catalogue::find(rule).unwrap().evaluate)(window));
            found.into_iter().map(move |finding| (rule, finding))
        };
        rules.into_iter().flat_map(found).collect()
    }

    fn share(taxes: &[(&str, Finding)], rule: &str) -> f64 {
        let of = taxes.iter().filter(|(of, _)| *of == rule);
        of.filter_map(|(_, finding)| finding.tax.as_ref()).map(|tax| tax.share).sum()
    }

    #[test]
    fn a_pod_that_thrashes_inside_its_own_limit_is_one_cause() {
        let scattered = taxes(&window(0, 0));
        assert!(share(&scattered, "neighbour-reclaim") <= 0.0);
        let thrashing = taxes(&window(4000, 90));
        let named = &thrashing[0].1;
        assert!(named.summary.contains("behind /thrash, which thrashes"), "{}", named.summary);
        let tax = named.tax.as_ref().unwrap();
        assert!(tax.modelled && tax.share > 0.05, "{tax:?}");
        assert_eq!(named.severity, stall::severity(tax.interval()), "as much as is known at least");
        // All that it read and three quarters of its time on the CPUs.
        for (rule, left) in [("shared-filesystem", 0.0), ("cpu-contended", 0.25)] {
            let (before, after) = (share(&scattered, rule), share(&thrashing, rule));
            assert!(
                before > 0.05 && (after - left * before).abs() < 1e-9,
                "{rule}: {before} {after}"
            );
        }
        // A quarter of its 0.8 CPUs.
        let named = |taxes: &[(&str, Finding)]| {
            let of = taxes.iter().find(|(rule, _)| *rule == "cpu-contended");
            of.map(|(_, finding)| finding.summary.clone()).unwrap_or_default()
        };
        assert!(named(&scattered).contains("cat (0.8 CPUs)"), "{}", named(&scattered));
        assert!(named(&thrashing).contains("cat (0.2 CPUs)"), "{}", named(&thrashing));
        // What is charged is what the others no longer are: nothing twice, nothing lost.
        let sum = |taxes: &[(&str, Finding)]| -> f64 {
            ["neighbour-reclaim", "shared-filesystem", "cpu-contended"]
                .iter()
                .map(|rule| share(taxes, rule))
                .sum()
        };
        assert!((sum(&scattered) - sum(&thrashing)).abs() < 1e-9);
    }

    #[test]
    fn pages_that_are_read_again_are_as_large_a_part_as_they_are_of_all() {
        let half = taxes(&window(2000, 90));
        let scattered = taxes(&window(0, 0));
        let disk = share(&scattered, "shared-filesystem") / 2.0;
        let cpu = share(&scattered, "cpu-contended") * 0.75 / 2.0;
        assert!((share(&half, "neighbour-reclaim") - disk - cpu).abs() < 1e-9);
    }

    #[test]
    fn with_a_limit_that_is_large_enough_nothing_thrashes() {
        // It evicts nothing, or nobody read it again.
        for window in [window(4000, 0), window(0, 90)] {
            assert!(share(&taxes(&window), "neighbour-reclaim") <= 0.0);
        }
    }

    #[test]
    fn pages_read_again_that_nobody_counted_are_a_gap_and_not_zero() {
        let gaps = |at_limit| {
            let mut window = window(4000, at_limit);
            let Reading::Present(groups) = &mut window.groups else { panic!("they were read") };
            groups[1].read_again_pages = Reading::absent("this kernel does not count it");
            let rule = catalogue::find("neighbour-reclaim").unwrap();
            assert!(share(&taxes(&window), "neighbour-reclaim") <= 0.0);
            test_window::gaps((rule.evaluate)(&window))
        };
        let why = "whether /thrash reads again what its limit evicts is not known: this kernel \
                   does not count it";
        assert!(gaps(90).iter().any(|gap| gap.contains(why)), "{:?}", gaps(90));
        assert!(!gaps(0).iter().any(|gap| gap.contains("/thrash")), "it met no limit");
    }

    #[test]
    fn reads_from_other_disks_may_be_those_that_are_read_again() {
        let mut window = window(4000, 90);
        let mut elsewhere = flow(None, Role::Other, Direction::Read, 4000, 0.002);
        (elsewhere.device, elsewhere.bytes) = ("vdb".to_owned(), Bytes(4000 * 4096));
        if let Reading::Present(io) = &mut window.io
            && let Reading::Present(flows) = &mut io.flows
        {
            flows.push(elsewhere);
        }
        let pair = window.databases().next().unwrap();
        let disk = Thrashing::of(&window, &pair).unwrap().disk;
        assert!((disk.low, disk.high) == (0.0, 1.0) && (disk.mid - 0.5).abs() < 1e-9, "{disk:?}");
    }

    #[test]
    fn time_in_the_kernel_that_nobody_counted_is_not_charged_but_bounds_it() {
        let mut window = window(4000, 90);
        let known = taxes(&window)[0].1.tax.clone().unwrap();
        window.others[0].system_s = None;
        let unknown = taxes(&window)[0].1.tax.clone().unwrap();
        assert!(unknown.share < known.share && unknown.high > known.high, "{unknown:?} {known:?}");
    }

    #[test]
    fn a_limit_that_the_database_is_under_is_no_neighbours_own() {
        let mut window = window(4000, 0);
        window.groups = Reading::Present(vec![
            group("/pod", 90, 0, 0),
            group("/pod/backup", 0, 4000, 4000),
            group("/pod/db", 0, 0, 50),
        ]);
        let pair = window.databases().next().unwrap();
        assert!(thrashers(&window, &pair).is_empty());
        window.groups = Reading::Present(vec![group("/pod/db", 90, 4000, 4000)]);
        let pair = window.databases().next().unwrap();
        assert!(thrashers(&window, &pair).is_empty(), "its own");
    }
}
