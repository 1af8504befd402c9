//! Watching the live host for a window: what `check`, `capture` and `watch` have in common.

use crate::own_cost;
use crate::progress::Bar;
use crate::screen::say_all;
use crate::session::{Session, closing_or_gone, taken};
use crate::state::State;
use anyhow::bail;
use clap::Args;
use std::ops::RangeInclusive;
use std::time::Duration;
use untax_core::{Calibration, Database, Reading, Seconds, Snapshot, Window};
use untax_engines::{Asker, Selection};
use untax_host::Host;
use untax_probes::Seen;

/// What `bench pages` saves its calibration as.
pub const CALIBRATION: &str = "calibration";

/// How long a calibration that `check` made is kept; one of `bench pages` holds until the
/// processor or the kernel is another.
const KEPT: Duration = Duration::from_secs(24 * 3600);

/// A shorter window has too few slices to say anything with an interval; a longer one only hides
/// when something happened.
const LENGTHS: RangeInclusive<Duration> =
    Duration::from_millis(500)..=Duration::from_secs(24 * 3600);

/// Which databases to look at, and for how long.
#[derive(Debug, Args)]
pub struct Watching {
    /// Look only at the database that this process belongs to, or this process whatever it is
    #[arg(long, value_name = "N", group = "which")]
    pid: Option<u32>,
    /// Look only at the databases in this container (its id or the beginning of it)
    #[arg(long, value_name = "ID", group = "which")]
    container: Option<String>,
    /// Look only at the databases in this Kubernetes pod of this node
    #[arg(long, value_name = "NS/NAME", group = "which")]
    pod: Option<String>,
    /// Look at every database on this host (the default)
    #[arg(long, group = "which")]
    all: bool,
    /// How long to watch: 10s, 500ms, 2m; 0s takes one look and measures no rates
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = window)]
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
    /// What a person should know that is no part of the result.
    pub notes: Vec<String>,
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

    /// The databases that are meant.
    pub fn selection(&self, host: &Host) -> anyhow::Result<Selection> {
        if let Some(pid) = self.pid {
            return Ok(Selection::Pid(pid));
        }
        if let Some(id) = &self.container {
            return Ok(Selection::Container(id.clone()));
        }
        match &self.pod {
            Some(name) => Ok(Selection::Pod(pod_uids(host, name)?)),
            None => Ok(Selection::All),
        }
    }

    /// Watches the host through two `Host`s, one for each end of the window.
    pub fn observe(&self, state: &State, start: &Host, end: &Host) -> anyhow::Result<Observed> {
        let mut session = Session::open(self, state, start)?;
        let bar = Bar::over(self.window);
        session.pass(|passed| {
            bar.show(passed);
            true
        });
        drop(bar);
        let observed = session.close(end)?;
        say_all(&observed.notes);
        Ok(observed)
    }

    /// What pages cost here: as `bench pages` measured it once, or measured now when a database
    /// is found whose tax needs it; `kept` is what was measured for an earlier window.
    pub fn calibration(
        &self,
        state: &State,
        kept: Option<&Calibration>,
        snapshot: &Snapshot,
        notes: &mut Vec<String>,
    ) -> Reading<Calibration> {
        if self.no_calibration {
            return Reading::Absent("switched off with --no-calibration".to_owned());
        }
        if self.window.is_zero() || !snapshot.databases.iter().any(on_small_pages) {
            return Reading::Absent("no database here needs it".to_owned());
        }
        // What could be measured in part is not saved, nor where there is no place for it.
        let saved = kept.cloned().or_else(|| state.load(CALIBRATION));
        match saved.filter(|saved| holds_here(saved, snapshot)) {
            Some(saved) => Reading::Present(saved),
            None => calibrated(state, snapshot, notes),
        }
    }
}

