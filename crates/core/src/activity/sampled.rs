//! What the threads of a database executed, by samples: what no event tells, or too many would.

use super::Activity;
use crate::{Interval, stats};
use serde::{Deserialize, Serialize};

/// With fewer samples, none in a page fault could still mean more than 3 % of the time (the rule of
/// three: 3 / n is the 95 % bound).
const FEWEST_SAMPLES: u64 = 100;

/// What was seen so often is known to a third, of however few samples.
const FEWEST_SEEN: u64 = 10;

/// Samples of what the threads on a CPU executed, at equal steps of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sampled {
    /// All of them.
    pub on_cpu: u64,
    /// Those in a page fault on the memory that the processes share and that holds the data; none
    /// when it is not known where that is.
    pub faulting_on_data: Option<u64>,
    /// Those that get pages of files that are not in the page cache, but for freeing memory for them;
    /// none when it is not known where the kernel does.
    #[serde(default)]
    pub reading: Option<u64>,
    /// Those in system calls of each kind, in the order of [`Call::ALL`]; none in older captures.
    #[serde(default)]
    pub calling: Option<[u64; Call::ALL.len()]>,
}

/// What a system call is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// To begin, set up or end a connection, or another descriptor.
    Connection,
    /// To read or write what a file holds.
    Pages,
    /// To read what a client sent.
    Receive,
    /// To learn which client did.
    Wait,
}

impl Call {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Connection, Self::Pages, Self::Receive, Self::Wait];
}

impl Activity {
    /// The share of their time on a CPU that the threads spent in page faults on the memory that
    /// holds the data, with the interval that the differences between slices give. `None` when too
    /// little was sampled.
    pub fn share_faulting_on_data(&self) -> Option<Interval> {
        self.share_of_samples(|sampled| sampled.faulting_on_data)
    }

    /// The share of their time on a CPU that the threads spent getting pages of files that are not in
    /// the page cache, in the same way.
    pub fn share_reading(&self) -> Option<Interval> {
        self.share_of_samples(|sampled| sampled.reading)
    }

    /// The share of their time on a CPU that the threads spent in system calls of this kind, in the
    /// same way.
    pub fn share_calling(&self, call: Call) -> Option<Interval> {
        self.share_of_samples(|sampled| sampled.calling.map(|calling| calling[call as usize]))
    }

    fn share_of_samples(&self, counts: impl Fn(&Sampled) -> Option<u64>) -> Option<Interval> {
        let sampled = || self.slices.iter().filter_map(|s| Some((s.weight(), s.sampled?)));
        let pairs = sampled()
            .map(|(w, s)| Some((w * counts(&s)? as f64, w * s.on_cpu as f64)))
            .collect::<Option<Vec<(f64, f64)>>>()?;
        let all: u64 = sampled().map(|(_, sampled)| sampled.on_cpu).sum();
        let seen: u64 = sampled().filter_map(|(_, sampled)| counts(&sampled)).sum();
        let enough = all >= FEWEST_SAMPLES || seen >= FEWEST_SEEN;
        enough.then(|| stats::bootstrap_ratio(&pairs))?
    }
}
