//! All rules, in the order in which help and reports name them.

use crate::diagnoses::{
    cni_path, conntrack_pressure, cpu_contended, cpu_frequency, cpu_throttled, dirty_burst,
    disk_slow, duplicate_machine_id, far_clients, hugepage_limit, hugepages_idle, hugepages_short,
    idle_wakeup, io_hang, lock_contended, mysql_temp_files, neighbour_reclaim, numa_churn,
    numa_remote, oom_near, page_table_bloat, postgres_full_page_writes, reclaim_stall,
    redis_network_bound, sandboxed_runtime, shared_filesystem, short_connections, small_pages,
    storage_remote, tcp_retransmit, thp_mode, too_many_connections, vm_steal,
};
use crate::rule::Rule;

/// Every rule.
pub static RULES: &[Rule] = &[
    small_pages::RULE,
    page_table_bloat::RULE,
    hugepage_limit::RULE,
    hugepages_idle::RULE,
    hugepages_short::RULE,
    thp_mode::RULE,
    cpu_throttled::RULE,
    cpu_contended::RULE,
    vm_steal::RULE,
    idle_wakeup::RULE,
    cpu_frequency::RULE,
    numa_remote::RULE,
    numa_churn::RULE,
    reclaim_stall::RULE,
    lock_contended::RULE,
    oom_near::RULE,
    neighbour_reclaim::RULE,
    tcp_retransmit::RULE,
    short_connections::RULE,
    conntrack_pressure::RULE,
    cni_path::RULE,
    far_clients::RULE,
    too_many_connections::RULE,
    sandboxed_runtime::RULE,
    redis_network_bound::RULE,
    disk_slow::RULE,
    storage_remote::RULE,
    shared_filesystem::RULE,
    dirty_burst::RULE,
    io_hang::RULE,
    mysql_temp_files::RULE,
    postgres_full_page_writes::RULE,
    duplicate_machine_id::RULE,
];

/// The rule of that id.
pub fn find(id: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::Scope;
    use crate::test_window;

    #[test]
    fn every_rule_is_complete_and_found_by_its_id() {
        for rule in RULES {
            assert!(std::ptr::eq(find(rule.id).unwrap(), rule), "{} twice", rule.id);
            // From the crate's folder, where tests run: one that was built in another clone has its path.
            let file = format!("src/diagnoses/{}.rs", rule.id.replace('-', "_"));
            assert!(std::path::Path::new(&file).exists(), "{file}");
            for text in
                [rule.summary, rule.what, rule.method, rule.measured, rule.fix, rule.privilege]
            {
                assert!(!text.is_empty(), "{}", rule.id);
            }
            assert!(!rule.sources.is_empty(), "{} names no source", rule.id);
        }
    }

    #[test]
    fn causes_of_the_database_and_its_application_are_not_the_platforms() {
        let of_database = RULES.iter().filter(|rule| rule.scope == Scope::Database);
        let mut ids: Vec<&str> = of_database.map(|rule| rule.id).collect();
        ids.sort_unstable();
        let expected = [
            "lock-contended",
            "mysql-temp-files",
            "postgres-full-page-writes",
            "short-connections",
            "too-many-connections",
        ];
        assert_eq!(ids, expected);
    }

    #[test]
    fn a_window_without_databases_or_readings_gives_no_finding() {
        let window = test_window::unread();
        for rule in RULES {
            for diagnosis in (rule.evaluate)(&window) {
                assert!(
                    matches!(diagnosis.says, untax_core::finding::Says::Unmeasured(_)),
                    "{} found something in nothing",
                    rule.id
                );
            }
        }
    }
}
