//! Runs programs as tests: each has a verdict and a time, and its output is shown when it failed.

use anyhow::Result;
use std::io::{Read, Seek};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

/// What a test prints at the start of a line, before the reason, when this machine cannot run it.
const SKIPPED: &str = "SKIPPED: ";

/// How a test ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Passed,
    Failed,
    /// With the reason.
    Skipped(String),
}

/// A test that has run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub name: String,
    pub took: Duration,
    pub verdict: Verdict,
}

/// A test to run: it passes when the command succeeds.
pub struct Job {
    pub name: String,
    pub command: Command,
}

impl Job {
    pub fn new(name: impl Into<String>, command: Command) -> Self {
        Self { name: name.into(), command }
    }

    /// Does not run it, for a reason.
    pub fn skip(self, reason: &str) -> Outcome {
        let verdict = Verdict::Skipped(reason.to_owned());
        Outcome { name: self.name, took: Duration::ZERO, verdict }
    }

    /// Runs it with its output on this terminal.
    pub fn run_shown(mut self) -> Outcome {
        outcome(self.name, || Ok((self.command.status()?.success(), String::new())))
    }

    /// Runs it with its output kept, which is shown when it failed.
    pub fn run(mut self) -> Outcome {
        outcome(self.name, || {
            // A file, not a pipe: what the test leaves running must not be waited for.
            let mut output = tempfile::tempfile()?;
            self.command.stdin(Stdio::null());
            self.command.stdout(output.try_clone()?).stderr(output.try_clone()?);
            let success = self.command.status()?.success();
            let mut bytes = Vec::new();
            output.rewind()?;
            output.read_to_end(&mut bytes)?;
            Ok((success, String::from_utf8_lossy(&bytes).into_owned()))
        })
    }
}

/// The outcome of something that says whether it succeeded, and what it printed.
pub fn outcome(name: impl Into<String>, run: impl FnOnce() -> Result<(bool, String)>) -> Outcome {
    let (name, begun) = (name.into(), Instant::now());
    let (success, output) = run().unwrap_or_else(|error| (false, format!("{error:#}")));
    let verdict = verdict(success, &output);
    if verdict == Verdict::Failed {
        println!("-- {name} failed:\n{}", output.trim_end());
    }
    Outcome { name, took: begun.elapsed(), verdict }
}

fn verdict(success: bool, output: &str) -> Verdict {
    let reason = output.lines().find_map(|line| line.strip_prefix(SKIPPED));
    match (success, reason) {
        (false, _) => Verdict::Failed,
        (true, None) => Verdict::Passed,
        (true, Some(reason)) => Verdict::Skipped(reason.to_owned()),
    }
}

/// Runs all jobs, so many at a time, and shows each as it ends when they are run alone.
pub fn all(jobs: Vec<Job>, at_once: usize) -> Vec<Outcome> {
    let jobs = Mutex::new(jobs.into_iter());
    let next = || jobs.lock().ok()?.next();
    let work = || {
        let mut outcomes = Vec::new();
        while let Some(job) = next() {
            let outcome = job.run();
            if at_once == 1 {
                println!("{}", line(&outcome));
            }
            outcomes.push(outcome);
        }
        outcomes
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..at_once).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect()
    })
}

/// An outcome on a line: time, name, and the verdict unless it passed.
pub fn line(outcome: &Outcome) -> String {
    let verdict = match &outcome.verdict {
        Verdict::Passed => String::new(),
        Verdict::Failed => "  FAILED".to_owned(),
        Verdict::Skipped(reason) => format!("  skipped: {reason}"),
    };
    format!("{:>8.1} s  {}{verdict}", outcome.took.as_secs_f64(), outcome.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Job {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Job::new(script, command)
    }

    #[test]
    fn a_job_passes_fails_or_is_skipped_with_the_reason() {
        assert_eq!(shell("echo fine").run().verdict, Verdict::Passed);
        assert_eq!(shell("echo SKIPPED: no; exit 1").run().verdict, Verdict::Failed);
        let skipped = Verdict::Skipped("no root".to_owned());
        assert_eq!(shell("echo; echo SKIPPED: no root >&2").run().verdict, skipped);
        let missing = Job::new("missing", Command::new("/no/such/program"));
        assert_eq!(missing.run().verdict, Verdict::Failed);
    }

    #[test]
    fn every_job_runs_though_another_failed() {
        let jobs = || ["true", "false", "exit 3", "true"].map(shell).into_iter().collect();
        for at_once in [1, 3] {
            let outcomes = all(jobs(), at_once);
            let failed = outcomes.iter().filter(|outcome| outcome.verdict == Verdict::Failed);
            assert_eq!((outcomes.len(), failed.count()), (4, 2));
        }
    }

    #[test]
    fn a_job_takes_the_time_of_its_command_alone() {
        // What stays in the background holds the output open.
        let outcome = shell("sleep 30 & sleep 0.1").run();
        assert!(outcome.took >= Duration::from_millis(100), "{outcome:?}");
        assert!(outcome.took < Duration::from_secs(20), "{outcome:?}");
    }
}
