//! Why a host, or one window of it, could not be seen.

/// Why there is no window.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PipelineError {
    /// The process, container or pod that was named is not there.
    #[error("nothing to check: {0}")]
    NothingToCheck(String),
    /// The host's clock or its list of processes cannot be read.
    #[error("the host cannot be read: {0}")]
    Unreadable(String),
    /// The process, container or pod is there, and holds no database.
    #[error("this selects no database; untax check --all lists the databases here")]
    NoDatabase,
    /// The kubelet's folder of logs, which names the pods of this node, cannot be read.
    #[error("pods of this node are not known: {0}")]
    PodsUnknown(String),
    /// No pod of that name is on this node.
    #[error("no pod {0} on this node; kubectl get pods -o wide says where")]
    NoPod(String),
    /// A window of a stream began without a snapshot, because the host could not be read then.
    #[error("the host could not be read when this window began: {0}")]
    NoStart(String),
}
