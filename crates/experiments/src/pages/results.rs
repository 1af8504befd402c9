//! From trials to the result that is printed and saved.

use super::agreement::{self, Key, Rounds};
use super::options::{Page, Request};
use super::plan::{Plan, Purpose, Trial, chased};
use super::schema::{Cell, PagesBench, Ratio, SCHEMA, SpoiledTrial};
use super::table::Layout;
use super::warnings::Warning;
use crate::machine::Machine;
use jiff::Timestamp;
use std::collections::BTreeMap;
use untax_core::bench::{self, Noise, RatioVerdict};
use untax_core::calibration::{MOST_APART, TouchPenalty};
use untax_core::guards::{Guard, GuardId};
use untax_core::{Bytes, Calibration, Interval, Reading, stats};

/// Pairs below which no ratio is called faster or slower.
const FEWEST_PAIRS: usize = 3;

/// The noise floor as long as nothing was repeated: no ratio of interest stands above ±100 %.
const UNKNOWN_FLOOR: f64 = 1.0;

#[derive(Debug, Clone, Default)]
struct Tally {
    rounds: Rounds,
    page_tables: Bytes,
    rows: u64,
    table: Bytes,
}

/// All trials so far.
#[derive(Debug)]
pub(crate) struct Results {
    request: Request,
    machine: Machine,
    run: String,
    together: bool,
    cells: Cells,
    repeats: Vec<(Key, u32, f64)>,
    chases: BTreeMap<Page, Rounds>,
    chased_memory: Bytes,
    calibration: Option<Calibration>,
    warnings: Vec<bench::Warning>,
    spoiled: Vec<SpoiledTrial>,
}

impl Results {
    pub(crate) fn new(request: &Request, plan: &Plan, machine: &Machine, run: &str) -> Self {
        Self {
            request: request.clone(),
            machine: machine.clone(),
            run: run.to_owned(),
            together: plan.together,
            cells: BTreeMap::new(),
            repeats: Vec::new(),
            chases: BTreeMap::new(),
            chased_memory: Bytes(0),
            calibration: None,
            warnings: Vec::new(),
            spoiled: Vec::new(),
        }
    }

    /// Keeps what was measured beside the cells.
    pub(crate) fn calibrated(&mut self, calibration: Calibration) {
        self.calibration = Some(calibration);
    }

