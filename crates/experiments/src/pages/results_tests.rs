//! Tests of what is made of trials.

use super::*;
use crate::pages::capacity::Capacity;
use crate::pages::options::{Access, Model};
use std::time::Duration;

fn request(pages: &[Page], trials: u32) -> Request {
    Request {
        rows: Some(1000),
        most_table: Bytes(8 << 30),
        row_bytes: vec![128],
        pages: pages.to_vec(),
        connections: vec![1, 2],
        model: Model::Process,
        access: Access::Direct,
        trials,
        trial: Duration::from_secs(1),
        seed: 1,
    }
}

fn results(request: &Request, available: Bytes) -> (Results, Plan) {
    let capacity = Capacity {
        available,
        total: available,
        base_page: Bytes::KIB_4,
        pools: vec![(Page::Huge, 0), (Page::Gigantic, 0)],
        pool_limits: Vec::new(),
        transparent_changes: Some(0),
        root: true,
        nodes: 1,
    };
    let plan = Plan::new(request, &capacity).unwrap();
    let [cpu_model, kernel_release, idle] = ["a cpu", "6.1", "driver haltpoll"].map(str::to_owned);
    let machine = Machine { cpu_model, kernel_release, idle };
    (Results::new(request, &plan, &machine, "run-1"), plan)
}

/// Does all trials of a plan at these rates; every other trial of a cell is 1 % faster.
fn play(results: &mut Results, plan: &Plan, rate: impl Fn(Page) -> f64) {
    for phase in &plan.phases {
        for trial in &phase.trials {
            let wobble = if trial.round.is_multiple_of(2) { 1.0 } else { 1.01 };
            results.add(&phase.layout, *trial, rate(trial.page) * wobble, Bytes(4096));
        }
    }
}

fn rate(page: Page) -> f64 {
    match page {
        Page::Small => 1e6,
        Page::Transparent => 1.2e6,
        Page::Huge => 1.5e6,
        Page::Gigantic => 1.65e6,
    }
}

#[test]
fn ratios_are_those_of_the_rates() {
    let request = request(&Page::ALL, 7);
    let (mut results, plan) = results(&request, Bytes(64 << 30));
    play(&mut results, &plan, rate);
    let bench = results.assemble(true);
    let told: Vec<(&str, &str, u32)> =
        bench.ratios.iter().map(|r| (r.of.as_str(), r.over.as_str(), r.connections)).collect();
    let one = [("thp", "4k", 1), ("2m", "4k", 1), ("1g", "4k", 1), ("1g", "2m", 1)];
    assert_eq!(told[..4], one);
    assert_eq!(told.len(), 8);
    let factors = [1.2, 1.5, 1.65, 1.1];
    for (ratio, factor) in bench.ratios.iter().zip(factors.iter().cycle()) {
        assert!((ratio.factor - factor).abs() < 1e-9, "{ratio:?}");
        assert_eq!(ratio.verdict, RatioVerdict::Faster);
    }
    assert_eq!(bench.noise.ratios.len(), 7);
    assert!(bench.noise.floor < 1e-9);
    let cell = &bench.cells[0];
    assert_eq!((cell.page.as_str(), cell.connections, cell.trials.len()), ("4k", 1, 7));
    assert_eq!((cell.rows, cell.table_bytes), (1000, Bytes(128_000)));
    assert!(bench.complete);
}

#[test]
fn an_unfinished_bench_pairs_what_it_has() {
    let request = request(&[Page::Small, Page::Huge], 7);
    let (mut results, plan) = results(&request, Bytes(64 << 30));
    let phase = &plan.phases[0];
    for trial in phase.trials.iter().take(3) {
        results.add(&phase.layout, *trial, rate(trial.page), Bytes(4096));
    }
    let bench = results.assemble(false);
    assert!(!bench.complete);
    assert!(bench.ratios.iter().all(|r| r.verdict == RatioVerdict::Inconclusive));
    assert!(results_of_nothing().cells.is_empty());
}

fn results_of_nothing() -> PagesBench {
    let (results, _) = results(&request(&[Page::Small], 7), Bytes(64 << 30));
    results.assemble(false)
}

#[test]
fn without_repeats_nothing_is_conclusive() {
    let bench = results_of_nothing();
    assert!(bench.noise.ratios.is_empty());
    assert!(bench.noise.floor >= 1.0);
}

#[test]
fn in_blocks_the_noise_is_that_between_two_fillings() {
    let mut request = request(&[Page::Small, Page::Huge], 8);
    request.rows = Some(4_000_000);
    let (mut results, plan) = results(&request, Bytes(1400 << 20));
    assert!(!plan.together);
    for (place, phase) in plan.phases.iter().enumerate() {
        // The second filling of the small table is 5 % faster than the first.
        let faster = if place == 2 { 1.05 } else { 1.0 };
        for trial in &phase.trials {
            results.add(&phase.layout, *trial, 1e6 * faster, Bytes(4096));
        }
    }
    let bench = results.assemble(true);
    assert_eq!(bench.noise.ratios.len(), 8, "four pairs for each number of connections");
    assert!((bench.noise.floor - 0.05).abs() < 1e-9);
    assert!(bench.ratios.iter().all(|r| r.verdict == RatioVerdict::Inconclusive));
}

