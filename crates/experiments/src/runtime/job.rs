//! Work that runs in an arm whole, and times itself. No operations are counted: what the machine does beside a
//! trial is also the start of the container, which the work does not time.

use super::probe::own_program;
use super::repeat::Done;
use super::scene::{FILE_BYTES, Scene};
use super::work::{WORK, Work, WorkKind};
use super::workloads::Kind;
use crate::platform::{Cell, Measured, Running, Trouble};
use std::path::Path;
use std::time::Duration;
use untax_scenes::{Group, Job, SceneError, find_program};
use untax_trials::Interrupt;

/// Inserts of the trial that tells how many fill the time.
const FEW_INSERTS: u32 = 20;

/// Work in an arm; the container of each trial starts before its clock does.
pub(super) struct JobRunning {
    job: Job,
    scene: Scene,
    kind: Kind,
    /// The user's own work.
    own_command: Option<String>,
    time: Duration,
    /// How many inserts take about as long as a trial.
    inserts: u32,
}

impl JobRunning {
    pub(super) fn start(
        scene: Scene,
        kind: Kind,
        own_command: Option<&str>,
        cell: &Cell,
    ) -> Result<Self, SceneError> {
        let job = scene.job(&own_program(), cell)?;
        let time = cell.workload.trial;
        let mut running = Self {
            job,
            scene,
            kind,
            own_command: own_command.map(str::to_owned),
            time,
            inserts: FEW_INSERTS,
        };
        if running.kind == Kind::Sqlite {
            let rate = running.insert(FEW_INSERTS)?;
            let fill = rate * time.as_secs_f64();
            running.inserts = (fill as u32).clamp(FEW_INSERTS, 1_000_000);
        }
        Ok(running)
    }

    /// One trial.
    fn measure(&self) -> Result<Measured, SceneError> {
        match self.kind {
            Kind::Primes => self.primes(),
            Kind::Own(kind) => self.own(kind),
            Kind::Sqlite => {
                let rate = self.insert(self.inserts)?;
                Ok(Measured::of(rate))
            }
            Kind::Encode => self.encode(),
            Kind::Command => self.command(self.own_command.as_deref().unwrap_or("true")),
            Kind::Redis { .. }
            | Kind::Postgres { .. }
            | Kind::MariaDb { .. }
            | Kind::Exchange(_) => {
                let why = "a server is no program that ends".to_owned();
                Err(SceneError::Host { why })
            }
        }
    }

    fn run(&self, words: &[String]) -> Result<String, SceneError> {
        self.job.run(words, self.time * 4)
    }

    fn primes(&self) -> Result<Measured, SceneError> {
        // sysbench counts whole seconds.
        let seconds = self.time.as_secs().max(1);
        let time = format!("--time={seconds}");
        let arguments = ["cpu", "--cpu-max-prime=20000", "--threads=1", &time, "run"];
        let words = command("sysbench", "sysbench", &arguments)?;
        let output = self.run(&words)?;
        let rate = number_after(&output, "events per second:");
        let rate = rate.ok_or_else(|| no_figure("sysbench", &output))?;
        Ok(Measured::of(rate))
    }

    fn own(&self, kind: WorkKind) -> Result<Measured, SceneError> {
        let work = Work {
            kind,
            seconds: self.time.as_secs_f64(),
            directory: self.job.directory().to_string_lossy().into_owned(),
            file_bytes: FILE_BYTES,
        };
        let spec = serde_json::to_string(&work).unwrap_or_default();
        let program = own_program().to_string_lossy().into_owned();
        // 0: it has no parent here to be tied to; its container ends with the trial.
        let words = [program, WORK.name.to_owned(), "0".to_owned(), spec];
        let output = self.run(&words)?;
        let done = output.lines().rev().find_map(|line| serde_json::from_str::<Done>(line).ok());
        let done = done.ok_or_else(|| no_figure(WORK.name, &output))?;
        Ok(done.measured(kind == WorkKind::Calls))
    }

