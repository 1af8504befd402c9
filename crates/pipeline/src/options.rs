//! What to look at, and for how long.

use crate::calibration::Calibrating;
use crate::error::PipelineError;
use std::ops::RangeInclusive;
use std::time::Duration;
use untax_engines::Selection;
use untax_host::Host;

/// How long a window may be. A shorter one has too few slices to give an interval; a longer one hides
/// when something happened.
pub const WINDOW_LENGTHS: RangeInclusive<Duration> =
    Duration::from_millis(500)..=Duration::from_secs(24 * 3600);

/// Which databases to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Every database on this host.
    All,
    /// The database that this process belongs to, or this process if it is no database.
    Pid(u32),
    /// The databases in the container with this id, or whose id begins so.
    Container(String),
    /// The databases in this Kubernetes pod of this node.
    Pod {
        /// The pod's namespace.
        namespace: String,
        /// The pod's name.
        name: String,
    },
}

/// How to look at a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Which databases.
    pub target: Target,
    /// How long each window is: one of [`WINDOW_LENGTHS`], or zero for a single look without rates.
    pub window: Duration,
    /// Whether a calibration may be read, or measured.
    pub calibrating: Calibrating,
}

impl Target {
    /// What to select, by what this host says.
    pub(crate) fn selection(&self, host: &Host) -> Result<Selection, PipelineError> {
        Ok(match self {
            Self::All => Selection::All,
            Self::Pid(pid) => Selection::Pid(*pid),
            Self::Container(id) => Selection::Container(id.clone()),
            Self::Pod { namespace, name } => Selection::Pod(pod_uids(host, namespace, name)?),
        })
    }
}

/// The uids of a pod on this node, from the folders in which the kubelet keeps its logs. A pod of
/// a `StatefulSet` has the name of those before it, whose logs stay for a while.
fn pod_uids(host: &Host, namespace: &str, name: &str) -> Result<Vec<String>, PipelineError> {
    let folders = host.names("/var/log/pods");
    if let Some(why) = folders.why() {
        return Err(PipelineError::PodsUnknown(why));
    }
    let prefix = format!("{namespace}_{name}_");
    let folders = folders.into_value().unwrap_or_default();
    let uids = folders.iter().filter_map(|folder| folder.strip_prefix(&prefix));
    let uids: Vec<String> = uids.map(str::to_owned).collect();
    if uids.is_empty() {
        return Err(PipelineError::NoPod(format!("{namespace}/{name}")));
    }
    Ok(uids)
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_host::Record;

    #[test]
    fn a_pod_that_reuses_a_name_has_the_uids_of_all_pods_of_that_name() {
        let record = Record::default()
            .with_file("/var/log/pods/db_pg-0_old/postgres/0.log", "")
            .with_file("/var/log/pods/db_pg-0_new/postgres/0.log", "")
            .with_file("/var/log/pods/db_pg-01_other/postgres/0.log", "");
        let host = Host::from_record(record);
        assert_eq!(pod_uids(&host, "db", "pg-0").unwrap(), ["new", "old"]);
        assert_eq!(pod_uids(&host, "db", "none"), Err(PipelineError::NoPod("db/none".to_owned())));
    }

    #[test]
    fn a_node_without_the_kubelets_logs_says_so() {
        let elsewhere = pod_uids(&Host::from_record(Record::default()), "db", "pg-0");
        assert!(matches!(elsewhere, Err(PipelineError::PodsUnknown(_))));
    }
}
