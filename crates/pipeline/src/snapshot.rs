//! One snapshot, and windows that were captured.

use crate::error::PipelineError;
use untax_core::{Reading, Snapshot, Window};
use untax_engines::{Asker, Selection};
use untax_host::{Capture, Host};
use untax_probes::Observations;

/// Takes one snapshot of everything that runs here.
pub fn take() -> Result<Snapshot, PipelineError> {
    snapshot_of(untax_probes::snapshot(&Host::live(), &Asker::this_program(), &Selection::All))
}

/// The window of a capture, and what a person should know beside it: the same readings, from its files.
pub fn replay(capture: &Capture) -> Result<(Window, Vec<String>), PipelineError> {
    let asker = Asker::this_program();
    let chosen = capture.start.observe("selection", || Reading::Present(Selection::All));
    let selection = chosen.into_value().unwrap_or(Selection::All);
    let start = opening(&capture.start, &asker, &selection)?;
    let (end, notes) = closing(&capture.end, &asker, &selection, Some(&start))?;
    // A capture holds what was seen in its window, the calibration too.
    let calibration = |_: &Snapshot| Reading::Absent("a replay measures nothing".to_owned());
    let mut window =
        Observations::empty().into_window(start, end, &capture.end, Vec::new(), calibration);
    window.path_costs = capture.end.observe("path costs", Reading::not_captured);
    Ok((window, notes))
}

/// The snapshot with which a window begins: servers are asked first.
pub(crate) fn opening(
    host: &Host,
    asker: &Asker,
    selection: &Selection,
) -> Result<Snapshot, PipelineError> {
    snapshot_of(untax_probes::first_snapshot(host, asker, selection))
}

fn snapshot_of(taken: Reading<Snapshot>) -> Result<Snapshot, PipelineError> {
    match taken {
        Reading::Present(snapshot) => Ok(snapshot),
        Reading::Absent(why) => Err(PipelineError::NothingToCheck(why)),
        gap => Err(PipelineError::Unreadable(gap.why().unwrap_or_default())),
    }
}

/// The snapshot with which a window ends, servers asked last, and what a person should know of it: a selected database that
/// ended meanwhile leaves the host without it. Captures of older releases hold no host without a database;
/// for these `start` stands in.
pub(crate) fn closing(
    host: &Host,
    asker: &Asker,
    selection: &Selection,
    start: Option<&Snapshot>,
) -> Result<(Snapshot, Vec<String>), PipelineError> {
    let why = match snapshot_of(untax_probes::snapshot(host, asker, selection)) {
        Err(PipelineError::NothingToCheck(why)) => why,
        snapshot => return Ok((snapshot?, Vec::new())),
    };
    let alone = untax_probes::snapshot_of_host(host).into_value();
    let without = || Some(Snapshot { databases: Vec::new(), ..start?.clone() });
    match alone.or_else(without) {
        Some(alone) => Ok((alone, vec![format!("gone during the check: {why}")])),
        None => Err(PipelineError::Unreadable(why)),
    }
}
