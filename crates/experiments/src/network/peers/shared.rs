//! What client and server have in common.

use rustix::fs::{Mode, OFlags};
use rustix::thread::{CpuSet, LinkNameSpaceType, move_into_link_name_space, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::AsFd;
use untax_scenes::Network;

/// What client and server do with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// One byte there and one back, over connections that stay (netperf's `TCP_RR`).
    Tcp,
    /// The same over a connection for each transaction (`TCP_CRR`).
    TcpConnect,
    /// One datagram there and one back (`UDP_RR`).
    Udp,
    /// As many bytes as the client can send (`TCP_STREAM`).
    Stream,
}

/// Where a child runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    /// The file of its network namespace; the bench's own where there is none.
    pub namespace: Option<String>,
    /// The directory of its control group; the bench's own where there is none.
    pub group: Option<String>,
    /// The CPUs that it may use; all where there are none.
    pub cpus: Vec<u32>,
}

impl Place {
    /// At one end of a path.
    pub(crate) fn of(network: &Network, cpus: &[u32]) -> Self {
        Self {
            namespace: Some(network.namespace_path()),
            group: network.group_directory().map(str::to_owned),
            cpus: cpus.to_vec(),
        }
    }

    /// Brings this thread there, and all that it starts.
    pub(crate) fn enter(&self) -> io::Result<()> {
        if let Some(group) = &self.group {
            std::fs::write(format!("{group}/cgroup.procs"), "0")?;
        }
        if let Some(namespace) = &self.namespace {
            let file =
                rustix::fs::open(namespace, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
        }
        if !self.cpus.is_empty() {
            let mut set = CpuSet::new();
            self.cpus.iter().for_each(|cpu| set.set(*cpu as usize));
            sched_setaffinity(None, &set)?;
        }
        Ok(())
    }
}

/// The CPU time of this process so far, seconds: with what the kernel does for its packets while it runs.
pub(super) fn cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// How much a stream hands over at a time, bytes.
pub(super) const CHUNK: usize = 128 << 10;
