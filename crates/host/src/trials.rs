//! Trials of untax on this machine: benches, verifications, labs. They set and load the machine, so what a database
//! pays meanwhile is not what its platform takes.
//!
//! Each has a file in a folder that only root writes to, of one line: what it is, when its process started (clock
//! ticks since boot), when it began and, once it is over, when it ended (seconds since 1970). A file without an end
//! whose process is gone is of one that was killed.

use crate::Host;
use crate::node_files::TRIALS;
use crate::process::stat;

/// Where the files are; gone when the machine starts anew.
pub const FOLDER: &str = TRIALS;

/// A trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// Its process, which its file is named by.
    pub pid: u32,
    /// The command: `bench`, `verify`, `lab` or `demo`.
    pub what: String,
    /// When its process started, clock ticks since boot: a number of a process is used again.
    pub started_ticks: u64,
    /// When it began, seconds since 1970.
    pub begun_s: f64,
    /// When it ended, seconds since 1970.
    pub ended_s: Option<f64>,
}

/// The longest name of a command.
const LONGEST: usize = 20;

impl Trial {
    /// The line of its file.
    pub fn line(&self) -> String {
        let ended = self.ended_s.map(|ended_s| format!(" {ended_s:.3}")).unwrap_or_default();
        format!("{} {} {:.3}{ended}\n", self.what, self.started_ticks, self.begun_s)
    }

    fn of(pid: u32, text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let mut word = || words.next();
        let what = word()?;
        let is_name = what.len() <= LONGEST && what.bytes().all(|byte| byte.is_ascii_lowercase());
        let what = is_name.then(|| what.to_owned())?;
        let started_ticks = word()?.parse().ok()?;
        let begun_s = word()?.parse().ok().filter(|at_s: &f64| at_s.is_finite())?;
        let ended_s = match word() {
            None => None,
            Some(word) => Some(word.parse().ok().filter(|at_s: &f64| at_s.is_finite())?),
        };
        Some(Self { pid, what, started_ticks, begun_s, ended_s })
    }

    /// Whether it runs now.
    pub fn runs(&self, host: &Host) -> bool {
        let process = stat(host, self.pid).into_value();
        self.ended_s.is_none()
            && process.is_some_and(|process| process.started_ticks == self.started_ticks)
    }
}

/// The trials that left a file since the machine started. What is no such file is left out.
pub fn all(host: &Host) -> Vec<Trial> {
    let names = host.names(FOLDER).into_value().unwrap_or_default();
    let of = |name: String| parse(&name, &host.text(&format!("{FOLDER}/{name}")).into_value()?);
    names.into_iter().filter_map(of).collect()
}

/// The trial of a file of this name; `None` where it is the file of none.
pub fn parse(name: &str, text: &str) -> Option<Trial> {
    Trial::of(name.parse().ok()?, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_written_and_others_are_none() {
        let trial = |ended_s| Trial {
            pid: 7,
            what: "bench".to_owned(),
            started_ticks: 11,
            begun_s: 2.5,
            ended_s,
        };
        for trial in [trial(None), trial(Some(9.25))] {
            assert_eq!(parse("7", &trial.line()), Some(trial));
        }
        for text in ["", "bench", "bench 1", "bench x 1", "a\"b 1 2", "bench 1 inf", "bench 1 2 x"]
        {
            assert_eq!(parse("7", text), None, "{text}");
        }
        assert_eq!(parse(".7.new", &trial(None).line()), None);
    }
}
