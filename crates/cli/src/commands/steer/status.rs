//! Who steers, and ending it.

use crate::Outcome;
use crate::screen::{print, print_json, say};
use crate::state::State;
use serde::Serialize;
use untax_steer::{Status, status, stop as end};

/// The schema's name and version.
const SCHEMA: &str = "untax.steer/1";

#[derive(Serialize, schemars::JsonSchema)]
pub struct Shown {
    schema: &'static str,
    #[serde(flatten)]
    status: Status,
}

#[derive(Serialize, schemars::JsonSchema)]
pub struct Ended {
    schema: &'static str,
    /// Whether databases were steered.
    stopped: bool,
    /// What was put back that a killed steering had left.
    put_back: Vec<String>,
}

/// Shows who steers; the exit code is 1 where a killed steering left threads.
pub fn show(json: bool, state: &State) -> anyhow::Result<Outcome> {
    let status = status(state.directory()?)?;
    let is_left = status.pid.is_none() && status.run.is_some();
    if json {
        print_json(&Shown { schema: SCHEMA, status })?;
    } else {
        print(&words(&status))?;
    }
    Ok(if is_left { Outcome::Findings } else { Outcome::Clean })
}

fn words(status: &Status) -> String {
    let who = match (status.pid, &status.run) {
        (Some(pid), _) => format!("process {pid} steers databases\n"),
        (None, Some(run)) => {
            format!("{run} was killed and is not put back; run untax steer stop\n")
        }
        (None, None) => "no database is steered\n".to_owned(),
    };
    let masks = status.masks.iter().map(|mask| match &mask.cpus {
        Some(cpus) => format!("  pid {}: {} threads on CPUs {cpus}\n", mask.pid, mask.threads),
        None => format!("  pid {}: {} threads by the sched_ext program\n", mask.pid, mask.threads),
    });
    std::iter::once(who).chain(masks).collect()
}

/// Ends steering.
pub fn stop(json: bool, state: &State) -> anyhow::Result<Outcome> {
    let (stopped, put_back) = end(state.directory()?)?;
    if json {
        print_json(&Ended { schema: SCHEMA, stopped, put_back })?;
        return Ok(Outcome::Clean);
    }
    for rest in &put_back {
        say(&format!("put back {rest}: steering was killed together with its guard"));
    }
    let text =
        if stopped { "steering has ended, and all is put back" } else { "no database is steered" };
    say(text);
    Ok(Outcome::Clean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_steer::Left;

    #[test]
    fn what_a_killed_steering_left_is_told_with_what_to_do() {
        let mut status = Status {
            pid: None,
            run: Some("steer-1".to_owned()),
            masks: vec![Left { pid: 7, cpus: Some("0-1".parse().unwrap()), threads: 12 }],
        };
        let text = words(&status);
        assert!(text.contains("run untax steer stop"), "{text}");
        assert!(text.contains("pid 7: 12 threads on CPUs 0-1"), "{text}");
        status.pid = Some(9);
        assert!(words(&status).starts_with("process 9 steers"));
    }
}
