//! Windows in order of a clock that nobody sets, the stretches without a gap, and what is to be said of them.

use crate::history::{History, Remark};
use jiff::Timestamp;
use std::ops::Range;
use untax_core::stats;
use untax_core::timeline::Note;

/// Windows follow each other if no more than so many are missing in between.
const MISSING: f64 = 2.0;

/// Both clocks are read one after the other: what they differ by beyond this is no delay between the two, s.
const CLOCKS_S: f64 = 1.0;

/// A smaller step says something beside other signs only.
const LEAST_STEP_S: f64 = 0.25;

/// The time line of a history.
pub(crate) struct Times {
    /// When each window ended, seconds since 1970 by the last clock: always later than the one before.
    pub end_s: Vec<f64>,
    /// How long each was.
    pub window_s: Vec<f64>,
    /// Windows without a gap between them.
    pub stretches: Vec<Range<usize>>,
    /// By how much the clock was set within or before a window, seconds.
    pub clock_steps: Vec<(usize, f64)>,
    pub notes: Vec<Note>,
}

impl Times {
    pub fn of(history: &History) -> Self {
        let count = history.at_s.len();
        let usual_s = stats::median(&history.window_s).unwrap_or(0.0);
        let mut elapsed_s = vec![0.0; count];
        let (mut starts, mut clock_steps, mut notes) = (vec![0], Vec::new(), Vec::new());
        for at in 1..count {
            let by_clock = history.at_s[at] - history.at_s[at - 1];
            let by_uptime = history.up_s[at] - history.up_s[at - 1];
            // After a boot the uptime is smaller, or larger by less than has passed.
            let booted = by_uptime <= 0.0;
            let passed_s = if booted { by_clock.max(history.window_s[at]) } else { by_uptime };
            elapsed_s[at] = elapsed_s[at - 1] + passed_s;
            let step_s = by_clock - by_uptime;
            if booted {
                notes.push((at, "reboot", "the host was started again".to_owned()));
            } else if step_s.abs() > CLOCKS_S {
                notes.push((at, "clock-step", clock_step(step_s)));
            }
            if !booted && step_s.abs() > LEAST_STEP_S {
                clock_steps.push((at, step_s));
            }
            let missing_s = passed_s - history.window_s[at];
            if booted || missing_s > MISSING * usual_s.max(history.window_s[at]) {
                starts.push(at);
                let text = format!("nothing was recorded for {}", length(missing_s));
                notes.push((at, "gap", text));
            }
        }
        let last = count.saturating_sub(1);
        let end = history.at_s.last().copied().unwrap_or(0.0);
        let end_s: Vec<f64> = elapsed_s.iter().map(|s| end - (elapsed_s[last] - s)).collect();
        notes.extend(history.remarks.iter().map(|(at, remark)| (*at, id(*remark), words(*remark))));
        notes.sort_by_key(|(at, ..)| *at);
        let note = |(at, id, text): (usize, &str, String)| {
            let at = end_s.get(at.min(last)).map(|end_s| timestamp(*end_s));
            Note { id: id.to_owned(), at, text }
        };
        let behind = starts.iter().skip(1).copied().chain([count]);
        let stretches = starts.iter().copied().zip(behind).map(|(start, end)| start..end).collect();
        let notes = notes.into_iter().map(note).collect();
        Self { end_s, window_s: history.window_s.clone(), stretches, clock_steps, notes }
    }

    /// When a window began; the end of the last one for the place behind it.
    pub fn start(&self, at: usize) -> Timestamp {
        match (self.end_s.get(at), self.window_s.get(at)) {
            (Some(end_s), Some(window_s)) => timestamp(end_s - window_s),
            _ => self.end_s.last().map_or(Timestamp::UNIX_EPOCH, |end_s| timestamp(*end_s)),
        }
    }

    /// When a window ended.
    pub fn end(&self, at: usize) -> Timestamp {
        timestamp(self.end_s.get(at).or(self.end_s.last()).copied().unwrap_or(0.0))
    }
}

pub(crate) fn timestamp(at_s: f64) -> Timestamp {
    Timestamp::from_millisecond((at_s * 1e3).round() as i64).unwrap_or(Timestamp::UNIX_EPOCH)
}

fn clock_step(step_s: f64) -> String {
    let way = if step_s > 0.0 { "forward" } else { "back" };
    format!("the clock was set {way} by {}", length(step_s.abs()))
}

fn id(remark: Remark) -> &'static str {
    match remark {
        Remark::TornEnd => "torn-end",
        Remark::Damaged => "damaged",
    }
}

fn words(remark: Remark) -> String {
    match remark {
        Remark::TornEnd => "the recording ends within a frame: its last minute is lost",
        Remark::Damaged => "some windows are damaged in the recording, and left out",
    }
    .to_owned()
}

/// A length of time as people say it.
pub(crate) fn length(seconds: f64) -> String {
    match seconds {
        s if s < 100.0 => format!("{s:.1} s"),
        s if s < 6000.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}
