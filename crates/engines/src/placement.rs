//! Where a database's memory is and where its threads run, on a machine with several NUMA nodes.

use crate::database_view::DatabaseView;
use crate::process_table::Process;
use crate::thp;
use std::collections::BTreeMap;
use untax_core::Bytes;
use untax_core::Reading::{self, Absent, Failed, Present};
use untax_core::placement::{Balancing, OnNode, Placement, Task};
use untax_host::{Host, process};

/// What `numa_maps` costs for each resident GiB on 4 KiB pages. It walks the page tables under
/// `mmap_lock` as `smaps_rollup` does, and took 3.0 ms where that took 2.6 on a private anonymous
/// mapping of 1 GiB: a sixth more than the figure kept for that.
const WALK_MS_PER_GIB: f64 = 7.0;

/// The longest that `mmap_lock` of a process may be held for that.
const WALK_LIMIT_MS: f64 = 50.0;

/// The most threads that are looked at: one file each.
const MOST_TASKS: usize = 256;

/// Where it is; absent where there is one node only, where nothing is far.
pub(crate) fn read(view: &DatabaseView) -> Reading<Placement> {
    view.facts.numa.as_ref().and_then(|nodes| {
        if nodes.len() < 2 {
            return Absent("this machine has one NUMA node: no memory is far".to_owned());
        }
        let (memory, source) = memory(view);
        Present(Placement { memory, source, tasks: tasks(view), balancing: balancing(view) })
    })
}

/// From the process that used the CPUs most where that is cheap, otherwise from the control group,
/// if that holds nothing but this database.
fn memory(view: &DatabaseView) -> (Reading<Vec<OnNode>>, String) {
    let busiest = view.processes().max_by_key(|process| ticks(process));
    let pid = busiest.map_or(view.pid(), |process| process.stat.pid);
    let path = format!("/proc/{pid}/numa_maps");
    let resident = process::status(view.host, pid).and_then(|status| match status.resident {
        Some(resident) => Present(resident),
        None => Absent(format!("/proc/{pid}/status has no VmRSS")),
    });
    let walked = resident.and_then(|resident| {
        let ms = resident.0 as f64 / Bytes::GIB_1.0 as f64 * WALK_MS_PER_GIB;
        if ms > WALK_LIMIT_MS {
            let why = format!("reading {path} would hold the memory lock for about {ms:.0} ms");
            return Absent(why);
        }
        view.host.text(&path).parse(&path, |text| parse_maps(text))
    });
    if walked.is_present() {
        return (walked, path);
    }
    let page = view.facts.base_page_bytes.value().map_or(4096, |page| page.0);
    let counted = thp::own_group(view).and_then(|(directory, _)| {
        let path = format!("{directory}/memory.numa_stat");
        view.host.text(&path).parse(&path, |text| parse_group(text, page))
    });
    (walked.or_else(|| counted), "memory.numa_stat of its control group".to_owned())
}

fn ticks(process: &Process) -> u64 {
    process.stat.user_ticks.saturating_add(process.stat.system_ticks)
}

/// Adds up `N<node>=<pages>` of every mapping, in its page size. Mappings of programs, which are
/// read-only pages of files, are left out: they are shared with whoever else runs them.
fn parse_maps(text: &str) -> Option<Vec<OnNode>> {
    let mut nodes: BTreeMap<u32, u64> = BTreeMap::new();
    for line in text.lines() {
        let words = || line.split_ascii_whitespace();
        let value = |word: &str, key: &str| word.strip_prefix(key)?.strip_prefix('=')?.parse().ok();
        let data =
            words().any(|w| w == "huge" || w.starts_with("anon=") || w.starts_with("dirty="));
        let Some(kib) = words().find_map(|w| value(w, "kernelpagesize_kB")).filter(|_| data) else {
            continue;
        };
        for word in words() {
            let Some((node, pages)) = word.strip_prefix('N').and_then(|w| w.split_once('=')) else {
                continue;
            };
            let (node, pages): (u32, u64) = (node.parse().ok()?, pages.parse().ok()?);
            let sum = nodes.entry(node).or_default();
            *sum = sum.saturating_add(pages.saturating_mul(kib).saturating_mul(1024));
        }
    }
    on_nodes(nodes)
}

/// Of version 2 `anon N0=<bytes> …` and `file N0=<bytes> …`, which has shared memory in it; of
/// version 1 `total=<pages> N0=<pages> …`.
fn parse_group(text: &str, page: u64) -> Option<Vec<OnNode>> {
    let mut nodes: BTreeMap<u32, u64> = BTreeMap::new();
    for line in text.lines() {
        let unit = match line.split(['=', ' ']).next()? {
            "anon" | "file" if !line.contains("anon=") && !line.contains("file=") => 1,
            "total" => page,
            _ => continue,
        };
        for word in line.split_ascii_whitespace().filter_map(|word| word.strip_prefix('N')) {
            let (node, count) = word.split_once('=')?;
            let (node, count): (u32, u64) = (node.parse().ok()?, count.parse().ok()?);
            let sum = nodes.entry(node).or_default();
            *sum = sum.saturating_add(count.saturating_mul(unit));
        }
    }
    on_nodes(nodes)
}

