//! Tests of the planner: what fits, what is refused, and whether the order is fair.

use super::*;
use crate::pages::options::Access;
use proptest::prelude::*;
use std::time::Duration;

const GIB: u64 = 1 << 30;

fn capacity() -> Capacity {
    Capacity {
        available: Bytes(20 * GIB),
        total: Bytes(24 * GIB),
        base_page: Bytes::KIB_4,
        pools: vec![(Page::Huge, 0), (Page::Gigantic, 0)],
        pool_limits: Vec::new(),
        transparent_changes: Some(1),
        root: true,
        nodes: 1,
    }
}

fn request() -> Request {
    Request {
        rows: Some(1_000_000),
        most_table: Bytes(8 << 30),
        row_bytes: vec![128],
        pages: vec![Page::Small, Page::Huge],
        connections: vec![1, 2, 4],
        model: Model::Process,
        access: Access::Direct,
        trials: 8,
        trial: Duration::from_secs(1),
        seed: 3,
    }
}

fn plan(request: &Request) -> Plan {
    Plan::new(request, &capacity()).unwrap()
}

fn measured(plan: &Plan) -> Vec<Trial> {
    let trials = plan.phases.iter().flat_map(|phase| phase.trials.clone());
    trials.filter(|trial| trial.purpose == Purpose::Measure).collect()
}

/// How often each of two pages comes first in its round, for one number of connections.
fn firsts(trials: &[Trial], connections: u32, rounds: u32) -> (usize, usize) {
    let first_page = |round| {
        let mut group = trials.iter().filter(|t| t.connections == connections && t.round == round);
        group.next().map(|trial| trial.page)
    };
    let small = (0..rounds).filter(|round| first_page(*round) == Some(Page::Small)).count();
    (small, rounds as usize - small)
}

#[test]
fn tables_that_fit_together_are_interleaved() {
    let plan = plan(&request());
    assert!(plan.together);
    assert_eq!(plan.phases.len(), 1);
    assert_eq!(plan.phases[0].pages, [Page::Small, Page::Huge]);
}

