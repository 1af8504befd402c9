//! The causes that the lab can inject: one file each, its name being the id of the rule that is to
//! find it.

mod conntrack_pressure;
mod cpu_contended;
mod cpu_throttled;
mod dirty_burst;
mod disk_slow;
mod duplicate_machine_id;
mod idle_wakeup;
mod io_hang;
mod lock_contended;
mod mysql_temp_files;
mod neighbour_reclaim;
mod none;
mod none_idle;
mod oom_near;
mod page_table_bloat;
mod postgres_full_page_writes;
mod reclaim_stall;
mod redis_network_bound;
mod sandboxed_runtime;
mod shared_filesystem;
mod short_connections;
mod small_pages;
mod tcp_retransmit;
mod thp_mode;
mod too_many_connections;

use crate::cause::Cause;

/// Every cause, in the order in which help names them.
pub static CAUSES: &[Cause] = &[
    none::CAUSE,
    none_idle::CAUSE,
    cpu_throttled::CAUSE,
    cpu_contended::CAUSE,
    idle_wakeup::CAUSE,
    reclaim_stall::CAUSE,
    disk_slow::CAUSE,
    io_hang::CAUSE,
    dirty_burst::CAUSE,
    shared_filesystem::CAUSE,
    lock_contended::CAUSE,
    short_connections::CAUSE,
    too_many_connections::CAUSE,
    small_pages::CAUSE,
    page_table_bloat::CAUSE,
    thp_mode::CAUSE,
    tcp_retransmit::CAUSE,
    oom_near::CAUSE,
    neighbour_reclaim::CAUSE,
    mysql_temp_files::CAUSE,
    postgres_full_page_writes::CAUSE,
    redis_network_bound::CAUSE,
    conntrack_pressure::CAUSE,
    duplicate_machine_id::CAUSE,
    sandboxed_runtime::CAUSE,
];

impl Cause {
    /// The cause of that id.
    pub fn find(id: &str) -> Option<&'static Self> {
        CAUSES.iter().find(|cause| cause.id == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dose::Dose;
    use untax_scenes::{Engine, REDIS, Release, VALKEY};

    #[test]
    fn every_cause_is_complete_and_found_by_its_id() {
        for cause in CAUSES {
            assert!(std::ptr::eq(Cause::find(cause.id).unwrap(), cause), "{} twice", cause.id);
            let file = format!(
                "{}/src/causes/{}.rs",
                env!("CARGO_MANIFEST_DIR"),
                cause.id.replace('-', "_")
            );
            assert!(std::path::Path::new(&file).exists(), "{file}");
            assert!(!cause.summary.is_empty(), "{}", cause.id);
            assert!(!cause.engines.is_empty(), "{}", cause.id);
            assert!(cause.takes.is_none_or(|takes| !takes.is_empty()), "{}", cause.id);
        }
    }

    #[test]
    fn every_engine_suffers_or_says_why_it_is_left_out() {
        for cause in CAUSES {
            for engine in Engine::ALL {
                let mut whys = cause.left_out.iter().filter(|(other, _)| *other == engine);
                let (why, more) = (whys.next(), whys.next());
                let place = format!("{} on {}", cause.id, engine.id());
                assert!(
                    why.is_none() == cause.engines.contains(&engine) && more.is_none(),
                    "{place}"
                );
                let Some((_, why)) = why else { continue };
                let is_told = ["the lab does not do it to ", " does not suffer from it: "];
                assert!(is_told.iter().any(|words| why.contains(words)), "{place}: {why}");
                let refused = cause.impossible(Release::installed(engine), Dose::Strong).unwrap();
                assert!(refused.starts_with(why), "{place}: {refused}");
            }
        }
    }

    #[test]
    fn what_comes_from_its_network_is_put_on_every_engine() {
        for id in ["tcp-retransmit", "conntrack-pressure"] {
            assert_eq!(Cause::find(id).unwrap().engines, Engine::ALL, "{id}");
        }
    }

    #[test]
    fn a_server_that_is_unpacked_runs_in_no_container() {
        let why = |id| Cause::find(id)?.impossible(VALKEY, Dose::Strong);
        assert!(why("sandboxed-runtime").unwrap().contains("try redis"));
        assert!(!why("cpu-throttled").is_some_and(|why| why.contains("container")));
    }

    #[test]
    fn a_dose_that_there_is_not_says_so() {
        let why = |id| Cause::find(id)?.impossible(REDIS, Dose::Mild);
        assert!(why("thp-mode").is_some_and(|why| why.contains("one dose")));
        assert!(!why("io-hang").is_some_and(|why| why.contains("one dose")));
        assert!(!why("none").is_some_and(|why| why.contains("one dose")));
    }
}
