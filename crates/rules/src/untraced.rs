//! What each rule says where nothing is traced: without root, or on a kernel that is too old, was built
//! without type information or is locked down.

/// What a rule says by `/proc`, `/sys`, control groups, pressure (PSI) and the server's answers alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Untraced {
    /// The same finding, with the same tax or none.
    Same,
    /// The finding with a tax, both from what the kernel counts.
    Tax,
    /// The finding. The tax is unmeasured, with the reason.
    Finding,
    /// Nothing but that it is unmeasured, with the reason.
    Unmeasured,
}

impl Untraced {
    /// In words, for a table.
    pub fn words(self) -> &'static str {
        match self {
            Self::Same => "the same",
            Self::Tax => "finding, tax with another interval",
            Self::Finding => "finding, tax unmeasured",
            Self::Unmeasured => "not judged",
        }
    }
}

use Untraced::{Finding, Same, Tax, Unmeasured};

/// Every rule, what it says, and what it goes by.
pub static UNTRACED: &[(&str, Untraced, &str)] = &[
    ("small-pages", Tax, "smaps, faults in /proc/PID/stat, the calibration"),
    ("page-table-bloat", Same, "VmPTE in /proc/PID/status"),
    ("hugepage-limit", Same, "hugetlb limits of its control groups"),
    ("hugepages-idle", Same, "pools in /sys/kernel/mm/hugepages"),
    ("hugepages-short", Same, "pools in /sys/kernel/mm/hugepages, the boot words"),
    ("thp-mode", Same, "/sys/kernel/mm/transparent_hugepage"),
    ("cpu-throttled", Finding, "periods in cpu.stat; cpu.pressure, full"),
    ("cpu-contended", Unmeasured, ""),
    ("vm-steal", Same, "steal in /proc/stat, run_delay in schedstat"),
    ("idle-wakeup", Unmeasured, ""),
    ("cpu-frequency", Same, "cpufreq in /sys, CPU time in /proc"),
    ("numa-remote", Same, "numa_maps and CPUs in /proc/PID"),
    ("numa-churn", Same, "memory.stat or /proc/vmstat"),
    ("reclaim-stall", Finding, "memory.events or failcnt; memory.pressure, full"),
    ("lock-contended", Unmeasured, ""),
    ("oom-near", Same, "memory.stat, memory.current and memory.events"),
    (
        "neighbour-reclaim",
        Finding,
        "memory.events of shared groups, memory.stat; memory.pressure, full",
    ),
    ("tcp-retransmit", Finding, "/proc/PID/net/snmp and netstat"),
    ("short-connections", Unmeasured, ""),
    ("conntrack-pressure", Finding, "nf_conntrack in /proc/PID/net/stat"),
    ("cni-path", Same, "routes and links of its network namespace"),
    ("far-clients", Same, "tcp_info of its connections (INET_DIAG)"),
    ("too-many-connections", Unmeasured, ""),
    ("sandboxed-runtime", Tax, "/proc/PID/stat of the sandbox"),
    ("redis-network-bound", Same, "utime and stime in /proc/PID/stat, INFO"),
    ("disk-slow", Unmeasured, ""),
    ("storage-remote", Finding, "mountinfo, /sys/block"),
    ("shared-filesystem", Unmeasured, ""),
    ("dirty-burst", Unmeasured, ""),
    ("io-hang", Unmeasured, ""),
    ("mysql-temp-files", Finding, "Created_tmp_disk_tables and pages moved, from SHOW STATUS"),
    ("postgres-full-page-writes", Finding, "wal_fpi and wal_bytes in pg_stat_wal"),
    ("duplicate-machine-id", Same, "/etc/machine-id of its container and its host"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_examples::EXAMPLES;
    use crate::{RULES, check};
    use std::collections::BTreeMap;
    use std::fs;
    use untax_core::{Finding, Reading, Window};

    const WHY: &str = "this kernel refuses tracing: a test";

    /// What a check says by that rule: its finding and its gaps.
    fn said(id: &str, window: &Window) -> (Option<Finding>, Vec<String>) {
        let result = check(window, String::new(), Reading::absent("a test"));
        let findings = result.databases.iter().flat_map(|database| &database.findings);
        let finding = findings.chain(&result.findings).find(|finding| finding.rule == id).cloned();
        let gaps = result.databases.iter().flat_map(|database| &database.unmeasured);
        let gaps = gaps.chain(&result.unmeasured).filter(|gap| gap.rule == id);
        (finding, gaps.map(|gap| gap.why.clone()).collect())
    }

    /// The window as a kernel that refuses tracing has it.
    fn strip(mut window: Window) -> Window {
        window.activity = Reading::Failed(WHY.to_owned());
        if let Reading::Present(io) = &mut window.io {
            io.flows = Reading::Failed(WHY.to_owned());
        }
        window
    }

    #[test]
    fn every_rule_is_in_the_table_and_tried() {
        let ids: Vec<&str> = RULES.iter().map(|rule| rule.id).collect();
        assert_eq!(UNTRACED.iter().map(|(id, ..)| *id).collect::<Vec<_>>(), ids);
        assert_eq!(EXAMPLES.iter().map(|(id, _)| *id).collect::<Vec<_>>(), ids);
    }

    /// What a rule says untraced of its example.
    fn is(id: &str, example: fn() -> Window) -> Option<Untraced> {
        let traced = said(id, &example()).0;
        let traced = traced.unwrap_or_else(|| panic!("{id} finds nothing where it is traced"));
        let (untraced, gaps) = said(id, &strip(example()));
        let has_reason = gaps.iter().any(|why| why.contains(WHY));
        let has_no_tax = gaps.iter().any(|why| why.starts_with("tax: "));
        match untraced {
            Some(finding) if finding == traced => Some(Same),
            Some(finding) if finding.tax.is_some() => Some(Tax),
            Some(_) if has_no_tax => Some(Finding),
            None if has_reason => Some(Unmeasured),
            Some(_) | None => None,
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "reads a file of the project")]
    fn the_findings_that_pages_show_are_those_of_the_examples() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/findings.json");
        let findings: BTreeMap<&str, Finding> =
            EXAMPLES.iter().map(|(id, example)| (*id, said(id, &example()).0.unwrap())).collect();
        let text = serde_json::to_string_pretty(&findings).unwrap() + "\n";
        if std::env::var_os("UNTAX_BLESS").is_some() {
            fs::write(file, &text).unwrap();
        }
        assert!(fs::read_to_string(file).unwrap() == text, "UNTAX_BLESS=1 writes {file} anew");
    }

    #[test]
    fn each_rule_says_what_the_table_says() {
        let rows = UNTRACED.iter().zip(EXAMPLES);
        let tried = rows.map(|((id, expected, _), (_, example))| (id, is(id, *example), expected));
        let wrong: Vec<_> = tried.filter(|(_, is, expected)| *is != Some(**expected)).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn what_is_held_up_for_most_of_the_window_is_no_small_matter() {
        for id in ["cpu-throttled", "reclaim-stall", "neighbour-reclaim"] {
            let (_, example) = EXAMPLES.iter().find(|(rule, _)| *rule == id).unwrap();
            let severity = |window: Window| said(id, &strip(window)).0.map(|f| f.severity);
            assert_eq!(severity(example()), Some(untax_core::Severity::High), "{id}");
            let mut uncounted = example();
            for snapshot in [&mut uncounted.start, &mut uncounted.end] {
                let Reading::Present(cgroup) = &mut snapshot.databases[0].cgroup else { panic!() };
                cgroup.pressure = Reading::absent("psi=0");
            }
            assert_eq!(severity(uncounted), Some(untax_core::Severity::Low), "{id}");
        }
    }
}
