//! `/proc/PID/status`.

use untax_core::Bytes;

/// The fields of `/proc/PID/status` that untax uses; `None` where the kernel has none (a kernel
/// thread or a zombie has no memory) or the line is garbage.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// Real user.
    pub uid: Option<u32>,
    /// Real group.
    pub gid: Option<u32>,
    /// The pid in each nested pid namespace, outermost first.
    pub namespace_pids: Vec<u32>,
    /// Resident memory.
    pub resident: Option<Bytes>,
    /// Resident private memory that no file stands behind.
    pub resident_anonymous: Option<Bytes>,
    /// The most that was ever resident.
    pub peak_resident: Option<Bytes>,
    /// Resident shared memory: what this process has mapped of it.
    pub resident_shared: Option<Bytes>,
    /// Page tables, all levels of the last one counted by the kernel.
    pub page_tables: Option<Bytes>,
    /// Huge pages from a pool.
    pub hugetlb: Option<Bytes>,
    /// Number of threads.
    pub threads: Option<u32>,
    /// The CPUs that it may use, such as `0-15,32-47`.
    pub allowed_cpus: Option<String>,
    /// Whether transparent huge pages are not switched off for the process.
    pub thp_enabled: Option<bool>,
}

/// Parses a `status` file, skipping what it does not know.
pub fn parse(text: &str) -> Status {
    let mut status = Status::default();
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        let mut words = value.split_ascii_whitespace();
        match key {
            "Uid" => status.uid = words.next().and_then(|w| w.parse().ok()),
            "Gid" => status.gid = words.next().and_then(|w| w.parse().ok()),
            "NSpid" => status.namespace_pids = words.filter_map(|w| w.parse().ok()).collect(),
            "VmRSS" => status.resident = kib(words),
            "RssAnon" => status.resident_anonymous = kib(words),
            "VmHWM" => status.peak_resident = kib(words),
            "RssShmem" => status.resident_shared = kib(words),
            "VmPTE" => status.page_tables = kib(words),
            "HugetlbPages" => status.hugetlb = kib(words),
            "THP_enabled" => status.thp_enabled = words.next().and_then(flag),
            "Cpus_allowed_list" => {
                status.allowed_cpus = words.next().map(str::to_owned);
            }
            "Threads" => status.threads = words.next().and_then(|w| w.parse().ok()),
            _ => {}
        }
    }
    status
}

fn flag(word: &str) -> Option<bool> {
    match word {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

fn kib<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<Bytes> {
    let number = words.next()?.parse().ok()?;
    (words.next()? == "kB").then_some(Bytes::from_kib(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_fields_are_read_and_garbage_is_not_zero() {
        let status = parse(
            "Name:\tpostgres\nUid:\t105\t105\t105\t105\nNSpid:\t4012\t17\nVmRSS:\t  8192 kB\n\
             VmPTE:\t 12 kB\nHugetlbPages:\tgarbage kB\nThreads:\t1\n",
        );
        assert_eq!(status.uid, Some(105));
        assert_eq!(status.namespace_pids, [4012, 17]);
        assert_eq!(status.resident, Some(Bytes(8 << 20)));
        assert_eq!(status.page_tables, Some(Bytes(12 << 10)));
        assert_eq!(status.hugetlb, None);
        assert_eq!(status.threads, Some(1));
    }
}
