//! Who caused what is written: `/proc/PID/io` of all processes.

use std::collections::BTreeMap;
use untax_core::io::Writer;
use untax_core::{Bytes, Database, Reading};
use untax_host::Host;
use untax_host::process::{self, Stat};

/// Bytes by pid.
pub(super) type Counts = Reading<BTreeMap<u32, u64>>;

/// How many are named.
const MOST: usize = 8;

/// A writer of fewer bytes a second than this is not named: a few pages now and then, as of a log.
const WORTH_PER_S: f64 = 0.1 * 1024.0 * 1024.0;

/// How the kernel calls its workers, and before 5.14 the threads of loop devices.
const COPYING: [&str; 2] = ["kworker/", "loop"];

/// Reads what every process has caused to be written so far: pages that it dirtied, and direct
/// writes, less what was cut off before it reached a disk.
pub(super) fn count(host: &Host) -> Counts {
    host.names("/proc").and_then(|names| {
        let pids = names.iter().filter_map(|name| name.parse::<u32>().ok());
        let mut denied = 0;
        let mut all = BTreeMap::new();
        for pid in pids {
            match host.text(&format!("/proc/{pid}/io")) {
                Reading::Present(text) => {
                    all.extend(written(&text).map(|bytes| (pid, bytes)));
                }
                Reading::Denied(_) => denied += 1,
                _ => {}
            }
        }
        // A few may hide from root too. Of one's own processes alone, the largest would be the
        // wrong one.
        if denied > all.len() {
            Reading::Denied("/proc/PID/io: who writes is known to root alone".to_owned())
        } else if all.is_empty() {
            Reading::Absent("this kernel does not count I/O".to_owned())
        } else {
            Reading::Present(all)
        }
    })
}

fn written(io: &str) -> Option<u64> {
    let field = |name: &str| {
        let line = io.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().parse::<u64>().ok()
    };
    Some(field("write_bytes")?.saturating_sub(field("cancelled_write_bytes").unwrap_or(0)))
}

/// Who wrote most since `before`, `seconds` ago. A process that was started since wrote all that it has.
pub(super) fn growth(
    host: &Host,
    before: &Counts,
    databases: &[Database],
    seconds: f64,
) -> Reading<Vec<Writer>> {
    let least = WORTH_PER_S * seconds;
    before.as_ref().and_then(|before| {
        count(host).map(|now| {
            let grown = |(pid, bytes): (&u32, &u64)| {
                (*pid, bytes.saturating_sub(before.get(pid).copied().unwrap_or(0)))
            };
            let mut most: Vec<(u32, u64)> = now
                .iter()
                .map(grown)
                .filter(|(_, bytes)| *bytes > 0 && *bytes as f64 >= least)
                .collect();
            most.sort_by_key(|(pid, bytes)| (std::cmp::Reverse(*bytes), *pid));
            let kthreadd = stat(host, 2).filter(Stat::is_kthreadd).map(|stat| stat.pid);
            let writers = most.into_iter().filter_map(|(pid, bytes)| {
                let stat = stat(host, pid);
                let copies = kthreadd.zip(stat.as_ref()).is_some_and(|(k, s)| copies(s, k));
                (!copies).then(|| writer(host, pid, bytes, stat.map(|s| s.parent), databases))
            });
            writers.take(MOST).collect()
        })
    })
}

fn stat(host: &Host, pid: u32) -> Option<Stat> {
    process::parse_stat(&host.text(&format!("/proc/{pid}/stat")).into_value()?)
}

/// Whether it writes to the file behind a loop device, or for a filesystem, what others were counted for
/// already.
fn copies(stat: &Stat, kthreadd: u32) -> bool {
    stat.parent == kthreadd && COPYING.iter().any(|name| stat.comm.starts_with(name))
}

fn writer(
    host: &Host,
    pid: u32,
    bytes: u64,
    parent: Option<u32>,
    databases: &[Database],
) -> Writer {
    let comm = host.text(&format!("/proc/{pid}/comm")).into_value();
    let groups = host.text(&format!("/proc/{pid}/cgroup")).into_value().unwrap_or_default();
    let owner = databases.iter().find(|database| {
        database.pids.contains(&pid) || parent.is_some_and(|parent| parent == database.pid)
    });
    Writer {
        pid,
        comm: comm.map_or_else(|| "ended".to_owned(), |comm| comm.trim().to_owned()),
        cgroup: group(&groups),
        database: owner.map(|database| database.id.clone()),
        written_bytes: Bytes(bytes),
        limits: limits(host, &groups),
    }
}