    /// Adds a warning once.
    pub(crate) fn warn(&mut self, warning: &Warning) {
        let warning = warning.saved();
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// Adds a trial.
    pub(crate) fn add(&mut self, layout: &Layout, trial: Trial, rate: f64, page_tables: Bytes) {
        let Trial { page, connections, round, purpose } = trial;
        let key = Key { row_bytes: layout.row_bytes, connections, page };
        match purpose {
            Purpose::Measure => {
                let tally = self.cells.entry(key).or_default();
                tally.rounds.insert(round, rate);
                (tally.page_tables, tally.rows) = (page_tables, layout.rows);
                tally.table = layout.bytes();
            }
            Purpose::Repeat => self.repeats.push((key, round, rate)),
            Purpose::Chase => {
                self.chases.entry(page).or_default().insert(round, rate);
                self.chased_memory = layout.bytes();
            }
        }
    }

    /// Keeps a trial that counts for nothing.
    pub(crate) fn spoil(&mut self, layout: &Layout, trial: Trial, rate: f64, guards: Vec<Guard>) {
        self.spoiled.push(SpoiledTrial {
            page: trial.page.id().to_owned(),
            row_bytes: Bytes(layout.row_bytes),
            connections: trial.connections,
            round: trial.round,
            reads_per_s: rate,
            guards,
        });
    }

    /// The warnings so far, one of spoiled trials, and those of trials that contradict each other.
    fn warnings(&self, judged: &Judged) -> Vec<bench::Warning> {
        let guards = self.spoiled.iter().flat_map(|trial| &trial.guards);
        let mut guards: Vec<&str> = guards.map(|guard| guard.id.id()).collect();
        guards.sort_unstable();
        guards.dedup();
        let spoiled = Warning::Spoiled { trials: self.spoiled.len(), guards: guards.join(", ") };
        let spoiled = (!self.spoiled.is_empty()).then(|| spoiled.saved());
        let apart = Warning::TrialsApart { trials: judged.strays.len() };
        let apart = (!judged.strays.is_empty()).then(|| apart.saved());
        let medians = judged.medians();
        let cells = agreement::contradictions(&medians).into_iter();
        let cells = cells.map(|pair| agreement::warning(pair, &medians).saved());
        let split = judged.cells.iter().filter(|(_, tally)| agreement::is_split(&tally.rounds));
        let split = split.map(|(key, tally)| agreement::split_warning(*key, &tally.rounds).saved());
        self.warnings
            .iter()
            .cloned()
            .chain(spoiled)
            .chain(apart)
            .chain(split)
            .chain(cells)
            .collect()
    }

    /// The result as it stands.
    pub(crate) fn assemble(&self, complete: bool) -> PagesBench {
        let judged = Judged::of(&self.cells);
        let ratios = self.noise_ratios(&judged.cells);
        let floor = self.floor(&ratios);
        let spoiled = [self.spoiled.clone(), judged.strays.clone()].concat();
        let request = &self.request;
        PagesBench {
            schema: SCHEMA.to_owned(),
            run: self.run.clone(),
            taken_at: Timestamp::now(),
            cpu_model: self.machine.cpu_model.clone(),
            kernel_release: self.machine.kernel_release.clone(),
            idle: self.machine.idle.clone(),
            rows: self.cells.values().map(|tally| tally.rows).max().or(request.rows).unwrap_or(0),
            access: request.access.id().to_owned(),
            model: request.model.id().to_owned(),
            trial_s: request.trial.as_secs_f64(),
            seed: request.seed,
            method: super::method::sentences(request, self.together),
            cells: judged.cells.iter().filter_map(|(key, tally)| self.cell(*key, tally)).collect(),
            ratios: ratios_of(&judged.true_cells(), floor),
            noise: Noise { ratios, floor },
            warnings: self.warnings(&judged),
            spoiled,
            calibration: self.calibration(),
            complete,
        }
    }

    /// How far the median of as many identical pairs strays as stand behind each ratio.
    fn floor(&self, ratios: &[f64]) -> f64 {
        let pairs = self.request.trials as usize;
        stats::noise_floor_of_median(ratios, pairs).unwrap_or(UNKNOWN_FLOOR)
    }

    fn cell(&self, key: Key, tally: &Tally) -> Option<Cell> {
        let trials: Vec<f64> = tally.rounds.values().copied().collect();
        Some(Cell {
            page: key.page.id().to_owned(),
            row_bytes: Bytes(key.row_bytes),
            connections: key.connections,
            model: self.request.model.id().to_owned(),
            rows: tally.rows,
            table_bytes: tally.table,
            reads_per_s: stats::median_interval(&trials)?.into(),
            trials,
            page_table_bytes: tally.page_tables,
        })
    }

    /// How far identical trials differ. Where all tables live together, a repeat stands beside
    /// its cell as one page's trial beside another's. Otherwise the two fillings of one table are
    /// as far apart as the fillings that are compared.
    fn noise_ratios(&self, cells: &Cells) -> Vec<f64> {
        if self.together {
            let pairs = self.repeats.iter().filter_map(|(key, round, rate)| {
                let measured = cells.get(key)?.rounds.get(round)?;
                // A repeat that strays says nothing of noise, as its trial would not.
                (agreement::apart(*rate, *measured) <= MOST_APART).then_some(rate / measured)
            });
            return pairs.collect();
        }
        let half = Plan::second_half(&self.request);
        let last = self.request.pages.iter().max();
        let refilled = cells.iter().filter(|(key, _)| Some(&key.page) != last);
        let pairs = refilled.flat_map(|(_, tally)| {
            let later = |round: &u32| tally.rounds.get(&(round + half));
            let both = tally.rounds.iter().filter_map(move |(r, rate)| later(r).map(|l| l / rate));
            both.collect::<Vec<f64>>()
        });
        pairs.filter(|ratio| ratio.is_finite()).collect()
    }

    /// What was measured by itself; where that has no touches, the penalty on the working set of
    /// this bench. It is of rows of touches without other work, so the two do not mix.
    fn calibration(&self) -> Option<Calibration> {
        let mut calibration = self.calibration.clone()?;
        "bench pages".clone_into(&mut calibration.source);
        if calibration.touches.is_empty()
            && let Some(penalty) = self.penalty()
        {
            calibration.touches.push(penalty);
            calibration.touches_missing = None;
        }
        Some(calibration)
    }

    fn penalty(&self) -> Option<TouchPenalty> {
        let (small, larger) = chased(&self.request.pages)?;
        let [small, larger] = [small, larger].map(|page| {
            let mut rounds = self.chases.get(&page).cloned().unwrap_or_default();
            agreement::take_out_strays(&mut rounds);
            rounds
        });
        let (small, larger) = paired(&small, &larger);
        // Fewer cannot be told from each other's accidents.
        if small.len() < FEWEST_PAIRS {
            return None;
        }
        let extra = |(small, larger): (&f64, &f64)| (small.recip() - larger.recip()) * 1e9;
        let extra: Vec<f64> =
            small.iter().zip(&larger).map(extra).filter(|e| e.is_finite()).collect();
        let extra_ns: Interval = stats::median_interval(&extra)?;
        Some(TouchPenalty { working_set_bytes: self.chased_memory, taking_turns: false, extra_ns })
    }
}

/// All cells with their trials.
type Cells = BTreeMap<Key, Tally>;

/// The trials that agree with those of their cell, and those that do not.
struct Judged {
    cells: Cells,
    strays: Vec<SpoiledTrial>,
}

impl Judged {
    fn of(cells: &Cells) -> Self {
        let mut judged = Self { cells: cells.clone(), strays: Vec::new() };
        for (key, tally) in &mut judged.cells {
            let strays = agreement::take_out_strays(&mut tally.rounds);
            let others: Vec<f64> = tally.rounds.values().copied().collect();
            let median = stats::median(&others);
            judged
                .strays
                .extend(strays.into_iter().map(|(round, rate)| stray(*key, round, rate, median)));
        }
        judged
    }

