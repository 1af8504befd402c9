//! What the threads of a database executed, by samples: what no event tells, or too many would.

use serde::{Deserialize, Serialize};

/// Samples of what the threads on a CPU executed, at equal steps of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Sampled {
    /// How many there were of one CPU in a second; none in older captures, which have as many always.
    #[serde(default)]
    pub per_s: Option<u32>,
    /// All of them.
    pub on_cpu: u64,
    /// Those in a page fault, but for freeing memory for it; none when it is not known where the kernel
    /// serves them.
    #[serde(default)]
    pub faulting: Option<u64>,
    /// Those in a page fault on the memory that the processes share and that holds the data; none
    /// when it is not known where that is.
    pub faulting_on_data: Option<u64>,
    /// Those that get pages of files that are not in the page cache, but for freeing memory for them;
    /// none when it is not known where the kernel does.
    #[serde(default)]
    pub reading: Option<u64>,
    /// Those in which a thread was interrupted as requests to block devices were done, anybody's; none when
    /// it is not known where the kernel ends them.
    #[serde(default)]
    pub completing: Option<u64>,
    /// Those in which a thread had just woken another: interrupts are off while it sends one to another
    /// CPU, so samples fall on the end of that; none when it is not known where the kernel wakes threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waking: Option<u64>,
    /// Those in system calls of each kind, in the order of [`Call::ALL`]; none in older captures.
    #[serde(default)]
    pub calling: Option<[u64; Call::ALL.len()]>,
}

impl Sampled {
    /// So many samples, of which it is not known where any was.
    pub const fn unknown(on_cpu: u64) -> Self {
        Self {
            per_s: None,
            on_cpu,
            faulting: None,
            faulting_on_data: None,
            reading: None,
            completing: None,
            waking: None,
            calling: None,
        }
    }

    /// For how much time one stands: in seconds, or in any other unit where none has a rate.
    pub(super) fn each(&self) -> f64 {
        self.per_s.map_or(1.0, |per_s| 1.0 / f64::from(per_s.max(1)))
    }
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