/// The group that I/O is accounted to: of the blkio controller, of the unified hierarchy, or any.
fn group(groups: &str) -> String {
    path_of(groups, "blkio").or_else(|| path_of(groups, "")).unwrap_or("/").to_owned()
}

fn path_of<'a>(groups: &'a str, controller: &str) -> Option<&'a str> {
    groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        controllers.split(',').any(|known| known == controller).then_some(path)
    })
}

/// The limits that may slow the group down while it holds what others wait for.
fn limits(host: &Host, groups: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut look = |path: String, what: &str| {
        let text = host.text(&path).into_value().unwrap_or_default();
        let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("max"));
        found.extend(lines.map(|line| format!("{what} {}", line.trim())));
    };
    if let Some(path) = path_of(groups, "").filter(|path| *path != "/") {
        for (file, what) in [("io.max", "io.max"), ("cpu.max", "cpu.max")] {
            look(format!("/sys/fs/cgroup{path}/{file}"), what);
        }
    }
    if let Some(path) = path_of(groups, "blkio").filter(|path| *path != "/") {
        for file in ["write_bps_device", "write_iops_device"] {
            look(format!("/sys/fs/cgroup/blkio{path}/blkio.throttle.{file}"), file);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_host::Record;

    fn host(rows: &[(u32, u64)]) -> Host {
        Host::from_record(record(rows))
    }

    fn record(rows: &[(u32, u64)]) -> Record {
        let one = |record: Record, (pid, bytes): &(u32, u64)| {
            let io = format!("write_bytes: {bytes}\ncancelled_write_bytes: 0\n");
            record
                .with_file(&format!("/proc/{pid}/io"), &io)
                .with_file(&format!("/proc/{pid}/comm"), "dd\n")
                .with_file(&format!("/proc/{pid}/cgroup"), "4:blkio:/batch\n0::/x\n")
        };
        let record = rows.iter().fold(Record::default(), one);
        let throttle = "/sys/fs/cgroup/blkio/batch/blkio.throttle.write_bps_device";
        record.with_file(throttle, "7:0 1048576\n")
    }

    #[test]
    fn the_largest_growth_comes_first_with_what_limits_it() {
        let before = count(&host(&[(7, 100), (8, 5 << 20)]));
        let all = growth(&host(&[(7, 3 << 20), (8, 5 << 20), (9, 9 << 20)]), &before, &[], 10.0);
        let all = all.into_value().unwrap();
        assert_eq!(all.iter().map(|writer| writer.pid).collect::<Vec<_>>(), [9, 7]);
        assert_eq!((all[0].comm.as_str(), all[0].cgroup.as_str()), ("dd", "/batch"));
        assert_eq!(all[0].limits, ["write_bps_device 7:0 1048576"]);
    }

    #[test]
    fn who_copies_what_others_wrote_is_no_writer() {
        let rows: Vec<(u32, u64)> = (7..20).map(|pid| (pid, u64::from(30 - pid) << 20)).collect();
        let before = count(&host(&[(99, 0)]));
        let told = |second: &str| {
            // The ninth has the name alone.
            let named =
                [(2, second, 0), (7, "kworker/u8:2", 2), (8, "loop0", 2), (9, "kworker/0", 1)];
            let record = named.into_iter().fold(record(&rows), |record, (pid, comm, parent)| {
                let rest = "0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0 18446744073709551615";
                let stat = format!("{pid} ({comm}) S {parent} {rest}\n");
                record.with_file(&format!("/proc/{pid}/stat"), &stat)
            });
            let all = growth(&Host::from_record(record), &before, &[], 10.0).into_value().unwrap();
            all.iter().map(|writer| writer.pid).collect::<Vec<_>>()
        };
        assert_eq!(told("kthreadd"), (9..9 + MOST as u32).collect::<Vec<_>>());
        assert_eq!(told("sh")[0], 7, "a container, where no thread is the kernel's");
    }
}
