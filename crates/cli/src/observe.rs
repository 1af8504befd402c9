//! Watching the live host for a window: what `check` and `capture` have in common.

use crate::progress;
use crate::screen::say;
use crate::state::State;
use anyhow::bail;
use clap::Args;
use std::time::Duration;
use untax_core::{Calibration, Database, Reading, Seconds, Snapshot, Window};
use untax_engines::{Asker, Selection};
use untax_host::Host;
use untax_probes::{Probes, Seen};

/// What `bench pages` saves its calibration as.
pub const CALIBRATION: &str = "calibration";

/// How long a calibration that `check` made is kept; one of `bench pages` holds until the
/// processor or the kernel is another.
const KEPT: Duration = Duration::from_secs(24 * 3600);

/// Which databases to look at, and for how long.
#[derive(Debug, Args)]
pub struct Watching {
    /// Check the database that this process belongs to, or this process whatever it is
    #[arg(long, value_name = "N", group = "which")]
    pid: Option<u32>,
    /// Check the databases in this container (its id or the beginning of it)
    #[arg(long, value_name = "ID", group = "which")]
    container: Option<String>,
    /// Check the databases in this Kubernetes pod of this node
    #[arg(long, value_name = "NS/NAME", group = "which")]
    pod: Option<String>,
    /// Check every database on this host (the default)
    #[arg(long, group = "which")]
    all: bool,
    /// How long to watch: 10s, 500ms, 2m; 0s takes one look and measures no rates
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub window: Duration,
    /// Do not measure what page faults and page walks cost here; taxes that need it are unmeasured
    #[arg(long)]
    no_calibration: bool,
}

/// What was seen, and what it cost to look.
pub struct Observed {
    /// What was seen.
    pub window: Window,
    /// Processor time that tracing took in the kernel.
    pub tracing_s: Reading<Seconds>,
}

impl Watching {
    /// One database, by its main process.
    pub fn of(pid: u32, window: Duration) -> Self {
        Self {
            pid: Some(pid),
            container: None,
            pod: None,
            all: false,
            window,
            no_calibration: false,
        }
    }

    fn selection(&self, host: &Host) -> anyhow::Result<Selection> {
        if let Some(pid) = self.pid {
            return Ok(Selection::Pid(pid));
        }
        if let Some(id) = &self.container {
            return Ok(Selection::Container(id.clone()));
        }
        match &self.pod {
            Some(name) => Ok(Selection::Pod(pod_uid(host, name)?)),
            None => Ok(Selection::All),
        }
    }

    /// Watches the host through two `Host`s, one for each end of the window.
    pub fn observe(&self, state: &State, start: &Host, end: &Host) -> anyhow::Result<Observed> {
        let asker = Asker::this_program();
        let selection = self.selection(start)?;
        // Part of a capture: it replays what was asked for, a program that is no database too.
        start.observe("selection", || Reading::Present(selection.clone()));
        let opening = taken(untax_probes::snapshot(start, &asker, &selection))?;
        if opening.databases.is_empty() && !matches!(selection, Selection::All) {
            bail!("no database is selected by that; untax check --all lists what runs here");
        }
        let (seen, closing) = if self.window.is_zero() {
            (Seen::nothing(), opening.clone())
        } else {
            let mut probes = Probes::begin(&opening.databases, self.window);
            progress::wait(self.window, || probes.tick());
            let seen = probes.finish();
            let closing = untax_probes::snapshot(end, &asker, &selection);
            (seen, closing_or_gone(closing, &opening)?)
        };
        // Not part of a recorded moment, but of the window between two.
        let window_s = Seconds(closing.uptime_s - opening.uptime_s);
        let Seen { samples, activity, io, tracing_s } = seen.over(window_s);
        let samples = end.observe("samples", || Reading::Present(samples));
        let activity = end.observe("activity", || activity);
        let io = end.observe("io", || io);
        let calibration = end.observe("calibration", || self.calibration(state, &closing));
        // Captures made by hand may have no samples; the snapshots stand for themselves.
        let samples = samples.into_value().unwrap_or_default();
        let others = untax_probes::busiest(end, &opening, &closing);
        let groups = untax_probes::pressed(&opening, &closing);
        let (start, end) = (opening, closing);
        let window = Window { start, end, samples, activity, io, others, groups, calibration };
        Ok(Observed { window, tracing_s })
    }

    /// What pages cost here: as `bench pages` measured it once, or measured now when a database
    /// is found whose tax needs it.
    fn calibration(&self, state: &State, snapshot: &Snapshot) -> Reading<Calibration> {
        if self.no_calibration {
            return Reading::Absent("switched off with --no-calibration".to_owned());
        }
        if self.window.is_zero() || !snapshot.databases.iter().any(on_small_pages) {
            return Reading::Absent("no database here needs it".to_owned());
        }
        match state.load::<Calibration>(CALIBRATION).filter(|saved| holds_here(saved, snapshot)) {
            Some(saved) => Reading::Present(saved),
            None => calibrated(state, snapshot),
        }
    }
}