    fn medians(&self) -> BTreeMap<Key, f64> {
        let median =
            |tally: &Tally| stats::median(&tally.rounds.values().copied().collect::<Vec<f64>>());
        self.cells.iter().filter_map(|(key, tally)| Some((*key, median(tally)?))).collect()
    }

    /// The cells that contradict neither themselves nor each other.
    fn true_cells(&self) -> Cells {
        let mut cells = self.cells.clone();
        cells.retain(|_, tally| !agreement::is_split(&tally.rounds));
        for (few, many) in agreement::contradictions(&self.medians()) {
            cells.remove(&few);
            cells.remove(&many);
        }
        cells
    }
}

fn stray(key: Key, round: u32, rate: f64, median: Option<f64>) -> SpoiledTrial {
    let apart = median.map(|median| agreement::apart(rate, median));
    let none = || Reading::absent("nothing was read in it, or in the others of its cell");
    let value = apart.filter(|apart| apart.is_finite()).map_or_else(none, Reading::Present);
    let guard = Guard { id: GuardId::TrialApart, subject: None, value, threshold: MOST_APART };
    SpoiledTrial {
        page: key.page.id().to_owned(),
        row_bytes: Bytes(key.row_bytes),
        connections: key.connections,
        round,
        reads_per_s: rate,
        guards: vec![guard],
    }
}

/// Every page over the smallest, and gigantic ones over huge ones.
fn ratios_of(cells: &Cells, floor: f64) -> Vec<Ratio> {
    let Some(smallest) = cells.keys().map(|key| key.page).min() else { return Vec::new() };
    let over = |of: Page| {
        let huge = (of == Page::Gigantic && smallest != Page::Huge).then_some(Page::Huge);
        [Some(smallest).filter(|over| *over != of), huge].into_iter().flatten()
    };
    let pairs = cells.keys().flat_map(|key| over(key.page).map(|page| (*key, page)));
    pairs.filter_map(|(of, page)| ratio(cells, of, Key { page, ..of }, floor)).collect()
}

fn ratio(cells: &Cells, of: Key, over: Key, floor: f64) -> Option<Ratio> {
    let (a, b) = paired(&cells.get(&of)?.rounds, &cells.get(&over)?.rounds);
    let ratio = stats::paired_ratio(&a, &b)?;
    let verdict = match a.len() {
        FEWEST_PAIRS.. => RatioVerdict::judge(ratio, floor),
        _ => RatioVerdict::Inconclusive,
    };
    Some(Ratio {
        of: of.page.id().to_owned(),
        over: over.page.id().to_owned(),
        row_bytes: Bytes(of.row_bytes),
        connections: of.connections,
        factor: ratio.mid,
        low: ratio.low,
        high: ratio.high,
        verdict,
    })
}

/// The rates of the rounds that both have.
fn paired(a: &Rounds, b: &Rounds) -> (Vec<f64>, Vec<f64>) {
    a.iter().filter_map(|(round, a)| b.get(round).map(|b| (*a, *b))).unzip()
}

#[cfg(test)]
#[path = "results_tests.rs"]
mod tests;