#[test]
fn the_penalty_of_a_touch_is_the_difference_of_the_times() {
    let request = request(&[Page::Small, Page::Huge], 7);
    let (mut results, plan) = results(&request, Bytes(64 << 30));
    let exact = Interval::exact;
    results.calibrated(Calibration {
        taken_at: Timestamp::now(),
        cpu_model: "a cpu".to_owned(),
        kernel_release: "6.1".to_owned(),
        source: "check".to_owned(),
        minor_fault_ns: exact(2000.0),
        write_fault_ns: None,
        unmap_ns: None,
        touches: Vec::new(),
        touches_missing: Some("no huge pages to compare with".to_owned()),
    });
    play(&mut results, &plan, |page| if page == Page::Small { 5e6 } else { 10e6 });
    let calibration = results.assemble(true).calibration.unwrap();
    assert_eq!(calibration.source, "bench pages");
    let [own] = calibration.touches[..] else { panic!("{calibration:?}") };
    assert_eq!((own.working_set_bytes, calibration.touches_missing), (Bytes(128_000), None));
    assert!((own.extra_ns.mid - 100.0).abs() < 2.0, "200 ns against 100 ns: {own:?}");
}

/// Like [`play`], but for one trial, of that page, connections and round, which a machine spoiled that
/// stopped for a moment.
fn play_broken(results: &mut Results, plan: &Plan, broken: impl Fn(&Trial) -> bool) {
    for phase in &plan.phases {
        for trial in &phase.trials {
            let rate = rate(trial.page) * f64::from(trial.connections);
            let rate = if broken(trial) { rate / 114.0 } else { rate };
            results.add(&phase.layout, *trial, rate, Bytes(4096));
        }
    }
}

fn ids(bench: &PagesBench) -> Vec<&str> {
    bench.warnings.iter().map(|warning| warning.id.as_str()).collect()
}

#[test]
fn a_broken_trial_counts_for_nothing_and_is_told() {
    for trials in [1, 2, 3, 7] {
        let request = request(&[Page::Small, Page::Huge], trials);
        let (mut results, plan) = results(&request, Bytes(64 << 30));
        play_broken(&mut results, &plan, |trial| {
            (trial.page, trial.connections, trial.round) == (Page::Small, 1, 0)
                && trial.purpose == Purpose::Measure
        });
        let bench = results.assemble(true);
        assert!(bench.ratios.iter().all(|ratio| ratio.high < 1.6), "{trials}: {:?}", bench.ratios);
        // With one trial the other number of readers tells; of two nobody knows which is right.
        let id = if trials < 3 { "cells-apart" } else { "trials-apart" };
        assert!(ids(&bench).contains(&id), "{trials}: {:?}", bench.warnings);
        let verdicts: Vec<_> = bench.ratios.iter().map(|ratio| ratio.verdict).collect();
        if trials == 7 {
            assert_eq!(verdicts, [RatioVerdict::Faster; 2]);
            let [stray] = &bench.spoiled[..] else { panic!("{:?}", bench.spoiled) };
            assert_eq!((stray.round, stray.guards[0].id), (0, GuardId::TrialApart));
            assert!(stray.guards[0].is_exceeded());
        }
    }
}

#[test]
fn a_cell_that_another_number_of_readers_contradicts_makes_no_ratio() {
    let request = request(&[Page::Small, Page::Huge], 7);
    let (mut results, plan) = results(&request, Bytes(64 << 30));
    play_broken(&mut results, &plan, |t| t.page == Page::Small && t.connections == 2);
    let bench = results.assemble(true);
    assert_eq!(bench.cells.len(), 4, "all that was measured is shown");
    assert!(bench.ratios.is_empty(), "{:?}", bench.ratios);
    assert!(ids(&bench).contains(&"cells-apart"), "{:?}", bench.warnings);
}

#[test]
fn a_penalty_of_broken_or_few_trials_is_none() {
    let penalty = |trials, broken_rounds: u32| {
        let request = request(&[Page::Small, Page::Huge], trials);
        let (mut results, plan) = results(&request, Bytes(64 << 30));
        play_broken(&mut results, &plan, |trial| {
            trial.purpose == Purpose::Chase
                && trial.page == Page::Small
                && trial.round < broken_rounds
        });
        results.penalty().map(|penalty| penalty.extra_ns.high.round())
    };
    let right = penalty(7, 0).unwrap();
    assert_eq!(penalty(7, 1), Some(right));
    assert_eq!(penalty(2, 1), None);
    assert_eq!(penalty(3, 1), None, "two are left");
}
