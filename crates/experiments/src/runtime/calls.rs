//! How many system calls an operation takes: counted by strace, once, beside a load that is not measured.

use rustix::process::{Pid, Signal, kill_process};
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use untax_scenes::{SceneError, find_program};

/// Attaching to the threads of a server takes far less.
const PATIENCE: Duration = Duration::from_secs(5);

/// strace on a server and on all processes that it starts from now on.
pub(super) struct Counting {
    strace: Child,
}

impl Counting {
    /// Attaches; gives nothing where strace is missing or may not trace.
    pub(super) fn attach(pid: u32) -> Result<Self, SceneError> {
        let program = find_program("strace", "strace")?;
        let failed = |source| SceneError::Start { program: "strace".to_owned(), source };
        let strace = Command::new(program)
            .args(["-f", "-c", "-qq", "-p", &pid.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let mut counting = Self { strace };
        counting.wait_until_attached(pid)?;
        Ok(counting)
    }

    fn wait_until_attached(&mut self, pid: u32) -> Result<(), SceneError> {
        let since = Instant::now();
        let host = untax_host::Host::live();
        while since.elapsed() < PATIENCE {
            let status = host.text(&format!("/proc/{pid}/status")).into_value().unwrap_or_default();
            let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
            if tracer.is_some_and(|tracer| tracer.trim() != "0") {
                return Ok(());
            }
            if self.strace.try_wait().ok().flatten().is_some() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Err(SceneError::Host { why: format!("strace did not attach to {pid}") })
    }

    /// Detaches, and gives the system calls since it was attached.
    pub(super) fn finish(mut self) -> Option<f64> {
        let pid = Pid::from_child(&self.strace);
        kill_process(pid, Signal::INT).ok()?;
        let mut summary = String::new();
        self.strace.stderr.take()?.read_to_string(&mut summary).ok()?;
        self.strace.wait().ok()?;
        total(&summary)
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        let _ = self.strace.kill();
        let _ = self.strace.wait();
    }
}

/// `100.00    0.412345           4    123456       123 total`: the fourth field, whether there were errors or
/// not.
fn total(summary: &str) -> Option<f64> {
    let line = summary.lines().rev().find(|line| line.trim_end().ends_with(" total"))?;
    line.split_whitespace().nth(3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_of_a_summary_is_found_with_and_without_errors() {
        let head = "% time     seconds  usecs/call     calls    errors syscall\n";
        let with = "100.00    0.412345           4    123456       123 total\n";
        let without = "100.00    0.000000           0        12           total\n";
        assert_eq!(total(&format!("{head}{with}")), Some(123_456.0));
        assert_eq!(total(&format!("{head}{without}")), Some(12.0));
        assert_eq!(total(head), None);
    }
}
