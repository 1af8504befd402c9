//! Any other program, when its process is named: what the kernel tells of every process.

use crate::database_view::{DatabaseView, Description};
use crate::engine::Engine;
use crate::process_table::{Role, Table, base};
use crate::settings::Values;
use crate::thp::heap_page;
use untax_core::Bytes;
use untax_core::Reading::{self, Absent, Present};
use untax_core::database::{Model, Segment, Traits};

/// The entry for all that has none of its own.
pub(crate) const ENGINE: Engine = Engine {
    id: "generic",
    summary: "any other program",
    privilege: "root, or the OS user that runs it",
    minimum_kernel: "5.0",
    cost: "`schedstat` of each thread; `maps`, and up to 50 ms of `smaps_rollup`",
    connection_model: "not known",
    usual_bottleneck: "not known",
    reads: "nothing: its threads, memory and files are all that is known",
    unproven: "work per second, unless `--workload` measures it",
    programs: &[],
    traits: Traits::default,
    exports: &[],
    role: |_| Role::Other,
    process_role: |_| None,
    members: Table::descendants,
    settings: |_| Values::none(UNKNOWN),
    places: |_| Vec::new(),
    file_names: &[],
    describe,
    single_process: true,
    asking: None,
};

/// Why most of it is not known.
const UNKNOWN: &str = "this program is no database that untax knows";

fn describe(view: &DatabaseView) -> Description {
    let unknown = || UNKNOWN.to_owned();
    let name = view.main.executable.value().map_or(view.main.stat.comm.as_str(), |e| base(e));
    Description {
        product: name.to_owned(),
        version: Absent(unknown()),
        model: Model::Unknown,
        connections: Absent(unknown()),
        data_directory: Absent(unknown()),
        data_bytes: data_bytes(view),
        page_size_bytes: page_size(view),
        huge_pages: Absent(unknown()),
        accesses: Absent(unknown()),
    }
}

/// All that is resident, in a pool or not: nothing tells what of it is data.
fn data_bytes(view: &DatabaseView) -> Reading<Bytes> {
    let resident = view.status("VmRSS", |s| s.resident);
    resident.map(|resident| resident + pooled_bytes(view))
}

fn pooled_bytes(view: &DatabaseView) -> Bytes {
    view.status.value().and_then(|s| s.hugetlb).unwrap_or_default()
}

fn page_size(view: &DatabaseView) -> Reading<Bytes> {
    let resident = view.status("VmRSS", |s| s.resident);
    if resident.value().is_some_and(|resident| pooled_bytes(view) > *resident) {
        return match view.memory.segments.as_ref().map(|segments| largest_page(segments)) {
            Present(Some(size)) => Present(size),
            Present(None) => Absent("no large mapping was found".to_owned()),
            gap => gap.and_then(|_| Absent(String::new())),
        };
    }
    heap_page(view, &resident)
}

fn largest_page(segments: &[Segment]) -> Option<Bytes> {
    segments.iter().filter_map(|s| s.page_size_bytes.value().copied()).max()
}
