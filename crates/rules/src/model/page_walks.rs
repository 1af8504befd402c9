//! Page walks: what touching data costs more on small pages.

use crate::evidence;
use crate::model::cpu_cost::CpuCost;
use untax_core::calibration::{MAPPED_BY_BYTE, TouchPenalty};
use untax_core::database::{Accesses, Model};
use untax_core::window::Pair;
use untax_core::{Bytes, Calibration, Evidence, Reading, Window};

/// How many address spaces a CPU remembers translations of: `TLB_NR_DYN_ASIDS` of
/// arch/x86/mm/tlb.c. With more, a switch between them finds neither translations nor page tables
/// in its caches.
const ADDRESS_SPACES: f64 = 6.0;

/// What page walks took: the engine's accesses, each at the penalty that was calibrated.
pub fn cost(window: &Window, pair: &Pair) -> Reading<CpuCost> {
    let part = || {
        let accesses = accesses(pair).into_result()?;
        let growth = pair
            .growth("accesses", |d| d.counters.accesses.clone().map(|a| a.count as f64))
            .into_result()?;
        let turns = take_turns(window, pair);
        let working_set = working_set(window, pair, turns).into_result()?;
        let penalty = window
            .calibration
            .as_ref()
            .and_then(|c| touch_penalty(c, working_set, turns))
            .into_result()?;
        let (each, extra) = (accesses.pages_each, penalty.extra_ns.clamp(0.0, f64::INFINITY));
        Ok(CpuCost {
            taken_s: each.times(extra).scale(growth / 1e9),
            method: format!("{} x pages touched x calibrated penalty", accesses.counter),
            evidence: vec![
                Evidence::new(
                    &evidence::CACHE_ACCESSES,
                    growth / pair.seconds,
                    accesses.counter.clone(),
                ),
                Evidence::new(&evidence::PAGES_PER_ACCESS, each.mid, "engine model"),
                Evidence::new(
                    &evidence::TOUCH_PENALTY,
                    extra.mid / 1e9,
                    format!("calibrated here over {}", penalty.working_set_bytes),
                ),
            ],
        })
    };
    part().into()
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
