//! One trial: a child works, perhaps in a limited group or beside a neighbour.

use super::check::check;
use super::device::{Moved, Way};
use super::job::STORAGE;
use super::latency::Latencies;
use super::spec::{Job, Outcome, Work};
use super::work::{Neighbour, Shows};
use crate::platform::{Measured, Running, Trouble};
use std::io::Read;
use std::process::{Child, Stdio};
use std::time::Duration;
use untax_changes::Program;
use untax_scenes::{Group, Limit, limit_device};
use untax_trials::Interrupt;

/// How often a child is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// How long a neighbour works before a trial counts: its journal is as full as it will be.
const SETTLE: Duration = Duration::from_millis(300);

/// A child that ends with this value.
pub(crate) struct Worker(Child);

impl Drop for Worker {
    fn drop(&mut self) {
        // It may have ended by itself: either way it is gone.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a child, which waits until [`answer`] or [`Worker::begin`] lets it go.
pub(crate) fn spawn(program: &Program, job: &Job) -> Result<Worker, Trouble> {
    let start = || {
        let mut command = STORAGE.command(program, job)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
    };
    start().map(Worker).map_err(|error| Trouble::Failed(format!("cannot start a child: {error}")))
}

impl Worker {
    fn begin(&mut self) {
        drop(self.0.stdin.take());
    }

    /// Why it has ended; none while it works.
    fn end(&mut self) -> Option<String> {
        let status = self.0.try_wait().ok().flatten()?;
        let mut text = String::new();
        let errors = self.0.stderr.as_mut();
        let _ = errors.map(|errors| errors.read_to_string(&mut text));
        let text = text.trim().trim_start_matches("untax __storage: ").to_owned();
        Some(if text.is_empty() { status.to_string() } else { text })
    }
}

/// Lets a child work, and waits for what it measured.
pub(crate) fn answer(mut worker: Worker, interrupt: &Interrupt) -> Result<Outcome, Trouble> {
    worker.begin();
    let end = loop {
        match worker.end() {
            Some(end) => break end,
            None => interrupt.sleep(LOOK)?,
        }
    };
    let mut text = String::new();
    if let Some(output) = worker.0.stdout.as_mut() {
        let _ = output.read_to_string(&mut text);
    }
    serde_json::from_str(&text).map_err(|_| Trouble::Failed(end))
}

/// A job that is measured again and again.
pub(crate) struct Trial {
    pub(crate) program: Program,
    pub(crate) job: Job,
    pub(crate) way: Way,
    pub(crate) shows: Shows,
    pub(crate) neighbour: Neighbour,
    /// Writes a second of the child itself.
    pub(crate) limit: Option<u64>,
    /// Writes a second of a limited neighbour.
    pub(crate) neighbour_limit: u64,
}

impl Running for Trial {
    fn trial(&mut self, interrupt: &Interrupt) -> Result<Measured, Trouble> {
        let mut neighbour = self.neighbour()?;
        if neighbour.is_some() {
            interrupt.sleep(SETTLE)?;
        }
        let worker = spawn(&self.program, &self.job)?;
        let limited = self.limit.map(|limit| self.limited(limit)).transpose()?;
        if let Some(limited) = &limited {
            limited.group.admit(worker.0.id()).map_err(|error| Trouble::of(&error))?;
        }
        let outcome = answer(worker, interrupt)?;
        if let Some(why) = neighbour.as_mut().and_then(|neighbour| neighbour.worker.end()) {
            return Err(Trouble::Failed(format!("the neighbour ended during the trial: {why}")));
        }
        check(&outcome, &self.way).map_err(Trouble::Failed)?;
        self.job.seed += 1;
        measured(&self.job.work, self.shows, &outcome)
    }
}

/// A group with a limit. In this order: the limit goes before the group.
struct Limited {
    _limit: untax_scenes::Setting,
    group: Group,
}

/// A neighbour at work; its process ends before its group.
struct Beside {
    worker: Worker,
    _limited: Option<Limited>,
}

impl Trial {
    fn limited(&self, a_second: u64) -> Result<Limited, Trouble> {
        let Some(device) = self.way.devices.first() else {
            let why = self.way.gap.clone().unwrap_or_default();
            return Err(Trouble::Failed(format!("{why}: there is nothing to set a limit on")));
        };
        let make = || {
            let group = Group::for_neighbours()?;
            let limit = limit_device(&device.whole, &group, Limit::WriteOperations, a_second)?;
            Ok(Limited { _limit: limit, group })
        };
        make().map_err(|error: untax_scenes::SceneError| Trouble::of(&error))
    }

    fn neighbour(&self) -> Result<Option<Beside>, Trouble> {
        let limited = match self.neighbour {
            Neighbour::Nobody => return Ok(None),
            Neighbour::Flood => None,
            Neighbour::LimitedFlood => Some(self.limited(self.neighbour_limit)?),
        };
        let job = Job {
            work: Neighbour::FLOOD,
            cpus: [self.job.cpus[1].clone(), Vec::new()],
            ..self.job.clone()
        };
        let mut worker = spawn(&self.program, &job)?;
        if let Some(limited) = &limited {
            limited.group.admit(worker.0.id()).map_err(|error| Trouble::of(&error))?;
        }
        worker.begin();
        Ok(Some(Beside { worker, _limited: limited }))
    }
}

/// How many operations of this work go on at once.
fn depth(work: &Work) -> f64 {
    use super::spec::Beside::Reads;
    match *work {
        Work::Read { depth, .. } | Work::Log { beside: Reads { depth, .. }, .. } => {
            f64::from(depth)
        }
        _ => 1.0,
    }
}

/// Operations a second of so many threads, each of which does one after the other.
pub(crate) fn rate(all: &Latencies, threads: f64) -> f64 {
    threads * 1e6 / all.mean_us
}

/// What a trial gives of what a child measured.
fn measured(work: &Work, shows: Shows, outcome: &Outcome) -> Result<Measured, Trouble> {
    let (timed, threads) = match shows {
        Shows::LogMedian | Shows::LogTail => (outcome.log, 1.0),
        Shows::ReadMedian | Shows::ReadRate => (outcome.reads, depth(work)),
    };
    let timed = timed.ok_or_else(|| Trouble::Failed("no operation ended in time".to_owned()))?;
    let value = match shows {
        Shows::LogMedian | Shows::ReadMedian => timed.p50_us,
        Shows::LogTail => timed.p99_us.ok_or_else(|| {
            Trouble::Failed(format!("{} operations tell no 99th percentile", timed.count))
        })?,
        Shows::ReadRate => rate(&timed, threads),
    };
    let mut measured = Measured::of(value).counting(timed.count as f64);
    let quantiles = [
        ("latency-p50", Some(timed.p50_us)),
        ("latency-p99", timed.p99_us),
        ("latency-p99.9", timed.p999_us),
        ("latency-max", Some(timed.max_us)),
    ];
    for (id, value) in quantiles {
        measured = value.into_iter().fold(measured, |measured, us| measured.with(id, us, "us"));
    }
    measured = measured.with("rate", rate(&timed, threads), "operations/s");
    if let (Shows::ReadRate, Some(log)) = (shows, outcome.log) {
        measured = measured.with("log-p50", log.p50_us, "us");
        measured = log.p99_us.into_iter().fold(measured, |m, us| m.with("log-p99", us, "us"));
    }
    Ok(of_device(of_bursts(measured, outcome), outcome))
}

/// The bursts beside a log, and the longest that a record waited meanwhile.
fn of_bursts(measured: Measured, outcome: &Outcome) -> Measured {
    let mean = |of: fn(&super::spec::Burst) -> f64| {
        let all: Vec<f64> = outcome.bursts.iter().map(of).collect();
        untax_core::stats::mean(&all)
    };
    let Some((write, flush)) = mean(|burst| burst.write_s).zip(mean(|burst| burst.flush_s)) else {
        return measured;
    };
    let measured =
        measured.with("burst-write", write * 1e3, "ms").with("burst-flush", flush * 1e3, "ms");
    match outcome.log {
        Some(log) => measured.with("log-stall", log.max_us / 1e3, "ms"),
        None => measured,
    }
}

/// Bytes that the first device moved for each byte that was asked for: what a filesystem adds, and others.
fn of_device(measured: Measured, outcome: &Outcome) -> Measured {
    let Some(Some(Moved { read, written })) = outcome.devices.first() else { return measured };
    let for_each = |moved: untax_core::Bytes, asked: untax_core::Bytes| {
        (asked.0 > 0).then(|| moved.0 as f64 / asked.0 as f64)
    };
    let measured = for_each(*written, outcome.asked.written)
        .into_iter()
        .fold(measured, |m, bytes| m.with("device-written", bytes, "B/B"));
    for_each(*read, outcome.asked.read)
        .into_iter()
        .fold(measured, |m, bytes| m.with("device-read", bytes, "B/B"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::spec::{Beside, Burst};
    use untax_core::Bytes;

    fn latencies(us: u64, count: usize) -> Latencies {
        Latencies::of(vec![Duration::from_micros(us); count]).unwrap()
    }

    fn extra(measured: &Measured, id: &str) -> Option<f64> {
        measured.extras.iter().find(|extra| extra.id == id).map(|extra| extra.value)
    }

    #[test]
    fn a_log_gives_its_median_and_the_rest_beside_it() {
        let outcome = Outcome {
            log: Some(latencies(250, 2000)),
            asked: Moved { read: Bytes(0), written: Bytes(1000) },
            devices: vec![Some(Moved { read: Bytes(0), written: Bytes(3000) })],
            bursts: vec![
                Burst { write_s: 0.1, flush_s: 0.3 },
                Burst { write_s: 0.3, flush_s: 0.5 },
            ],
            ..Outcome::default()
        };
        let work = Work::Log { record: 8192, beside: Beside::Nothing };
        let all = measured(&work, Shows::LogMedian, &outcome).unwrap();
        assert_eq!((all.value, all.operations), (250.0, Some(2000.0)));
        assert_eq!(extra(&all, "latency-p99.9"), Some(250.0));
        assert_eq!(extra(&all, "rate"), Some(4000.0));
        assert_eq!(extra(&all, "device-written"), Some(3.0));
        assert_eq!(
            (extra(&all, "burst-flush"), extra(&all, "log-stall")),
            (Some(400.0), Some(0.25))
        );
        assert_eq!(extra(&all, "device-read"), None);
    }

    #[test]
    fn reads_at_once_give_a_rate() {
        let outcome = Outcome { reads: Some(latencies(500, 50)), ..Outcome::default() };
        let work = Work::Read { block: 8192, depth: 8 };
        let all = measured(&work, Shows::ReadRate, &outcome).unwrap();
        assert!((all.value - 16_000.0).abs() < 1e-6);
        assert_eq!(extra(&all, "latency-p99"), None, "of 50 operations");
    }

    #[test]
    fn what_was_not_measured_is_a_reason() {
        let work = Work::Log { record: 8192, beside: Beside::Nothing };
        let none = measured(&work, Shows::LogMedian, &Outcome::default()).unwrap_err();
        assert!(none.to_string().contains("no operation"));
        let few = Outcome { log: Some(latencies(250, 99)), ..Outcome::default() };
        let few = measured(&work, Shows::LogTail, &few).unwrap_err();
        assert!(few.to_string().contains("99 operations tell no 99th percentile"));
    }
}