/// Calibrates, and keeps the result for the checks that follow: it costs more than they do.
fn calibrated(state: &State, snapshot: &Snapshot) -> Reading<Calibration> {
    let calibration = untax_experiments::calibrate_in_child(&snapshot.host);
    let whole = calibration.value().filter(|made| !made.touches.is_empty());
    if let Some(Err(error)) = whole.map(|made| state.save(CALIBRATION, made)) {
        say(&format!("untax: the calibration is not kept: {error:#}"));
    }
    calibration
}

/// One look at everything that runs here.
pub fn look() -> anyhow::Result<Snapshot> {
    taken(untax_probes::snapshot(&Host::live(), &Asker::this_program(), &Selection::All))
}

/// Replays a capture: the same readings, from its files.
pub fn replay(start: &Host, end: &Host) -> anyhow::Result<Window> {
    let asker = Asker::this_program();
    let chosen = start.observe("selection", || Reading::Present(Selection::All));
    let selection = chosen.into_value().unwrap_or(Selection::All);
    let opening = taken(untax_probes::snapshot(start, &asker, &selection))?;
    let closing = untax_probes::snapshot(end, &asker, &selection);
    let closing = closing_or_gone(closing, &opening)?;
    let calibration = end.observe("calibration", || missing("calibration"));
    let activity = end.observe("activity", || missing("activity of threads"));
    let io = end.observe("io", || missing("input and output"));
    let samples = end.observe("samples", || missing("samples")).into_value().unwrap_or_default();
    let others = untax_probes::busiest(end, &opening, &closing);
    let groups = untax_probes::pressed(&opening, &closing);
    let (start, end) = (opening, closing);
    Ok(Window { start, end, samples, activity, io, others, groups, calibration })
}

fn missing<T>(what: &str) -> Reading<T> {
    Reading::Absent(format!("the capture has no {what}"))
}

fn taken(snapshot: Reading<Snapshot>) -> anyhow::Result<Snapshot> {
    match snapshot {
        Reading::Present(snapshot) => Ok(snapshot),
        Reading::Absent(why) => bail!("nothing to check: {why}"),
        gap => bail!("the host cannot be read: {}", gap.why().unwrap_or_default()),
    }
}

/// The snapshot at the end; a selected database that ended meanwhile leaves one without it.
fn closing_or_gone(closing: Reading<Snapshot>, opening: &Snapshot) -> anyhow::Result<Snapshot> {
    if let Reading::Absent(why) = &closing {
        say(&format!("untax: gone during the check: {why}"));
        return Ok(Snapshot { databases: Vec::new(), ..opening.clone() });
    }
    taken(closing)
}

fn on_small_pages(database: &Database) -> bool {
    database.memory.page_size_bytes.value().is_some_and(|page| page.0 <= 64 << 10)
}

/// Whether a saved calibration is of this machine, and not a hasty one of long ago.
fn holds_here(saved: &Calibration, snapshot: &Snapshot) -> bool {
    let host = &snapshot.host;
    let age = snapshot.taken_at.duration_since(saved.taken_at);
    let fresh = saved.source != "check" || age.unsigned_abs() < KEPT;
    fresh
        && host.cpu.value().is_some_and(|cpu| cpu.model == saved.cpu_model)
        && host.kernel.value().is_some_and(|kernel| kernel.release == saved.kernel_release)
}

/// The uid of a pod on this node, from the folders in which the kubelet keeps its logs.
fn pod_uid(host: &Host, name: &str) -> anyhow::Result<String> {
    let Some((namespace, pod)) = name.split_once('/') else {
        return Err(crate::Usage(format!("--pod wants NAMESPACE/NAME, not {name}")).into());
    };
    let folders = host.names("/var/log/pods");
    let why = folders.why();
    let prefix = format!("{namespace}_{pod}_");
    let found = folders.into_value().and_then(|folders| {
        folders.iter().find_map(|folder| folder.strip_prefix(&prefix).map(str::to_owned))
    });
    match (found, why) {
        (Some(uid), _) => Ok(uid),
        (None, Some(why)) => bail!("pods of this node are not known: {why}"),
        (None, None) => bail!("no pod {name} on this node; kubectl get pods -o wide says where"),
    }
}

/// A time such as `10s`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text} is not a time such as 10s, 500ms or 2m");
    let split = text.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(wrong)?;
    let (number, unit) = text.split_at(split);
    let seconds_each = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    let seconds = number.parse::<f64>().map_err(|_| wrong())? * seconds_each;
    Duration::try_from_secs_f64(seconds).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("0s"), Ok(Duration::ZERO));
        for wrong in ["10", "s", "-1s", "1y", "", "1e999s"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
