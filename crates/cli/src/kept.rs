//! Results of platform benches that are kept in the state directory: the one place where checks, plans and
//! advice find what was measured on this host.

use crate::state::State;
use untax_core::host::HostFacts;
use untax_experiments::Machine;
use untax_experiments::advise::{Kept, Layer};
use untax_experiments::platform::PlatformBench;

/// The results of a layer's bench, those of the processor and kernel of a host, the latest first.
pub fn results(state: &State, layer: Layer, host: &HostFacts) -> Kept {
    let kind = format!("bench-{}", layer.id());
    let saved = state.runs_of(&kind).into_iter();
    let all = saved.filter_map(|id| state.load_run::<PlatformBench>(&id, None).ok());
    let machine = Machine::of(host);
    let is_here = |bench: &PlatformBench| {
        (&machine.cpu_model, &machine.kernel_release) == (&bench.cpu_model, &bench.kernel_release)
    };
    let is_measured =
        |bench: &PlatformBench| !bench.in_cluster && bench.cells.iter().any(|cell| cell.blocks > 0);
    let measured = all.filter(is_measured);
    let (results, elsewhere): (Vec<PlatformBench>, Vec<_>) = measured.partition(is_here);
    Kept { results, elsewhere: elsewhere.len() }
}
