//! What minor faults and page walks cost on this very host, measured in two or three seconds.
//!
//! **Faults.** A shared file is filled once and then mapped anew, as a new backend maps the
//! buffers of a database. Its parts are touched in random order; the kernel's own count of minor
//! faults divides the processor time, because one fault on a read maps up to 16 pages. What the
//! touches alone cost is measured in a second round and taken off. Between faults some memory is
//! worked on, and two processes fault at once: a database's faults are neither hot in the caches
//! nor alone at the kernel's and the hypervisor's page tables. Unmapping is timed, too: it is
//! what the end of a backend costs.
//!
//! **Touches.** Random touches on small pages are compared with touches on transparent huge
//! pages, in pairs of alternating order. Each touch depends on the one before and is timed by
//! itself. Independent touches overlap and hide most of a page walk: they showed a tenth of the
//! penalty. Databases go from hash bucket to buffer to row, one step after the other, with other
//! work between the steps: in rows without it, touches find the upper page tables in the caches and
//! cost a quarter less.
//!
//! **Large working sets** without large memory: the file is mapped many times in a row, so that
//! its addresses and page tables are those of gigabytes while its data is not. On a 2-core test
//! machine the penalty so measured was within 15 % of that with real memory from 512 MiB to
//! 8 GiB (4 GiB: 162 against 161 ns). Many processes that map the same memory have as many page
//! tables as one that maps so much more, and find them as cold: a touch of 4 GiB cost
//! 650 and 1000 ns more on small pages for 16 and 64 processes that take turns on one CPU, and 350
//! and 750 ns for one process with as many page tables (250 ns with its own).
//!
//! Faults are measured in processor time of the thread, so that a busy host does not count as slow
//! pages. A touch is too short for that clock: the longest of each trial, which were interrupted, are
//! left out.

mod measure;

use crate::child::Program;
use crate::pages::Means;
use crate::pools::Tree;
use crate::{Machine, own_cgroup};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::io::Read;
use std::process::Child;
use std::time::Duration;
use untax_core::calibration::TouchPenalty;
use untax_core::host::HostFacts;
use untax_core::{Bytes, Calibration, Interval, Reading};

/// What a calibration may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Processor time.
    pub cpu: Duration,
    /// Memory, of a process that then ends, without its page tables.
    pub memory: Bytes,
    /// Page tables, so many at most: those of many processes that map the same memory.
    pub page_tables: Bytes,
}

impl Budget {
    /// With no more page tables than a small part of the memory that is available.
    #[must_use]
    pub fn within(self, available: Bytes) -> Self {
        Self { page_tables: self.page_tables.min(Bytes(available.0 / 32)), ..self }
    }
}

/// For `check`, which must be cheap.
pub const QUICK: Budget = Budget {
    cpu: Duration::from_secs(3),
    memory: Bytes::from_mib(256),
    page_tables: Bytes::from_mib(512),
};

/// For `bench pages`, which is not.
pub const FULL: Budget = Budget {
    cpu: Duration::from_secs(4),
    memory: Bytes::from_mib(512),
    page_tables: Bytes::from_mib(512),
};

/// How the child is told.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Spec(Budget);

/// What the child found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Measured {
    minor_fault_ns: Interval,
    write_fault_ns: Option<Interval>,
    unmap_ns: Option<Interval>,
    touches: Vec<TouchPenalty>,
    touches_missing: Option<String>,
}

impl Spec {
    /// Measures; called in the child only.
    pub(crate) fn measure(self) -> Reading<Measured> {
        measure::measure(self.0)
    }
}

/// Calibrates for `check`: two or three seconds, 256 MiB and page tables, in children of this very
/// program.
pub fn calibrate_in_child(host: &HostFacts) -> Reading<Calibration> {
    match Means::read(&Tree::live(), own_cgroup(host).as_ref()) {
        Ok(means) => calibrate(&Program::this(), QUICK.within(means.available), &Machine::of(host)),
        Err(error) => Reading::Failed(format!("what memory is available: {error}")),
    }
}

/// Measures in a child process, so that the memory is gone afterwards. Changes no setting.
/// Blocks for about the budget's processor time, longer on a host without idle CPUs.
pub fn calibrate(program: &Program, budget: Budget, machine: &Machine) -> Reading<Calibration> {
    // One measures touches; the others are there for their faults.
    let spec = |number| match number {
        0 => Spec(budget),
        _ => Spec(Budget { page_tables: Bytes(0), ..budget }),
    };
    let ask = || -> std::io::Result<Reading<Measured>> {
        let cpus = std::thread::available_parallelism()?.get();
        let children =
            (0..AT_ONCE.min(cpus)).map(|number| program.start_calibration(&spec(number)));
        let children = children.collect::<std::io::Result<Vec<Child>>>()?;
        let answers = children.into_iter().map(answer).collect::<std::io::Result<Vec<_>>>()?;
        let measured = answers.into_iter().reduce(|a, b| a.and_then(|a| b.map(|b| together(a, b))));
        measured.ok_or_else(|| std::io::Error::other("no calibration was started"))
    };
    let measured = ask().unwrap_or_else(|error| Reading::Failed(error.to_string()));
    measured.map(|measured| Calibration {
        taken_at: Timestamp::now(),
        cpu_model: machine.cpu_model.clone(),
        kernel_release: machine.kernel_release.clone(),
        source: "check".to_owned(),
        minor_fault_ns: measured.minor_fault_ns,
        write_fault_ns: measured.write_fault_ns,
        unmap_ns: measured.unmap_ns,
        touches: measured.touches,
        touches_missing: measured.touches_missing,
    })
}

/// How many processes calibrate at once.
const AT_ONCE: usize = 2;

fn answer(mut child: Child) -> std::io::Result<Reading<Measured>> {
    let mut answer = String::new();
    if let Some(out) = child.stdout.as_mut() {
        out.read_to_string(&mut answer)?;
    }
    let status = child.wait()?;
    if !status.success() {
        return Err(std::io::Error::other(format!("the calibration ended with {status}")));
    }
    Ok(serde_json::from_str(&answer)?)
}

/// What two processes measured at once: for faults the middle of both and the bounds of either;
/// touches do not compete, so one of them is enough.
fn together(a: Measured, b: Measured) -> Measured {
    let both = |a: Interval, b: Interval| {
        Interval::new(a.low.min(b.low), f64::midpoint(a.mid, b.mid), a.high.max(b.high))
    };
    let either = |a: Option<Interval>, b: Option<Interval>| match (a, b) {
        (Some(a), Some(b)) => Some(both(a, b)),
        (a, b) => a.or(b),
    };
    let (touching, other) = if a.touches.len() >= b.touches.len() { (a, b) } else { (b, a) };
    Measured {
        minor_fault_ns: both(touching.minor_fault_ns, other.minor_fault_ns),
        write_fault_ns: either(touching.write_fault_ns, other.write_fault_ns),
        unmap_ns: either(touching.unmap_ns, other.unmap_ns),
        ..touching
    }
}
