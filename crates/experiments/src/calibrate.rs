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

mod budget;
mod measure;

pub use budget::{Budget, FULL, QUICK};

use crate::child::HiddenCommand;
use crate::machine::{Machine, own_cgroup};
use crate::pages::Capacity;
use jiff::Timestamp;
use measure::{Measured, measure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Read};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use untax_changes::{Program, Tree};
use untax_core::host::HostFacts;
use untax_core::{Bytes, Calibration, Interval, Reading};
use untax_host::nothing;

/// The hidden subcommand that measures in a child, and prints JSON.
pub(crate) const CALIBRATE: HiddenCommand = HiddenCommand {
    name: "__calibrate",
    thread: c"untax-calibrate",
    run: |budget| {
        let measured = measure(serde_json::from_str(budget)?);
        Ok(serde_json::to_writer(io::stdout(), &measured)?)
    },
};

/// Calibrates for `check`: two or three seconds, 256 MiB and page tables, in children of this very
/// program.
pub fn calibrate_in_child(host: &HostFacts) -> Reading<Calibration> {
    match Capacity::read(&Tree::live(), own_cgroup(host).as_ref()) {
        Ok(capacity) => {
            calibrate(&Program::this(), QUICK.within(capacity.available), &Machine::of(host))
        }
        Err(error) => Reading::Failed(format!("what memory is available: {error}")),
    }
}

/// Measures in a child process, so that the memory is gone afterwards. Changes no setting.
/// Blocks for about the budget's processor time, longer on a host without idle CPUs, but no longer
/// than two minutes.
pub fn calibrate(program: &Program, budget: Budget, machine: &Machine) -> Reading<Calibration> {
    // One measures touches; the others are there for their faults.
    let budget = |number| match number {
        0 => budget,
        _ => Budget { page_tables: Bytes(0), ..budget },
    };
    let ask = || -> io::Result<Reading<Measured>> {
        let cpus = std::thread::available_parallelism()?.get();
        let start = |number| Calibrating::start(program, budget(number));
        let children = (0..AT_ONCE.min(cpus)).map(start).collect::<io::Result<Vec<_>>>()?;
        let until = Instant::now() + PATIENCE;
        let answers = children.into_iter().map(|child| child.answer(until));
        let answers = answers.collect::<io::Result<Vec<_>>>()?;
        let measured = answers.into_iter().reduce(|a, b| a.and_then(|a| b.map(|b| together(a, b))));
        measured.ok_or_else(|| io::Error::other("no calibration was started"))
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

/// How long calibrating may take. Its processor time becomes as long where some forty want each
/// CPU, or where a limit leaves a fortieth of one. A check that waits longer is not told from one
/// that hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// A child that calibrates. It ends with this value, however far it came.
struct Calibrating(Child);

impl Calibrating {
    fn start(program: &Program, budget: Budget) -> io::Result<Self> {
        let mut command = CALIBRATE.command(program, &budget)?;
        command.stdin(nothing()).stdout(Stdio::piped()).stderr(nothing());
        command.spawn().map(Self)
    }

    /// What it measured, if it has ended by then.
    fn answer(mut self, until: Instant) -> io::Result<Reading<Measured>> {
        let answer = self.read(until)?;
        let status = self.0.wait()?;
        if !status.success() {
            return Err(io::Error::other(format!("the calibration ended with {status}")));
        }
        Ok(serde_json::from_slice(&answer)?)
    }

    /// All that it prints.
    fn read(&mut self, until: Instant) -> io::Result<Vec<u8>> {
        let no_output = || io::Error::other("the calibration has no output");
        let mut out = self.0.stdout.take().ok_or_else(no_output)?;
        let (mut answer, mut chunk) = (Vec::new(), [0; 4096]);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::Error::other(format!(
                    "the calibration took longer than {PATIENCE:?}: the CPUs are too busy, or a \
                     limit leaves it too little of them"
                )));
            }
            let timeout = Timespec::try_from(left).ok();
            match poll(&mut [PollFd::new(&out, PollFlags::IN)], timeout.as_ref()) {
                Ok(0) | Err(rustix::io::Errno::INTR) => continue,
                Ok(_) => {}
                Err(errno) => return Err(errno.into()),
            }
            match out.read(&mut chunk)? {
                0 => return Ok(answer),
                count => answer.extend_from_slice(&chunk[..count]),
            }
        }
    }
}

impl Drop for Calibrating {
    fn drop(&mut self) {
        // It may have ended by itself: either way it is gone, and its memory with it.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// A shell script in place of a calibration.
    fn calibrating(script: &str) -> Calibrating {
        let mut shell = Command::new("/bin/sh");
        Calibrating(shell.args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap())
    }

    #[test]
    fn a_calibration_that_hangs_is_a_failure() {
        let until = Instant::now() + Duration::from_millis(200);
        let error = calibrating("echo '{'; exec sleep 60").answer(until).unwrap_err();
        assert!(error.to_string().contains("took longer"), "{error}");
        assert!(until.elapsed() < Duration::from_secs(30), "it was ended");
    }

    #[test]
    fn what_a_calibration_tells_comes_through_if_it_ends_well() {
        let until = Instant::now() + Duration::from_secs(30);
        let answer = |script| calibrating(script).answer(until);
        let told = answer(r#"echo '{"absent":"no such page"}'"#).unwrap();
        assert_eq!(told, Reading::Absent("no such page".to_owned()));
        for script in ["echo garbage", "exit 1", "kill -9 $$"] {
            assert!(answer(script).is_err(), "{script}");
        }
    }
}
