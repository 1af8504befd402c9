//! Findings by what the kernel counts of tasks that are held up, where nothing is traced: that a cause was
//! there, and for how much of the window; not what it cost the database, because nobody saw its threads.

use crate::evidence;
use crate::model::pressure::pressure;
use crate::model::stall;
use crate::model::without_tax;
use untax_core::pressure::Pressure;
use untax_core::window::Pair;
use untax_core::{Diagnosis, Evidence, Interval, Reading, Severity, Window};

/// The time in which all tasks of a group that had work were held up (PSI, full).
pub struct HeldUp {
    /// As a share of the window; `None` where the kernel does not count it.
    share: Option<f64>,
    /// For what, and whose tasks.
    source: String,
}

impl HeldUp {
    /// For a CPU.
    pub fn for_cpu(window: &Window, pair: &Pair) -> Self {
        Self::of(window, pair, "cpu", |pressure| &pressure.cpu_full)
    }

    /// For memory.
    pub fn for_memory(window: &Window, pair: &Pair) -> Self {
        Self::of(window, pair, "memory", |pressure| &pressure.memory_full)
    }

    fn of(window: &Window, pair: &Pair, what: &str, read: fn(&Pressure) -> &Reading<f64>) -> Self {
        let pressure = pressure(window, pair);
        let scope = pressure.value().map_or("", |pressure| pressure.scope.as_str());
        let source = format!("{what}.pressure, full, of the {scope}");
        let share = pressure.value().and_then(|pressure| read(pressure).value().copied());
        Self { share, source }
    }

    /// The part of it that a cause can have made, which held tasks up for this share of the window at most.
    pub fn at_most(mut self, share: f64) -> Self {
        self.share = self.share.map(|held| held.min(share));
        self
    }

    /// This part of it.
    pub fn times(mut self, part: f64) -> Self {
        self.share = self.share.map(|held| held * part);
        self
    }

    /// How much it matters: as much as a tax of that size; little where nobody knows how much it is.
    pub fn severity(&self) -> Severity {
        let severity = |share| stall::severity(Interval::new(share, share, share));
        self.share.map_or(Severity::Low, severity)
    }

    /// It, where the kernel counts it.
    pub fn evidence(&self) -> Option<Evidence> {
        Some(Evidence::new(&evidence::HELD_UP, self.share?, &self.source))
    }
}

/// Whether nothing of a database was traced.
pub fn is_untraced(pair: &Pair) -> bool {
    !pair.activity.is_present()
}

/// What was found, and of each finding that has no tax because nothing was traced that it is so.
pub fn with_reasons(window: &Window, found: Vec<Diagnosis>) -> Vec<Diagnosis> {
    let untraced = window.databases().filter(is_untraced).map(|pair| pair.end.id.clone());
    let untraced: Vec<String> = untraced.collect();
    let of_untraced = |diagnosis: &Diagnosis| {
        diagnosis.database.as_ref().is_some_and(|database| untraced.contains(database))
    };
    let (untraced, mut traced): (Vec<_>, Vec<_>) = found.into_iter().partition(of_untraced);
    let why = |pair: &Pair| pair.activity.why().unwrap_or_default();
    traced.extend(without_tax::with_reasons(window, untraced, why));
    traced
}
