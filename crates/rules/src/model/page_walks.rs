//! Page walks: what touching data costs more on small pages.

use crate::evidence;
use crate::model::cpu_cost::CpuCost;
use untax_core::calibration::{MAPPED_BY_BYTE, TouchPenalty};
use untax_core::database::{Accesses, Model};
use untax_core::window::Pair;
use untax_core::{Bytes, Calibration, Evidence, Interval, Reading, Window};

/// How many address spaces a CPU remembers translations of: `TLB_NR_DYN_ASIDS` of
/// arch/x86/mm/tlb.c. With more, a switch between them finds neither translations nor page tables
/// in its caches.
const ADDRESS_SPACES: f64 = 6.0;

/// What page walks took: the touches at random among the engine's accesses, each at the penalty that was
/// calibrated.
pub fn cost(window: &Window, pair: &Pair) -> Reading<CpuCost> {
    let part = || {
        let accesses = accesses(pair).into_result()?;
        let growth = pair
            .growth_by_server("accesses", |d| d.counters.accesses.clone().map(|a| a.count as f64))
            .into_result()?;
        let by_key = by_key(pair, &accesses).into_result()?;
        let touched = touched(&accesses, growth, by_key);
        let turns = take_turns(window, pair);
        let working_set = working_set(window, pair, turns).into_result()?;
        let penalty = window
            .calibration
            .as_ref()
            .and_then(|c| touch_penalty(c, working_set, turns))
            .into_result()?;
        let extra = penalty.extra_ns.clamp(0.0, f64::INFINITY);
        let lookups = accesses.by_key.as_ref().zip(by_key);
        let counter = lookups.map_or(&accesses.counter, |(lookups, _)| &lookups.counter);
        let per_s = |count: f64| count / pair.seconds;
        let of_keys = lookups.map(|(lookups, count)| {
            Evidence::new(&evidence::KEY_LOOKUPS, per_s(count), lookups.counter.clone())
        });
        let all = Evidence::new(&evidence::CACHE_ACCESSES, per_s(growth), accesses.counter.clone());
        let each = touched.mid / growth.max(1.0);
        Ok(CpuCost {
            taken_s: touched.times(extra).scale(1e-9),
            method: format!("{counter} x pages touched x calibrated penalty"),
            modelled: true,
            warm_up: None,
            evidence: [all]
                .into_iter()
                .chain(of_keys)
                .chain([
                    Evidence::new(&evidence::PAGES_PER_ACCESS, each, "engine model"),
                    Evidence::new(
                        &evidence::TOUCH_PENALTY,
                        extra.mid / 1e9,
                        format!("calibrated here over {}", penalty.working_set_bytes),
                    ),
                ])
                .collect(),
        })
    };
    part().into()
}

/// How many look-ups by a key there were, where the engine counts these.
fn by_key(pair: &Pair, accesses: &Accesses) -> Reading<Option<f64>> {
    if accesses.by_key.is_none() {
        return Reading::Present(None);
    }
    let count = |accesses: Accesses| match accesses.by_key {
        Some(lookups) => Reading::Present(lookups.count as f64),
        None => Reading::Absent("the server told no look-ups by a key".to_owned()),
    };
    pair.growth_by_server("look-ups by a key", |d| d.counters.accesses.clone().and_then(count))
        .map(Some)
}

/// A page that an access touches beside those by a key: at most the block that it goes on to. It stays in
/// the TLB where it comes back to the one before.
const BESIDE_KEYS: Interval = Interval { low: 0.0, mid: 0.0, high: 1.0 };

/// How many pages were touched at random. Of accesses that the engine does not tell apart any may have
/// been by a key.
fn touched(accesses: &Accesses, growth: f64, by_key: Option<f64>) -> Interval {
    match accesses.by_key.as_ref().zip(by_key) {
        Some((lookups, count)) => {
            let blocks = (count * lookups.blocks_each).min(growth);
            lookups.pages_each.scale(blocks).plus(BESIDE_KEYS.scale(growth - blocks))
        }
        None => accesses.pages_each.scale(growth),
    }
}

fn touch_penalty(
    calibration: &Calibration,
    working_set: Bytes,
    taking_turns: bool,
) -> Reading<TouchPenalty> {
    let missing = || {
        let why = calibration.touches_missing.as_deref().unwrap_or("not calibrated");
        Reading::Absent(format!("penalty of small pages: {why}; run untax bench pages"))
    };
    calibration.touch_penalty(working_set, taking_turns).map_or_else(missing, Reading::Present)
}

