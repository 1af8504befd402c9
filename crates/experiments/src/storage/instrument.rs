//! The same work by this program and by another, close in time.

use super::check::check;
use super::device::Way;
use super::files;
use super::spec::{Job, Work};
use super::trial::{answer, rate, spawn};
use super::work::Instrument;
use crate::platform::{Measured, Running, Trouble};
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use untax_changes::Program;
use untax_scenes::find_program;
use untax_trials::Interrupt;

/// How often a program is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// How long each of both works.
const EACH: Duration = Duration::from_secs(1);

/// Where Debian and others keep PostgreSQL's programs.
const POSTGRES: [&str; 5] = ["18", "17", "16", "15", "14"];

/// A job, and the program that it is compared with.
pub(crate) struct Comparison {
    program: Program,
    job: Job,
    way: Way,
    line: Vec<String>,
    with: Instrument,
    trials: u32,
}

impl Comparison {
    /// Finds the program.
    pub(crate) fn new(
        program: Program,
        job: Job,
        way: Way,
        with: Instrument,
    ) -> Result<Self, Trouble> {
        let job = Job { length: EACH, ..job };
        let line = match with {
            Instrument::Fio => fio(&job)?,
            Instrument::PgTestFsync => pg_test_fsync(&job)?,
        };
        Ok(Self { program, job, way, line, with, trials: 0 })
    }

    fn own(&self, interrupt: &Interrupt) -> Result<f64, Trouble> {
        let outcome = answer(spawn(&self.program, &self.job)?, interrupt)?;
        check(&outcome, &self.way).map_err(Trouble::Failed)?;
        let (threads, all) = match self.job.work {
            Work::Read { depth, .. } => (f64::from(depth), outcome.reads),
            _ => (1.0, outcome.log),
        };
        let all = all.ok_or_else(|| Trouble::Failed("no operation ended in time".to_owned()))?;
        Ok(rate(&all, threads))
    }

    fn other(&self, interrupt: &Interrupt) -> Result<f64, Trouble> {
        let text = output(&self.line, interrupt)?;
        let rate = match self.with {
            Instrument::Fio => fio_rate(&text, matches!(self.job.work, Work::Read { .. })),
            Instrument::PgTestFsync => pg_test_fsync_rate(&text),
        };
        rate.ok_or_else(|| {
            let program = self.line.first().map_or("", String::as_str);
            Trouble::Failed(format!("{program} printed no rate; is its version supported?"))
        })
    }
}

impl Running for Comparison {
    fn trial(&mut self, interrupt: &Interrupt) -> Result<Measured, Trouble> {
        // By turns, so that drift falls on both alike.
        let is_own_first = self.trials.is_multiple_of(2);
        self.trials += 1;
        let (own, other) = if is_own_first {
            let own = self.own(interrupt)?;
            (own, self.other(interrupt)?)
        } else {
            let other = self.other(interrupt)?;
            (self.own(interrupt)?, other)
        };
        Ok(Measured::of(own / other).with("own", own, "1/s").with("other", other, "1/s"))
    }
}

fn fio(job: &Job) -> Result<Vec<String>, Trouble> {
    let program = find_program("fio", "fio").map_err(|error| Trouble::of(&error))?;
    let (path, size, own) = match job.work {
        Work::Read { block, depth } => {
            let own =
                format!("--rw=randread --bs={block} --direct=1 --numjobs={depth} --norandommap");
            (files::data_path(&job.directory), job.data, own)
        }
        Work::Log { record, .. } => {
            let own = format!("--rw=write --bs={record} --fdatasync=1 --overwrite=1");
            (files::log_path(&job.directory), files::LOG, own)
        }
        _ => return Err(Trouble::Failed("fio is compared with logs and reads only".to_owned())),
    };
    let path = path.to_string_lossy().replace(':', "\\:");
    let common = "--name=untax --ioengine=psync --thread --group_reporting --time_based \
                  --allow_file_create=0 --output-format=json";
    let mut line = vec![program.to_string_lossy().into_owned()];
    line.extend(common.split_whitespace().chain(own.split_whitespace()).map(str::to_owned));
    line.push(format!("--filename={path}"));
    line.push(format!("--size={}", size.0));
    line.push(format!("--runtime={}", EACH.as_secs()));
    if let [cpu] = job.cpus[0].as_slice() {
        line.push(format!("--cpus_allowed={cpu}"));
    }
    Ok(line)
}