/// Calibrates, and keeps the result for the checks that follow: it costs more than they do.
fn calibrated(state: &State, snapshot: &Snapshot, notes: &mut Vec<String>) -> Reading<Calibration> {
    let mut meter = own_cost::Meter::default();
    let mut since = || meter.read(Reading::Absent("not asked".to_owned())).into_value();
    let known = since().is_some();
    let calibration = untax_experiments::calibrate_in_child(&snapshot.host);
    let took = since().filter(|_| known).map(|cost| cost.cpu_s);
    let whole = calibration.value().filter(|made| !made.touches.is_empty());
    match whole.map(|made| state.save(CALIBRATION, made)) {
        Some(Ok(())) => notes.push(measured_here(took)),
        Some(Err(error)) => notes.push(format!("the calibration is not kept: {error:#}")),
        None => {}
    }
    calibration
}

/// That a check measured what pages cost, and how much of it that was, where that is known.
fn measured_here(took: Option<Seconds>) -> String {
    let who = took.map_or_else(
        || "this check".to_owned(),
        |took| format!("{:.1} s of this check's CPU time", took.0),
    );
    format!("{who} measured what pages cost here; later checks use that")
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
    let mut notes = Vec::new();
    let closing = untax_probes::snapshot(end, &asker, &selection);
    let closing = closing_or_gone(closing, &opening, end, &mut notes)?;
    say_all(&notes);
    // A capture is of one window; it holds what was seen in it, its calibration too.
    let calibration = |_: &Snapshot| Reading::Absent("a replay measures nothing".to_owned());
    Ok(Seen::nothing().between(opening, closing, end, Vec::new(), calibration))
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

/// The uids of a pod on this node, from the folders in which the kubelet keeps its logs. A pod of
/// a `StatefulSet` has the name of those before it, whose logs stay for a while.
fn pod_uids(host: &Host, name: &str) -> anyhow::Result<Vec<String>> {
    let Some((namespace, pod)) = name.split_once('/') else {
        return Err(crate::Usage(format!("--pod wants NAMESPACE/NAME, not {name}")).into());
    };
    let folders = host.names("/var/log/pods");
    if let Some(why) = folders.why() {
        bail!("pods of this node are not known: {why}");
    }
    let prefix = format!("{namespace}_{pod}_");
    let folders = folders.into_value().unwrap_or_default();
    let uids: Vec<String> = folders
        .iter()
        .filter_map(|folder| folder.strip_prefix(&prefix))
        .map(str::to_owned)
        .collect();
    if uids.is_empty() {
        bail!("no pod {name} on this node; kubectl get pods -o wide says where");
    }
    Ok(uids)
}

/// The length of a window: none, which is a single look, or one of `LENGTHS`.
fn window(text: &str) -> Result<Duration, String> {
    let length = duration(text)?;
    if length.is_zero() || LENGTHS.contains(&length) {
        return Ok(length);
    }
    Err("a window is 500ms to 24h long, or 0s for a single look".to_owned())
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
    fn a_pod_with_the_name_of_one_before_it_is_found() {
        let record = untax_host::Record::default()
            .with_file("/var/log/pods/db_pg-0_old/postgres/0.log", "")
            .with_file("/var/log/pods/db_pg-0_new/postgres/0.log", "")
            .with_file("/var/log/pods/db_pg-01_other/postgres/0.log", "");
        let host = Host::replaying(record);
        assert_eq!(pod_uids(&host, "db/pg-0").unwrap(), ["new", "old"]);
        assert!(pod_uids(&host, "db/none").unwrap_err().to_string().contains("no pod db/none"));
        assert!(pod_uids(&host, "pg-0").is_err());
        let elsewhere = pod_uids(&Host::replaying(untax_host::Record::default()), "db/pg-0");
        assert!(elsewhere.unwrap_err().to_string().contains("not known"));
    }

    #[test]
    fn what_calibrating_took_is_left_out_where_it_is_not_known() {
        assert!(measured_here(Some(Seconds(2.34))).starts_with("2.3 s of this check's CPU time "));
        assert!(measured_here(None).starts_with("this check measured what pages cost here; "));
    }

    #[test]
    fn a_window_is_long_enough_to_tell_or_none() {
        for length in ["0s", "500ms", "10s", "24h"] {
            assert_eq!(window(length), duration(length));
        }
        for length in ["1ms", "499ms", "25h", "999999h", "-1s", "10"] {
            window(length).unwrap_err();
        }
    }

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
