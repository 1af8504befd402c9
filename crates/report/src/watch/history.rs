//! What is remembered of one database, window by window.

use crate::{facts, summary, time};
use jiff::Timestamp;
use std::collections::VecDeque;
use untax_core::check::{Check, Checked};
use untax_core::{Finding, Reading, Unmeasured};

/// Windows that are remembered: more than the widest terminal has columns.
pub const MOST_WINDOWS: usize = 600;

/// One database since it was first seen, through restarts; or the host.
#[derive(Debug, Clone)]
pub struct History {
    /// Its own number: ids change with a restart.
    pub key: u64,
    /// As it was checked last; `None` for the host.
    pub checked: Option<Box<Checked>>,
    /// The causes that were found within memory.
    pub causes: Vec<Cause>,
    /// The windows, the latest last; `None` for those in which it was not there.
    pub moments: VecDeque<Option<Moment>>,
    /// When it was found to have ended.
    pub ended: Option<Timestamp>,
    /// The main process before the last restart, and when that was seen.
    pub restarted: Option<(u32, Timestamp)>,
    /// Why causes could not be measured in the latest window.
    pub unmeasured: Vec<Unmeasured>,
}

/// A cause, as it was found last.
#[derive(Debug, Clone)]
pub struct Cause {
    pub finding: Finding,
    pub seen: Timestamp,
    /// Whether that was in the latest window.
    pub now: bool,
}

/// One window.
#[derive(Debug, Clone)]
pub struct Moment {
    /// Threads that were active, on average.
    pub active: Reading<f64>,
    /// Shares of the active time, as [`time::PARTS`]; `None` when there was none or it is not
    /// known.
    pub parts: Option<[f64; 8]>,
    /// The causes that were found, with their taxes where measured.
    found: Vec<(String, Option<f64>)>,
    /// Rules that could not look, or not measure.
    blind: Vec<String>,
}

/// What a window says of one cause.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Level {
    /// It takes this share.
    Share(f64),
    /// It was looked for and not found.
    Nothing,
    /// It is not known.
    Unmeasured,
    /// The database was not there.
    NotThere,
}

impl Moment {
    fn new(time: Option<&Checked>, window_s: f64, of: &[Finding], gaps: &[Unmeasured]) -> Self {
        let active = time.map_or_else(
            || Reading::Absent("a host has no threads of its own".to_owned()),
            |db| db.time.active_s.as_ref().map(|active| active.0 / window_s.max(f64::MIN_POSITIVE)),
        );
        let share = |finding: &Finding| finding.tax.as_ref().map(|tax| tax.share);
        Self {
            active,
            parts: time.and_then(|db| time::shares(&db.time)),
            found: of.iter().map(|finding| (finding.rule.clone(), share(finding))).collect(),
            blind: gaps.iter().map(|gap| gap.rule.clone()).collect(),
        }
    }

    fn level(&self, rule: &str) -> Level {
        match self.found.iter().find(|(found, _)| found == rule) {
            Some((_, Some(share))) if share.is_finite() => Level::Share(*share),
            Some(_) => Level::Unmeasured,
            None if self.blind.iter().any(|blind| blind == rule) => Level::Unmeasured,
            None => Level::Nothing,
        }
    }
}

impl History {
    /// One that was not seen before.
    pub fn new(key: u64) -> Self {
        Self {
            key,
            checked: None,
            causes: Vec::new(),
            moments: VecDeque::new(),
            ended: None,
            restarted: None,
            unmeasured: Vec::new(),
        }
    }

    /// One whose first window is not over yet.
    pub fn opened(key: u64, db: &Checked) -> Self {
        Self { checked: Some(Box::new(db.clone())), ..Self::new(key) }
    }

    /// Whether it is this very process.
    pub fn is_same_process(&self, db: &Checked) -> bool {
        self.checked.as_ref().is_some_and(|own| own.id == db.id)
    }

    /// Whether this database is the same one, started again: of the same kind, with the same data.
    pub fn is_restart_of(&self, db: &Checked) -> bool {
        self.checked.as_deref().is_some_and(|own| own.has_data_of(db))
    }

    /// A window in which the database was there.
    pub fn add_window(&mut self, db: &Checked, check: &Check) {
        self.ended = None;
        if let Some(own) = self.checked.as_ref().filter(|own| own.pid != db.pid) {
            self.restarted = Some((own.pid, check.taken_at));
        }
        let moment = Moment::new(Some(db), check.window_s, &db.findings, &db.unmeasured);
        self.add(&db.findings, &db.unmeasured, moment, check.taken_at);
        self.checked = Some(Box::new(db.clone()));
    }

    /// A window of the host.
    pub fn add_host_window(&mut self, check: &Check) {
        let moment = Moment::new(None, check.window_s, &check.findings, &check.unmeasured);
        self.add(&check.findings, &check.unmeasured, moment, check.taken_at);
    }

    fn add(
        &mut self,
        findings: &[Finding],
        unmeasured: &[Unmeasured],
        moment: Moment,
        at: Timestamp,
    ) {
        self.push(Some(moment));
        for finding in summary::findings_in_order(findings) {
            let cause = Cause { finding: finding.clone(), seen: at, now: true };
            match self.causes.iter_mut().find(|known| known.finding.rule == finding.rule) {
                Some(known) => *known = cause,
                None => self.causes.push(cause),
            }
        }
        self.unmeasured = unmeasured.to_vec();
    }

    /// A window in which it was not there.
    pub fn add_absence(&mut self, at: Timestamp) {
        self.push(None);
        self.ended.get_or_insert(at);
        self.unmeasured.clear();
    }

    fn push(&mut self, moment: Option<Moment>) {
        self.moments.push_back(moment);
        while self.moments.len() > MOST_WINDOWS {
            self.moments.pop_front();
        }
        self.causes.iter_mut().for_each(|cause| cause.now = false);
        let moments = &self.moments;
        self.causes.retain(|cause| {
            let found =
                |moment: &Moment| moment.found.iter().any(|(rule, _)| *rule == cause.finding.rule);
            moments.iter().flatten().any(found)
        });
    }

    /// Whether nothing of it is within memory any more.
    pub fn is_forgotten(&self) -> bool {
        self.moments.iter().all(Option::is_none)
    }

    /// The causes: those of the latest window first, the dearest before the others.
    pub fn causes(&self) -> Vec<&Cause> {
        let share = |cause: &Cause| cause.finding.tax.as_ref().map_or(-1.0, |tax| tax.share);
        let mut all: Vec<&Cause> = self.causes.iter().collect();
        all.sort_by(|a, b| {
            let dearest = share(b).total_cmp(&share(a));
            let gravest = b.finding.severity.cmp(&a.finding.severity);
            b.now.cmp(&a.now).then(dearest).then(gravest)
        });
        all
    }

    /// What each of the latest windows says of a cause, as many as fit into `room`.
    pub fn levels(&self, rule: &str, room: usize) -> Vec<Level> {
        let level = |moment: &Option<Moment>| {
            moment.as_ref().map_or(Level::NotThere, |moment| moment.level(rule))
        };
        self.latest(room).map(level).collect()
    }

    /// The latest windows, as many as fit into `room`.
    pub fn latest(&self, room: usize) -> impl Iterator<Item = &Option<Moment>> {
        self.moments.iter().skip(self.moments.len().saturating_sub(room))
    }

    /// The latest window in which it was there.
    pub fn now(&self) -> Option<&Moment> {
        self.moments.back()?.as_ref()
    }

    /// What names it.
    pub fn name(&self) -> String {
        self.checked.as_deref().map_or_else(|| "This host".to_owned(), facts::name)
    }
}
