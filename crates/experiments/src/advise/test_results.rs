//! Results and windows for tests.

use super::kept::Kept;
use crate::platform::{
    Arm, ArmResult, Better, CellResult, CellState, Cpus, Measured, Placement, PlatformBench,
    StandsFor, TrialResult,
};
use untax_core::bench::Noise;
use untax_core::{Check, Database, Reading, Snapshot, Window, stats};

/// Blocks of every cell.
const BLOCKS: u32 = 9;

/// A value that strays by up to 1 %, in another way in each block.
fn strayed(value: f64, block: u32, arm: usize) -> f64 {
    let step = f64::from((block * 7 + arm as u32 * 3) % 5) - 2.0;
    value * (1.0 + step * 0.005)
}

/// A cell of a rate or a time, measured in these arms; the first is the baseline.
pub(super) fn cell(workload: &str, better: Better, values: &[(&str, f64)]) -> CellResult {
    let arm = |(place, (id, value)): (usize, &(&str, f64))| {
        let trial = |block| TrialResult {
            block,
            measured: Measured::of(strayed(*value, block, place)),
            spoiled: Vec::new(),
        };
        let trials: Vec<TrialResult> = (0..BLOCKS).map(trial).collect();
        let all: Vec<f64> = trials.iter().map(|trial| trial.measured.value).collect();
        ArmResult {
            arm: (*id).to_owned(),
            state: CellState::Measured,
            why: None,
            value: stats::median_interval(&all).map(Into::into),
            extras: Vec::new(),
            ratio: None,
            explained: None,
            trials,
        }
    };
    let ratios = (0..BLOCKS).map(|block| strayed(1.0, block, 0)).collect();
    CellResult {
        workload: workload.to_owned(),
        summary: String::new(),
        unit: String::new(),
        better,
        explains: false,
        placement: Placement::OneCpu,
        cpus: Cpus::default(),
        state: CellState::Measured,
        why: None,
        blocks: BLOCKS,
        arms: values.iter().enumerate().map(arm).collect(),
        stands_for: None,
        published: Vec::new(),
        noise: Some(Noise { ratios, floor: 0.01 }),
        aa: None,
    }
}

/// The same, which stands for databases of an engine.
pub(super) fn of_engine(cell: CellResult, engine: &str, connects: bool) -> CellResult {
    CellResult { stands_for: Some(StandsFor { engine: engine.to_owned(), connects }), ..cell }
}

/// A result with these arms.
pub(super) fn bench(run: &str, arms: Vec<Arm>, cells: Vec<CellResult>) -> PlatformBench {
    PlatformBench {
        schema: "untax.bench.made-up/1".to_owned(),
        run: run.to_owned(),
        taken_at: jiff::Timestamp::UNIX_EPOCH,
        in_cluster: false,
        cpu_model: "a processor".to_owned(),
        kernel_release: "6.18".to_owned(),
        idle: String::new(),
        seed: 1,
        budget_s: 60.0,
        spent_s: 50.0,
        beside: Vec::new(),
        baseline: arms.first().map(|arm| arm.id.clone()).unwrap_or_default(),
        arms,
        cells,
        lines: Vec::new(),
        aa: crate::platform::AaCount::default(),
        guards: Vec::new(),
        warnings: Vec::new(),
        complete: true,
    }
}

pub(super) fn kept(results: Vec<PlatformBench>) -> Kept {
    Kept { results, elsewhere: 0 }
}

/// A window of ten seconds over one database, and its check; `change` sets both ends.
pub(super) fn window(engine: &str, change: impl Fn(&mut Database, f64)) -> (Check, Window) {
    let why = "not read";
    let snapshot = |at: f64| {
        let host = untax_core::host::HostFacts::unknown(why);
        let mut database = Database::unknown(engine, 7, why);
        database.started_ticks = Reading::Present(1);
        change(&mut database, at);
        Snapshot {
            databases: vec![database],
            ..Snapshot::of_host(jiff::Timestamp::UNIX_EPOCH, 100.0 + 10.0 * at, host)
        }
    };
    let window = Window::unseen(snapshot(0.0), snapshot(1.0), why);
    (Check::of(&window.end, "check-1", why), window)
}
