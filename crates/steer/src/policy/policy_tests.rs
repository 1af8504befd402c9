//! Properties of the policy, on random samples and in the model.

use super::*;
use crate::model::{Load, Machine, Mode, simulate};
use proptest::prelude::*;
use std::time::Duration;
use untax_core::Reading;

const TICK_S: f64 = 0.1;

fn cpus(list: &str) -> Cpus {
    list.parse().unwrap()
}

fn tunables() -> Tunables {
    Tunables {
        hold: Duration::from_millis(500),
        judge: Duration::from_millis(500),
        ..Tunables::default()
    }
}

/// Two instances, each at home on one of two nodes of four CPUs.
fn two() -> Policy {
    let instance = |name: &str, list: &str| Instance {
        name: name.to_owned(),
        preferred: cpus(list),
        tunables: tunables(),
    };
    Policy::new(vec![instance("a", "0-3"), instance("b", "4-7")], Topology::uniform(2, 4))
}

/// A sample in which an instance uses so many CPUs, all of those that it has evenly.
fn sample(tick: u32, policy: &Policy, used: [f64; 2], work: [f64; 2]) -> Sample {
    let now_s = f64::from(tick) * TICK_S;
    let all = cpus("0-7");
    let load = |cpu: u32| {
        let parts = policy.states.iter().zip(used).map(|(state, used)| {
            if state.cpus.has(cpu) { used / state.cpus.len() as f64 } else { 0.0 }
        });
        parts.sum::<f64>().min(1.0)
    };
    let seen = |place: usize| Seen {
        allowed: all.clone(),
        used_cpus: used[place].min(policy.states[place].cpus.len().max(1) as f64),
        work: Reading::Present(Some(Work { count: work[place], at_s: now_s })),
    };
    Sample {
        now_s,
        busy: all.iter().map(|cpu| (cpu, load(cpu))).collect(),
        instances: vec![seen(0), seen(1)],
    }
}

/// Runs ticks in which each instance wants so many CPUs; throughput by what it has, times `gain` away.
fn run(
    policy: &mut Policy,
    from: u32,
    ticks: u32,
    wants: [f64; 2],
    gain: f64,
) -> Vec<(u32, Action)> {
    let mut all = Vec::new();
    let mut work = [f64::from(from), f64::from(from)];
    for tick in from..from + ticks {
        for (work, state) in work.iter_mut().zip(&policy.states) {
            *work += if state.cpus.len() > 4 { gain } else { 1.0 };
        }
        let sample = sample(tick, policy, wants, work);
        all.extend(policy.step(&sample).actions.into_iter().map(|action| (tick, action)));
    }
    all
}

#[test]
fn an_instance_starts_at_home_and_spills_to_the_nearest_that_idle() {
    let mut policy = Policy::new(
        vec![Instance { name: "a".to_owned(), preferred: cpus("0-1"), tunables: tunables() }],
        Topology::uniform(2, 4),
    );
    let one = |policy: &Policy, tick: u32| Sample {
        instances: sample(tick, &two(), [8.0, 0.0], [0.0; 2]).instances[..1].to_vec(),
        busy: (0..8)
            .map(|cpu| (cpu, if policy.states[0].cpus.has(cpu) { 1.0 } else { 0.0 }))
            .collect(),
        now_s: f64::from(tick) * TICK_S,
    };
    let mut seen = Vec::new();
    for tick in 0..20 {
        let sample = one(&policy, tick);
        seen.extend(policy.step(&sample).actions);
    }
    assert_eq!((seen[0].why, &seen[0].cpus), (Why::Start, &cpus("0-1")));
    assert_eq!((seen[1].why, &seen[1].cpus), (Why::Spill, &cpus("0-2")));
    assert_eq!(seen[2].cpus, cpus("0-3"), "the same cache comes first");
}

#[test]
fn two_that_are_busy_stay_at_home() {
    let mut policy = two();
    let actions = run(&mut policy, 0, 300, [8.0, 8.0], 2.0);
    assert!(actions.iter().all(|(_, action)| action.why == Why::Start), "{actions:?}");
}

#[test]
fn an_owner_that_wakes_has_its_cpus_within_two_ticks() {
    let mut policy = two();
    run(&mut policy, 0, 60, [8.0, 0.0], 2.0);
    assert_eq!(policy.states[0].cpus, cpus("0-7"));
    for wants in [0.2, 4.0] {
        let mut policy = policy.clone();
        run(&mut policy, 60, 2, [8.0, wants], 2.0);
        let left = policy.states[0].cpus.and(&cpus("4-7"));
        assert!(left.len() as f64 <= 4.0 - wants.ceil(), "{wants}: {left}");
        assert_eq!(policy.states[1].cpus, cpus("4-7"));
    }
}

#[test]
fn a_spill_that_brings_nothing_is_taken_back_and_not_tried_soon() {
    let mut policy = two();
    let actions = run(&mut policy, 0, 200, [8.0, 0.0], 1.0);
    let whys: Vec<Why> = actions.iter().map(|(_, action)| action.why).collect();
    assert!(whys.contains(&Why::Spill) && whys.contains(&Why::Trial), "{whys:?}");
    assert_eq!(policy.states[0].verdict.map(|verdict| verdict.is_worth), Some(false));
    assert_eq!(policy.states[0].cpus, cpus("0-3"));
    let later = run(&mut policy, 200, 100, [8.0, 0.0], 1.0);
    assert!(later.is_empty(), "{later:?}");
}

#[test]
fn a_spill_that_pays_is_kept() {
    let mut policy = two();
    run(&mut policy, 0, 200, [8.0, 0.0], 2.0);
    assert_eq!(policy.states[0].cpus, cpus("0-7"));
    let verdict = policy.states[0].verdict.unwrap();
    assert!(verdict.is_worth && verdict.gain.unwrap() > 1.5, "{verdict:?}");
}