    /// Inserts so many rows, and gives how many a second.
    fn insert(&self, rows: u32) -> Result<f64, SceneError> {
        const NOW: &str = "SELECT 'at', (julianday('now') - 2440587.5) * 86400.0;\n";
        let mut script =
            "DROP TABLE IF EXISTS t;\nCREATE TABLE t (a INTEGER, b TEXT);\n".to_owned();
        script += NOW;
        script += &"INSERT INTO t VALUES (1, 'a row of the bench');\n".repeat(rows as usize);
        script += NOW;
        let script = self.job.write("insert.sql", &script)?;
        let database = self.job.directory().join("data.sqlite");
        let read = format!(".read {}", script.display());
        let words = command("sqlite3", "sqlite3", &[&database.to_string_lossy(), &read])?;
        let output = self.run(&words)?;
        let at = |line: &str| line.strip_prefix("at|")?.trim().parse::<f64>().ok();
        let times: Vec<f64> = output.lines().filter_map(at).collect();
        match times[..] {
            [begun, ended] if ended > begun => Ok(f64::from(rows) / (ended - begun)),
            _ => Err(no_figure("sqlite3", &output)),
        }
    }

    fn encode(&self) -> Result<Measured, SceneError> {
        const FRAMES: usize = 24;
        let path = self.job.directory().join("frames.yuv");
        if !path.is_file() {
            std::fs::write(&path, frames(FRAMES))
                .map_err(|source| SceneError::File { path: path.clone(), source })?;
        }
        let (input, count) = (path.to_string_lossy().into_owned(), FRAMES.to_string());
        let [width, height] = FRAME.map(|size| size.to_string());
        let words = command(
            "SvtAv1EncApp",
            "svt-av1",
            &["-i", &input, "-w", &width, "-h", &height, "--fps", "30", "-n", &count]
                .into_iter()
                .chain(["--preset", "8", "--lp", "1", "-b", "/dev/null"])
                .collect::<Vec<_>>(),
        )?;
        let output = self.run(&words)?;
        let rate = number_after(&output, "Average Speed:");
        let rate = rate.ok_or_else(|| no_figure("SvtAv1EncApp", &output))?;
        Ok(Measured::of(rate))
    }

    fn command(&self, command: &str) -> Result<Measured, SceneError> {
        const TIMED: &str = r#"begun=$(date +%s%N); (eval "$1") || exit; echo "took $(($(date +%s%N) - begun)) ns""#;
        let words = ["/bin/sh", "-c", TIMED, "untax", command].map(str::to_owned);
        let output = self.job.run(&words, Duration::from_secs(600))?;
        let ns = number_after(&output, "took ").ok_or_else(|| no_figure(command, &output))?;
        Ok(Measured::of(ns / 1e9))
    }
}

impl Running for JobRunning {
    fn trial(&mut self, _: &Interrupt) -> Result<Measured, Trouble> {
        self.measure().map_err(|error| Trouble::of(&error))
    }

    fn groups(&self) -> Vec<String> {
        self.scene.group.as_ref().map(Group::directories).unwrap_or_default()
    }
}

/// A program with arguments, as words.
fn command(program: &str, package: &str, arguments: &[&str]) -> Result<Vec<String>, SceneError> {
    let path = find_program(program, package)?.to_string_lossy().into_owned();
    let arguments = arguments.iter().map(|argument| (*argument).to_owned());
    Ok(std::iter::once(path).chain(arguments).collect())
}

fn no_figure(program: &str, output: &str) -> SceneError {
    let last: Vec<&str> = output.lines().rev().take(3).collect();
    let program = Path::new(program).display().to_string();
    SceneError::NoThroughput { program, output_end: last.join(" | ") }
}

/// The number behind some words.
fn number_after(output: &str, words: &str) -> Option<f64> {
    let (_, rest) = output.split_once(words)?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Width and height of frames.
const FRAME: [usize; 2] = [640, 360];

/// Frames with a gradient that moves, and noise, as a camera has: an encoder has something to do.
fn frames(count: usize) -> Vec<u8> {
    let [width, height] = FRAME;
    let mut rng = fastrand::Rng::with_seed(1);
    let mut frames = Vec::with_capacity(count * width * height * 3 / 2);
    for frame in 0..count {
        for y in 0..height {
            frames.extend((0..width).map(|x| (x + y + 4 * frame) as u8 ^ rng.u8(..8)));
        }
        frames.extend(std::iter::repeat_n(128, width * height / 2));
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_in_the_words_of_their_programs() {
        let sysbench = "CPU speed:\n    events per second:   731.10\n";
        assert_eq!(number_after(sysbench, "events per second:"), Some(731.10));
        let svt = "Average Speed:\t\t41.203 fps\n";
        assert_eq!(number_after(svt, "Average Speed:"), Some(41.203));
        assert_eq!(number_after("FATAL: no\n", "events per second:"), None);
    }

    #[test]
    fn frames_are_of_the_size_that_the_encoder_is_told() {
        assert_eq!(frames(2).len(), 2 * 640 * 360 * 3 / 2);
    }
}