#[test]
fn tables_that_do_not_fit_together_are_filled_there_and_back() {
    let request = Request { rows: Some(100_000_000), trials: 7, ..request() };
    let plan = plan(&request);
    assert!(!plan.together);
    let pages: Vec<Vec<Page>> = plan.phases.iter().map(|phase| phase.pages.clone()).collect();
    assert_eq!(pages, [[Page::Small], [Page::Huge], [Page::Small]]);
    let rounds = |phase: &Phase| {
        let rounds: std::collections::BTreeSet<u32> =
            phase.trials.iter().map(|trial| trial.round).collect();
        rounds.into_iter().collect::<Vec<u32>>()
    };
    assert_eq!(rounds(&plan.phases[0]), [0, 1, 2, 3]);
    assert_eq!(rounds(&plan.phases[1]), [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(rounds(&plan.phases[2]), [4, 5, 6]);
}

#[test]
fn what_does_not_fit_is_refused_with_numbers() {
    let request = Request { rows: Some(100_000_000), row_bytes: vec![128, 16384], ..request() };
    let refusal = Plan::new(&request, &capacity()).unwrap_err();
    let Refusal::TooLarge { rows, row_bytes, table, available, fits, .. } = refusal.clone() else {
        panic!("{refusal}");
    };
    assert_eq!((rows, row_bytes), (100_000_000, 16384));
    assert_eq!((table, available), (Bytes(1_638_400_000_000), Bytes(20 * GIB)));
    // What is said to fit must fit.
    let smaller = Request { rows: Some(fits), ..request };
    assert!(Plan::new(&smaller, &capacity()).is_ok());
    assert!(fits > 1_000_000, "{fits}");
}

#[test]
fn page_tables_of_many_readers_count() {
    let few = Request { rows: Some(100_000_000), connections: vec![2], ..request() };
    assert!(Plan::new(&few, &capacity()).is_ok());
    let many = Request { connections: vec![400], ..few };
    assert!(matches!(Plan::new(&many, &capacity()), Err(Refusal::TooLarge { page: "4k", .. })));
    let threads = Request { model: Model::Thread, ..many };
    assert!(Plan::new(&threads, &capacity()).is_ok());
}

#[test]
fn free_pages_of_a_pool_cost_no_available_memory() {
    let request = Request { rows: Some(100_000_000), pages: vec![Page::Huge], ..request() };
    let mut capacity = Capacity { available: Bytes(4 * GIB), ..capacity() };
    assert!(Plan::new(&request, &capacity).is_err());
    capacity.pools = vec![(Page::Huge, 6104)];
    assert!(Plan::new(&request, &capacity).is_ok());
}

#[test]
fn without_root_only_pages_that_are_there_can_be_used() {
    let capacity = Capacity { root: false, ..capacity() };
    let asking = |pages| Plan::new(&Request { pages, ..request() }, &capacity);
    assert!(asking(vec![Page::Small]).is_ok());
    let refusal = Refusal::PoolNeedsRoot { page: "2m", need: 62, free: 0 };
    assert_eq!(asking(vec![Page::Small, Page::Huge]), Err(refusal));
    assert_eq!(asking(vec![Page::Transparent]), Err(Refusal::TransparentNeedsRoot));
    let capacity =
        Capacity { pools: vec![(Page::Huge, 62)], transparent_changes: Some(0), ..capacity };
    let request = Request { pages: vec![Page::Huge, Page::Transparent], ..request() };
    assert!(Plan::new(&request, &capacity).is_ok());
}

#[test]
fn a_control_group_that_allows_too_few_pages_is_found_before_the_bus_error() {
    let mut capacity = Capacity { pool_limits: vec![(Page::Huge, 61)], ..capacity() };
    let refusal = Refusal::PoolLimited { page: "2m", need: 62, allowed: 61 };
    assert_eq!(Plan::new(&request(), &capacity), Err(refusal));
    capacity.pool_limits = vec![(Page::Huge, 62), (Page::Gigantic, 0)];
    assert!(Plan::new(&request(), &capacity).is_ok());
}

#[test]
fn pages_that_this_machine_lacks_are_refused() {
    let capacity = Capacity { pools: Vec::new(), transparent_changes: None, ..capacity() };
    for (page, id) in [(Page::Huge, "2m"), (Page::Gigantic, "1g"), (Page::Transparent, "thp")] {
        let request = Request { pages: vec![page], ..request() };
        assert_eq!(Plan::new(&request, &capacity), Err(Refusal::NoSuchPages { page: id }));
    }
    let arm = Capacity { base_page: Bytes(64 << 10), ..capacity };
    let request = Request { pages: vec![Page::Small], ..request() };
    assert_eq!(Plan::new(&request, &arm), Err(Refusal::BasePage(Bytes(64 << 10))));
}

#[test]
fn requests_without_sense_are_refused() {
    for request in [
        Request { pages: Vec::new(), ..request() },
        Request { row_bytes: Vec::new(), ..request() },
        Request { row_bytes: vec![0], ..request() },
        Request { rows: Some(0), ..request() },
        Request { rows: Some(u64::MAX), ..request() },
        Request { connections: Vec::new(), ..request() },
        Request { connections: vec![1, 0], ..request() },
        Request { trials: 0, ..request() },
        Request { trial: Duration::ZERO, ..request() },
    ] {
        assert!(
            matches!(Plan::new(&request, &capacity()), Err(Refusal::Senseless(_))),
            "{request:?}"
        );
    }
}

#[test]
fn tables_without_asked_rows_have_the_same_size() {
    let request = Request { rows: None, row_bytes: vec![16384, 128, 8192, 128], ..request() };
    let plan = plan(&request);
    let bytes: Vec<u64> = plan.phases.iter().map(|phase| phase.layout.bytes().0).collect();
    assert_eq!(
        plan.phases.iter().map(|p| p.layout.row_bytes).collect::<Vec<_>>(),
        [128, 8192, 16384]
    );
    assert!(bytes.iter().all(|b| (5 * GIB - 20_000..=5 * GIB).contains(b)), "{bytes:?}");
}

#[test]
fn every_round_repeats_one_cell_and_all_cells_get_their_turn() {
    let plan = plan(&request());
    let trials = &plan.phases[0].trials;
    let repeated: Vec<(u32, Page)> = trials
        .iter()
        .filter(|trial| trial.purpose == Purpose::Repeat)
        .map(|trial| (trial.connections, trial.page))
        .collect();
    assert_eq!(repeated.len(), 8);
    let different: std::collections::BTreeSet<_> = repeated.iter().collect();
    assert_eq!(different.len(), 6, "three connections on two pages");
}

#[test]
fn touches_are_chased_on_the_narrowest_rows_only() {
    let plan = plan(&Request { row_bytes: vec![8192, 128], ..request() });
    let chases =
        |phase: &Phase| phase.trials.iter().filter(|trial| trial.purpose == Purpose::Chase).count();
    assert_eq!(plan.phases.iter().map(chases).collect::<Vec<_>>(), [16, 0]);
    let alone = self::plan(&Request { pages: vec![Page::Huge], ..request() });
    assert_eq!(alone.phases.iter().map(chases).sum::<usize>(), 0);
}

#[test]
fn the_same_seed_gives_the_same_order_and_another_seed_another() {
    assert_eq!(plan(&request()), plan(&request()));
    let other = Request { seed: 4, ..request() };
    assert_ne!(measured(&plan(&request())), measured(&plan(&other)));
}

proptest! {
    #[test]
    fn every_cell_gets_all_its_trials_and_each_page_comes_first_as_often(
        half in 1..6_u32, seed in any::<u64>(), rows in prop_oneof![Just(1_000_000_u64), Just(100_000_000)]
    ) {
        let trials = 2 * half;
        let request = Request { trials, seed, rows: Some(rows), ..request() };
        let plan = plan(&request);
        let all = measured(&plan);
        for connections in [1, 2, 4] {
            for page in [Page::Small, Page::Huge] {
                let mut rounds: Vec<u32> = all
                    .iter()
                    .filter(|t| t.connections == connections && t.page == page)
                    .map(|t| t.round)
                    .collect();
                rounds.sort_unstable();
                prop_assert_eq!(rounds, (0..trials).collect::<Vec<_>>());
            }
            if plan.together {
                let (a, b) = firsts(&all, connections, trials);
                prop_assert_eq!(a, b);
            }
        }
    }

    #[test]
    fn no_plan_takes_more_than_there_is(
        rows in 1..200_000_000_u64, available in GIB..64 * GIB, readers in 1..300_u32
    ) {
        let request = Request { rows: Some(rows), connections: vec![readers], ..request() };
        let capacity = Capacity { available: Bytes(available), ..capacity() };
        if let Ok(plan) = Plan::new(&request, &capacity) {
            for phase in &plan.phases {
                let tables = phase.layout.bytes().0 * phase.pages.len() as u64;
                prop_assert!(tables <= capacity.budget().0);
            }
        }
    }
}