#[test]
fn a_load_that_fits_goes_home() {
    let mut policy = two();
    run(&mut policy, 0, 60, [8.0, 0.0], 2.0);
    run(&mut policy, 60, 20, [1.0, 0.0], 2.0);
    assert_eq!(policy.states[0].cpus, cpus("0-3"));
}

#[test]
fn a_cpuset_that_moves_is_followed() {
    let mut policy = two();
    run(&mut policy, 0, 5, [1.0, 0.0], 1.0);
    let mut moved = sample(6, &policy, [1.0, 0.0], [0.0; 2]);
    moved.instances[0].allowed = cpus("2-5");
    policy.step(&moved);
    assert_eq!(policy.states[0].cpus, cpus("2-3"));
    // None of its preferred CPUs is left: it has all of its cpuset.
    moved.instances[0].allowed = cpus("6-7");
    policy.step(&moved);
    assert_eq!(policy.states[0].cpus, cpus("6-7"));
}

#[test]
fn work_that_nothing_counts_is_no_reason_to_go_home() {
    let mut policy = two();
    for tick in 0..200 {
        let mut sample = sample(tick, &policy, [8.0, 0.0], [0.0; 2]);
        sample.instances[0].work = Reading::absent("nothing counts it");
        policy.step(&sample);
    }
    let state = &policy.states[0];
    assert_eq!((state.verdict.unwrap().gain, state.cpus.clone()), (None, cpus("0-7")));
}

/// Busy shares, CPUs used, allowed CPUs as bits, and work done.
type Tick = (Vec<f64>, [f64; 2], [u8; 2], [f64; 2]);

/// Random samples: busy shares, use and cpusets that have nothing to do with each other.
fn arbitrary() -> impl Strategy<Value = Vec<Tick>> {
    let busy = proptest::collection::vec(prop_oneof![Just(0.0), Just(1.0), 0.0..1.0f64], 8);
    let used = [prop_oneof![Just(0.0), 0.0..8.0f64], prop_oneof![Just(0.0), 0.0..8.0f64]];
    let allowed = [
        prop_oneof![4 => Just(255u8), 1 => 1..=255u8],
        prop_oneof![4 => Just(255u8), 1 => 1..=255u8],
    ];
    proptest::collection::vec((busy, used, allowed, [0.0..9.0f64, 0.0..9.0f64]), 1..120)
}

proptest! {
    #[test]
    fn masks_stay_within_the_cpuset_and_do_not_flip_within_the_hold(ticks in arbitrary()) {
        let mut policy = two();
        let mut changed: [Option<(f64, usize)>; 2] = [None, None];
        let mut work = [0.0; 2];
        for (tick, (busy, used, allowed, done)) in ticks.into_iter().enumerate() {
            let now_s = tick as f64 * TICK_S;
            let before: Vec<Cpus> = policy.states.iter().map(|state| state.cpus.clone()).collect();
            let seen = |place: usize| Seen {
                allowed: (0..8).filter(|cpu| allowed[place] >> cpu & 1 == 1).collect(),
                used_cpus: used[place],
                work: Reading::Present(Some(Work { count: work[place], at_s: now_s })),
            };
            let sample = Sample {
                now_s,
                busy: (0..8).zip(busy).collect(),
                instances: vec![seen(0), seen(1)],
            };
            let step = policy.step(&sample);
            for (place, state) in policy.states.iter().enumerate() {
                prop_assert!(!state.cpus.is_empty());
                prop_assert!(state.cpus.is_within(&sample.instances[place].allowed));
                let home = policy.instances[place].preferred.and(&sample.instances[place].allowed);
                prop_assert!(home.is_within(&state.cpus), "an instance always has its own CPUs");
            }
            for action in &step.actions {
                let is_forced = matches!(action.why, Why::Start | Why::Evict | Why::Cpuset);
                let (was, is) = (before[action.instance].len(), action.cpus.len());
                if let Some((at_s, direction)) = changed[action.instance] && !is_forced {
                    let grows = usize::from(is > was);
                    prop_assert!(direction == grows || now_s - at_s >= 0.5 - 1e-9, "{action:?}");
                }
                changed[action.instance] = Some((now_s, usize::from(is > was)));
            }
            for (place, done) in done.into_iter().enumerate() {
                work[place] += done;
            }
        }
    }

    #[test]
    fn an_owner_never_waits_longer_than_two_ticks(ticks in 20..80u32, wants in 1.0..4.0f64) {
        let mut policy = two();
        run(&mut policy, 0, ticks, [8.0, 0.0], 2.0);
        run(&mut policy, ticks, 2, [8.0, wants], 2.0);
        let left = policy.states[0].cpus.and(&cpus("4-7"));
        prop_assert!(left.len() as f64 <= 4.0 - wants.ceil(), "{wants}: {left}");
    }
}

#[test]
fn the_policy_does_not_oscillate_in_the_model() {
    let machine = Machine { nodes: 2, cores: 4 };
    for (tasks, pause_us) in
        [(3, 300.0), (4, 300.0), (5, 300.0), (6, 300.0), (8, 300.0), (16, 100.0)]
    {
        let load = Load { tasks, work_us: 1000.0, pause_us, coherence: 0.16 };
        let mode = Mode::Policy(tunables());
        let length = Duration::from_secs(30);
        let outcome = simulate(machine, load, 1, mode, length);
        // A trial changes masks a few times, and patience doubles. One that goes to and fro as fast as the
        // hold allows would do so 60 times.
        assert!(
            outcome.changes < 25,
            "{tasks} tasks: {} changes in half a minute",
            outcome.changes
        );
    }
}