/// The memory whose page tables a CPU walks: the data, and among processes that take turns as much
/// as the page tables of all of them map, idle ones too, at the moment when that was most.
fn working_set(window: &Window, pair: &Pair, taking_turns: bool) -> Reading<Bytes> {
    let data = pair.end.memory.shared_bytes.clone();
    if !taking_turns {
        return data;
    }
    let inside = window.samples.iter().filter(|sample| sample.database == pair.end.id);
    let at_end = pair.end.memory.page_table_bytes.value().copied();
    let tables = inside.filter_map(|sample| sample.page_table_bytes).chain(at_end).max();
    let mapped = tables.map(|tables| Bytes(tables.0.saturating_mul(MAPPED_BY_BYTE)));
    data.map(|data| mapped.map_or(data, |mapped| data.max(mapped)))
}

/// Whether more processes take turns on the CPUs than these remember address spaces of.
fn take_turns(window: &Window, pair: &Pair) -> bool {
    let awake = pair.activity.value().map_or(0.0, |activity| activity.awake());
    let cpus = window.end.host.cpu.value().map_or(1, |cpu| cpu.logical);
    pair.end.model == Model::Process && awake > ADDRESS_SPACES * f64::from(cpus)
}

fn accesses(pair: &Pair) -> Reading<Accesses> {
    pair.end.counters.accesses.clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_window::{self, postgres};
    use untax_core::activity::Doing;
    use untax_core::database::KeyLookups;

    #[test]
    fn processes_that_take_turns_find_their_page_tables_cold() {
        let of_window = |active_s: f64| {
            let mut window = postgres();
            window.end.host.cpu = Reading::Present(test_window::cpus(2));
            test_window::trace(&mut window, &[(Doing::OnCpu, 10.0), (Doing::Contended, active_s)]);
            let pair = window.databases().next().unwrap();
            take_turns(&window, &pair)
        };
        // More than six on each of two CPUs, over ten seconds.
        assert!(of_window(130.0) && !of_window(90.0));
    }

    #[test]
    fn accesses_in_sequence_are_no_touches_at_random() {
        // 4e6 accesses in the window, so many of them by a key.
        let cost_of = |by_key: u64| {
            let mut window = postgres();
            for (snapshot, count) in [(&mut window.start, 0), (&mut window.end, by_key)] {
                let Reading::Present(accesses) = &mut snapshot.databases[0].counters.accesses
                else {
                    panic!("they are counted")
                };
                accesses.by_key = Some(KeyLookups {
                    count,
                    counter: "rows by an index".to_owned(),
                    blocks_each: 2.0,
                    pages_each: Interval::new(1.0, 4.75, 5.0),
                });
            }
            let pair = window.databases().next().unwrap();
            cost(&window, &pair).into_value().unwrap()
        };
        // Rows that are appended, as by COPY: nothing but the bound, a page each at 40 ns.
        let appended = cost_of(0).taken_s;
        assert_eq!((appended.low, appended.mid), (0.0, 0.0));
        assert!((appended.high - 0.16).abs() < 1e-9, "{appended:?}");
        // Rows by a key: two blocks of 4.75 pages, at 30 ns.
        let found = cost_of(1_000_000);
        assert!((found.taken_s.mid - 0.285).abs() < 1e-9, "{:?}", found.taken_s);
        assert!(found.method.starts_with("rows by an index x"), "{}", found.method);
        // Rows in the order of the index share blocks: no more of these than there were accesses.
        let ordered = cost_of(50_000_000).taken_s;
        assert!((ordered.mid - 4e6 * 4.75 * 30e-9).abs() < 1e-9, "{ordered:?}");
        assert!((ordered.high - 4e6 * 5.0 * 40e-9).abs() < 1e-9, "{ordered:?}");
    }

    #[test]
    fn processes_that_take_turns_walk_the_page_tables_of_all() {
        let mut window = postgres();
        window.end.databases[0].memory.page_table_bytes = Reading::Present(Bytes(1 << 20));
        window.samples = vec![untax_core::window::FaultSample {
            database: "postgres:7".to_owned(),
            mapped_shared_bytes: Bytes(0),
            page_table_bytes: Some(Bytes::GIB_1),
            minor_faults: 0,
        }];
        let pair = window.databases().next().unwrap();
        let data = pair.end.memory.shared_bytes.value().copied();
        assert_eq!(working_set(&window, &pair, false).into_value(), data);
        assert_eq!(working_set(&window, &pair, true), Reading::Present(Bytes(512 << 30)));
    }
}
