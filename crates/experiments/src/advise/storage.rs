//! The volume of a database's data, and which cell of `bench storage` is like what it waits for.

use super::basis::Basis;
use super::kept::Kept;
use super::nearest::Key;
use crate::platform::{Arm, Placement};
use crate::storage::PATH;
use std::path::Path;
use untax_core::advice::Needs;
use untax_core::io::Direction;
use untax_core::window::Pair;
use untax_core::{Database, Reading, Window};
use untax_report::format;

/// Cells that time one access.
const FLUSHED: &str = "log-8k";
const READ: &str = "read-8k";

/// Waits for disks below this share of active time are no reason to move data: what is left without them is
/// within the noise of most benches.
const LITTLE: f64 = 0.01;

/// The arm that is the directory of a database's data, or one above it.
pub(super) fn now(database: &Database, kept: &Kept) -> Reading<String> {
    database.data_directory.as_ref().and_then(|data| {
        let arms = kept.results.iter().flat_map(|bench| &bench.arms);
        let holds = |arm: &&Arm| path(arm).is_some_and(|path| Path::new(data).starts_with(path));
        let longest = arms.filter(holds).max_by_key(|arm| path(arm).map_or(0, str::len));
        longest.map_or_else(
            || {
                Reading::Absent(format!(
                    "{data} was not measured: untax bench storage --path {data}"
                ))
            },
            |arm| Reading::Present(arm.id.clone()),
        )
    })
}

fn path(arm: &Arm) -> Option<&str> {
    let setting = arm.configuration.iter().find(|setting| setting.name == PATH)?;
    Some(&setting.value)
}

/// What the prices of volumes stand on: the database's own share of waiting, and the access that it waits for.
pub(super) fn basis(
    kept: &Kept,
    window: &Window,
    pair: &Pair,
    needs: &Needs,
    now: &Reading<String>,
) -> Basis {
    let share = match &needs.disk_share {
        Reading::Present(share) => *share,
        gap => return Basis::Unknown(gap.why().unwrap_or_default()),
    };
    if share < LITTLE {
        return Basis::Unneeded(format!(
            "Keep its volume: its threads waited for disks in {} of their active time.",
            format::percent(share)
        ));
    }
    if let Some(why) = now.why() {
        return Basis::Unknown(format!(
            "it waits for the volume of its data, which is not among those measured: {why}"
        ));
    }
    let workload = if reads_more(window, pair) { READ } else { FLUSHED };
    let cells = kept.results.iter().flat_map(|bench| &bench.cells);
    let placement = cells.into_iter().find(|cell| cell.workload == workload);
    let placement = placement.map_or(Placement::OneCpu, |cell| cell.placement);
    Basis::DiskShare { key: Key { workload: workload.to_owned(), placement }, share }
}

/// Whether its files' reads took the disks longer than its writes and flushes.
fn reads_more(window: &Window, pair: &Pair) -> bool {
    let Some(flows) = window.io.value().and_then(|io| io.flows.value()) else { return false };
    let own = flows.iter().filter(|flow| flow.database.as_deref() == Some(pair.end.id.as_str()));
    let (mut reads_s, mut writes_s) = (0.0, 0.0);
    for flow in own {
        let took_s = flow.requests as f64 * flow.latency.mean_s.0;
        match flow.direction {
            Direction::Read => reads_s += took_s,
            Direction::Write | Direction::Flush => writes_s += took_s,
            Direction::Discard => {}
        }
    }
    reads_s > writes_s
}
