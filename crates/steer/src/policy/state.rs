//! What became of one instance so far.

use super::trial::Trial;
use serde::{Deserialize, Serialize};
use untax_core::cpus::Cpus;

/// The longest that a pause between two trials grows to, seconds.
const LONGEST_S: f64 = 960.0;
/// The first pause after a trial that brought nothing, and the time for which a good one holds, seconds.
const FIRST_S: f64 = 30.0;

/// Coming home and leaving again within this many holds doubles the patience.
const SOON: f64 = 10.0;
/// The most that patience grows to.
const MOST_PATIENCE: f64 = 16.0;

/// What became of one instance so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    /// The CPUs that its threads have.
    pub cpus: Cpus,
    /// What the last trial showed.
    pub verdict: Option<Verdict>,
    pub(super) changed_s: f64,
    /// Whether the last change gave it more CPUs.
    pub(super) is_grown: bool,
    pub(super) full_ticks: u32,
    pub(super) calm_since_s: Option<f64>,
    pub(super) came_home_s: Option<f64>,
    /// How many holds its load must fit into its preferred CPUs before it goes home.
    pub(super) patience: f64,
    pub(super) trial: Trial,
    pub(super) back_off_until_s: f64,
    pub(super) pause_s: f64,
    pub(super) next_trial_s: f64,
}

/// What a trial showed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Verdict {
    /// Throughput with more CPUs over that at home; none where nothing counts its work.
    pub gain: Option<f64>,
    /// Whether it may keep more CPUs.
    pub is_worth: bool,
}

impl State {
    pub(super) fn grow(&mut self, cpus: Cpus, now_s: f64) {
        self.change(cpus, now_s);
        self.is_grown = true;
    }

    pub(super) fn shrink(&mut self, cpus: Cpus, now_s: f64) {
        self.change(cpus, now_s);
        self.is_grown = false;
        self.trial = Trial::None;
    }

    fn change(&mut self, cpus: Cpus, now_s: f64) {
        self.cpus = cpus;
        self.changed_s = now_s;
        self.full_ticks = 0;
        self.calm_since_s = None;
        self.patience = self.patience.max(1.0);
    }

    /// It leaves home: where it came home shortly before, it is to wait longer the next time.
    pub(super) fn note_return(&mut self, now_s: f64, hold_s: f64) {
        let Some(came_home_s) = self.came_home_s.take() else { return };
        let is_soon = now_s - came_home_s < SOON * hold_s * self.patience;
        self.patience = if is_soon { (self.patience * 2.0).min(MOST_PATIENCE) } else { 1.0 };
    }

    /// Keeps what a trial showed, until it is tried again: later each time that it shows the same.
    pub(super) fn conclude(&mut self, verdict: Verdict, now_s: f64) {
        let is_same = self.verdict.is_some_and(|last| last.is_worth == verdict.is_worth);
        let next_s = if is_same { self.pause_s * 2.0 } else { FIRST_S };
        self.pause_s = next_s.clamp(FIRST_S, LONGEST_S);
        self.verdict = Some(verdict);
        self.trial = Trial::None;
        self.next_trial_s = now_s + self.pause_s;
        self.back_off_until_s = if verdict.is_worth { now_s } else { now_s + self.pause_s };
    }
}