/// Operations a second of the one job in fio's JSON.
fn fio_rate(text: &str, is_read: bool) -> Option<f64> {
    // A warning may stand before it.
    let json: serde_json::Value = serde_json::from_str(&text[text.find('{')?..]).ok()?;
    let side = if is_read { "read" } else { "write" };
    json.pointer(&format!("/jobs/0/{side}/iops"))?.as_f64().filter(|rate| *rate > 0.0)
}

fn pg_test_fsync(job: &Job) -> Result<Vec<String>, Trouble> {
    let places = POSTGRES.map(|version| format!("/usr/lib/postgresql/{version}/bin/pg_test_fsync"));
    let mut found = places.into_iter().filter(|path| std::path::Path::new(path).is_file());
    let program = match found.next() {
        Some(program) => program,
        None => find_program("pg_test_fsync", "postgresql")
            .map_err(|error| Trouble::of(&error))?
            .to_string_lossy()
            .into_owned(),
    };
    let file = job.directory.join("pg-test-fsync").to_string_lossy().into_owned();
    Ok([&program, "-s", "1", "-f", &file].map(str::to_owned).to_vec())
}

/// `        fdatasync      1234.567 ops/sec  810 usecs/op`, the first: one record of 8 kB.
fn pg_test_fsync_rate(text: &str) -> Option<f64> {
    let one = &text[text.find("one 8kB write")?..];
    let line = one.lines().find_map(|line| line.trim().strip_prefix("fdatasync"))?;
    line.split_whitespace().next()?.parse().ok().filter(|rate: &f64| *rate > 0.0)
}

/// A program that ends with this value.
struct Other(Child);

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a program to its end and gives what it printed: less than a pipe holds.
fn output(line: &[String], interrupt: &Interrupt) -> Result<String, Trouble> {
    let program = line.first().map_or("", String::as_str);
    let failed = |why: String| Trouble::Failed(format!("{program}: {why}"));
    let child = Command::new(program)
        .args(&line[1..])
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut other = Other(child.map_err(|error| failed(error.to_string()))?);
    let status = loop {
        match other.0.try_wait().map_err(|error| failed(error.to_string()))? {
            Some(status) => break status,
            None => interrupt.sleep(LOOK)?,
        }
    };
    let mut text = String::new();
    if let Some(out) = other.0.stdout.as_mut() {
        out.read_to_string(&mut text).map_err(|error| failed(error.to_string()))?;
    }
    if status.success() { Ok(text) } else { Err(failed(status.to_string())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_found_in_the_words_of_each_program() {
        let json = r#"fio: a warning
            {"jobs": [{"read": {"iops": 0.0}, "write": {"iops": 4012.5}}]}"#;
        assert_eq!(fio_rate(json, false), Some(4012.5));
        assert_eq!(fio_rate(json, true), None, "no reads were made");
        let text = "Compare file sync methods using one 8kB write:\n\
                    (in wal_sync_method preference order, except fdatasync is Linux's default)\n\
                    \x20       open_datasync                      3012.1 ops/sec     332 usecs/op\n\
                    \x20       fdatasync                          4125.342 ops/sec     242 usecs/op\n\
                    Compare file sync methods using two 8kB writes:\n\
                    \x20       fdatasync                          2000.0 ops/sec     500 usecs/op\n";
        assert_eq!(pg_test_fsync_rate(text), Some(4125.342));
        assert_eq!(pg_test_fsync_rate("fdatasync n/a"), None);
        assert_eq!(fio_rate("", true), None);
    }
}