/// Nothing on any node is no answer: something of every process is somewhere.
fn on_nodes(nodes: BTreeMap<u32, u64>) -> Option<Vec<OnNode>> {
    let found: Vec<OnNode> = nodes
        .into_iter()
        .filter(|(_, bytes)| *bytes > 0)
        .map(|(node, bytes)| OnNode { node, bytes: Bytes(bytes) })
        .collect();
    (!found.is_empty()).then_some(found)
}

/// Its threads: the processes of an engine that has many, the threads of one that has one.
fn tasks(view: &DatabaseView) -> Vec<Task> {
    let task = |stat: &process::Stat| {
        let ticks = stat.user_ticks.saturating_add(stat.system_ticks);
        Some(Task { id: stat.pid, cpu: stat.cpu?, ticks })
    };
    let mut found = Vec::new();
    for process in view.processes() {
        if found.len() >= MOST_TASKS {
            break;
        }
        if process.stat.threads <= 1 {
            found.extend(task(&process.stat));
            continue;
        }
        let threads = threads(view.host, process.stat.pid, MOST_TASKS - found.len());
        found.extend(threads.iter().filter_map(task));
    }
    found
}

fn threads(host: &Host, pid: u32, most: usize) -> Vec<process::Stat> {
    let names = host.names(&format!("/proc/{pid}/task")).into_value().unwrap_or_default();
    let stat = |name: &String| {
        let path = format!("/proc/{pid}/task/{name}/stat");
        host.text(&path).parse(&path, |text| process::parse_stat(text)).into_value()
    };
    names.iter().take(most).filter_map(stat).collect()
}

/// Control groups count it since 6.13; for single processes the kernel tells only of one thread.
fn balancing(view: &DatabaseView) -> Reading<Balancing> {
    thp::own_group(view).and_then(|(directory, _)| {
        let path = format!("{directory}/memory.stat");
        view.host.text(&path).and_then(|text| {
            let field = |name: &str| {
                text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
            };
            let (Some(faults), Some(moved)) =
                (field("numa_hint_faults"), field("numa_pages_migrated"))
            else {
                return Absent(format!("{path} does not count NUMA balancing"));
            };
            match (faults.trim().parse(), moved.trim().parse()) {
                (Ok(hint_faults), Ok(pages_migrated)) => {
                    Present(Balancing { hint_faults, pages_migrated })
                }
                _ => Failed(format!("{path} has an unexpected form")),
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_count_in_their_own_size_and_programs_do_not() {
        let maps = "\
            55d0 default file=/usr/bin/redis-server mapped=90 N1=90 kernelpagesize_kB=4\n\
            55d1 default heap anon=3 dirty=3 active=0 N0=1 N1=2 kernelpagesize_kB=4\n\
            7f10 bind:1 file=/anon_hugepage\\040(deleted) huge dirty=5 N1=5 kernelpagesize_kB=2048\n\
            7f20 default file=/dev/zero\\040(deleted) dirty=4 N0=4 kernelpagesize_kB=4\n\
            7f30 default\n";
        let node = |node, bytes| OnNode { node, bytes: Bytes(bytes) };
        let expected = vec![node(0, 5 * 4096), node(1, 2 * 4096 + (10 << 20))];
        assert_eq!(parse_maps(maps), Some(expected));
    }

    #[test]
    fn garbage_is_no_place() {
        for text in ["", "7f30 default\n", "7f anon=1 N0=x kernelpagesize_kB=4\n", "N0=1\n"] {
            assert_eq!(parse_maps(text), None, "{text:?}");
            assert_eq!(parse_group(text, 4096), None, "{text:?}");
        }
        let huge = format!("7f anon=1 N0={0} kernelpagesize_kB={0}\n", u64::MAX);
        assert_eq!(parse_maps(&huge).unwrap()[0].bytes, Bytes(u64::MAX));
    }

    #[test]
    fn groups_of_both_versions() {
        let v2 = "anon N0=8192 N1=0\nfile N0=4096 N1=0\nshmem N0=4096 N1=0\nfile_thp N0=9 N1=9\n";
        assert_eq!(parse_group(v2, 4096), Some(vec![OnNode { node: 0, bytes: Bytes(12_288) }]));
        let v1 =
            "total=3 N0=1 N1=2\nfile=1 N0=1 N1=0\nanon=1 N0=0 N1=2\nhierarchical_total=9 N0=9\n";
        let bytes: Vec<u64> =
            parse_group(v1, 4096).unwrap().iter().map(|node| node.bytes.0).collect();
        assert_eq!(bytes, [4096, 8192]);
    }
}
