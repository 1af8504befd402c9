//! Results of platform benches that are kept in the state directory: the one place where checks, plans and
//! advice find what was measured on this host.

use crate::state::State;
use untax_core::host::HostFacts;
use untax_experiments::Machine;
use untax_experiments::advise::{Kept, Layer};
use untax_experiments::platform::PlatformBench;

/// The results of a layer's bench, those of the processor and kernel of a host, the latest first.
pub fn results(state: &State, layer: Layer, host: &HostFacts) -> Kept {
    search(state, layer, host, usize::MAX)
}

/// The same, of which only the latest is wanted: every check asks, and reading one takes a while.
pub fn latest(state: &State, layer: Layer, host: &HostFacts) -> Kept {
    search(state, layer, host, 1)
}

fn search(state: &State, layer: Layer, host: &HostFacts, most: usize) -> Kept {
    let machine = Machine::of(host);
    let is_here = |bench: &PlatformBench| {
        (&machine.cpu_model, &machine.kernel_release) == (&bench.cpu_model, &bench.kernel_release)
    };
    let is_measured =
        |bench: &PlatformBench| !bench.in_cluster && bench.cells.iter().any(|cell| cell.blocks > 0);
    let mut kept = Kept::default();
    for id in state.runs_of(&format!("bench-{}", layer.id())) {
        match state.load_run::<PlatformBench>(&id, None) {
            Ok(bench) if !is_measured(&bench) => {}
            Ok(bench) if is_here(&bench) => kept.results.push(bench),
            Ok(_) => kept.elsewhere += 1,
            // Of a version whose results had another form.
            Err(_) => {}
        }
        if kept.results.len() == most {
            break;
        }
    }
    kept
}
