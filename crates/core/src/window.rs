//! What was seen between two moments.

use crate::activity::{Doing, Spent};
use crate::pressure::GroupMemory;
use crate::scalability::Load;
use crate::{Activity, Bytes, Calibration, Database, Io, PathCosts, Reading, Seconds, Snapshot};
use serde::{Deserialize, Serialize};

/// The snapshots at both ends of an observation, and what was sampled between them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Window {
    /// The facts when the window opened.
    pub start: Snapshot,
    /// The facts when it closed.
    pub end: Snapshot,
    /// What was sampled between the two.
    pub samples: Vec<FaultSample>,
    /// What the threads of the databases did between the two.
    pub activity: Reading<Vec<Activity>>,
    /// What the disks did between the two.
    pub io: Reading<Io>,
    /// The processes that used the CPUs, those of the databases too, and all clients; the busiest first.
    pub others: Vec<Other>,
    /// What the kernel's workers took of the CPUs: they move data to and from disks, mostly. Not known
    /// of older runs.
    #[serde(default)]
    pub kernel_workers_s: Option<Seconds>,
    /// The control groups that were at their limits or took memory, those that took most first.
    pub groups: Reading<Vec<GroupMemory>>,
    /// How much the networks of the databases sent, from moment to moment.
    #[serde(default)]
    pub sent: Vec<Sent>,
    /// At which frequency CPUs ran, by samples; none where the kernel does not choose it.
    #[serde(default)]
    pub frequencies: Vec<Frequencies>,
    /// What the databases were asked in earlier windows of the same session, oldest first.
    #[serde(default)]
    pub loads: Vec<Loads>,
    /// What page faults and page walks cost on this host.
    pub calibration: Reading<Calibration>,
    /// What network paths cost on this host.
    #[serde(default = "Reading::<PathCosts>::not_captured")]
    pub path_costs: Reading<PathCosts>,
}

impl Window {
    /// A window between whose ends nothing was seen, for this reason.
    pub fn unseen(start: Snapshot, end: Snapshot, why: &str) -> Self {
        Self {
            start,
            end,
            samples: Vec::new(),
            activity: Reading::absent(why),
            io: Reading::absent(why),
            others: Vec::new(),
            kernel_workers_s: None,
            groups: Reading::absent(why),
            sent: Vec::new(),
            frequencies: Vec::new(),
            loads: Vec::new(),
            calibration: Reading::absent(why),
            path_costs: Reading::absent(why),
        }
    }

    /// The same window, in which what was traced in slices holds as much time on a CPU as the kernel
    /// counted: no less than without what a server computed before tracing began, to answer what it was
    /// asked, and no more than with what others had of its time.
    #[must_use]
    pub fn weighed(mut self) -> Self {
        let Self { start, end, activity, .. } = &mut self;
        let times = [&*start, &*end].map(|snapshot| snapshot.host.cpu_time.value().copied());
        let stretch = times[0].zip(times[1]).map_or(1.0, |(start, end)| end.stretch_since(start));
        let all = if let Reading::Present(all) = activity { &mut all[..] } else { &mut [] };
        for activity in all {
            let ends = database(start, &activity.database).zip(database(end, &activity.database));
            let same = ends.filter(|(start, end)| start.is_same_instance(end));
            if let Some(counted_s) = same.and_then(|(start, end)| on_cpu_s(start, end))
                && !overlooks(activity, counted_s)
            {
                let least_s = (counted_s.0 - unwatched_s(activity)).max(0.0);
                activity.weigh([Seconds(least_s), Seconds(counted_s.0 * stretch)]);
            }
        }
        self
    }

    /// Length in seconds; zero for a window without duration.
    pub fn seconds(&self) -> f64 {
        (self.end.uptime_s - self.start.uptime_s).max(0.0)
    }

    /// The databases at the end, each with itself at the start if it was there: the same process, not
    /// one that reuses its pid.
    pub fn databases(&self) -> impl Iterator<Item = Pair<'_>> {
        self.end.databases.iter().map(|end| {
            let start = self.start.databases.iter().find(|start| start.is_same_instance(end));
            let activity = self.activity_of(end, start);
            let seconds = seconds_between(&self.start, &self.end, &end.id);
            Pair { start, end, seconds, activity }
        })
    }

    /// What the threads of one database did.
    fn activity_of(&self, end: &Database, start: Option<&Database>) -> Reading<&Activity> {
        let found = self.activity.as_ref().and_then(|all| {
            let why = if start.is_some() {
                "too many databases to trace them all; choose one with --pid"
            } else {
                "the database was started during the window"
            };
            let found = all.iter().find(|activity| activity.database == end.id);
            found.map_or_else(|| Reading::Absent(why.to_owned()), Reading::Present)
        });
        let counted_s = start.and_then(|start| on_cpu_s(start, end));
        found.and_then(|activity| {
            let traced_s = activity.doing(&[Doing::OnCpu, Doing::ReclaimOnCpu]);
            match counted_s {
                Some(counted_s) if overlooks(activity, counted_s) => {
                    let looked = activity.traced_s().0 / activity.watched_s().0;
                    Reading::Failed(format!(
                        "tracing, {:.0} % of the window, saw {:.1} of {:.1} s on CPU: {}",
                        100.0 * looked,
                        traced_s.0,
                        counted_s.0,
                        if looked > WHOLE {
                            "threads were overlooked"
                        } else {
                            "that does not stand for the whole; take a longer --window"
                        }
                    ))
                }
                _ => Reading::Present(activity),
            }
        })
    }
}

/// How long the window between two snapshots is for one database: the time between the two moments at which
/// the kernel's counts of it were read. Where many are read one after the other, that of each begins and
/// ends a little later.
pub fn seconds_between(start: &Snapshot, end: &Snapshot, id: &str) -> f64 {
    let whole_s = end.uptime_s - start.uptime_s;
    let ends = database(start, id).zip(database(end, id));
    let same = ends.filter(|(start, end)| start.is_same_instance(end));
    let counted = |database: &Database| database.counters.counted_at_s;
    let own_s = same.and_then(|(start, end)| Some(counted(end)? - counted(start)?));
    own_s.unwrap_or(whole_s).max(0.0)
}

/// At which frequency the CPUs of one policy ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Frequencies {
    /// The policy, such as `policy0`.
    pub policy: String,
    /// Samples of `scaling_cur_freq`, kHz, oldest first.
    pub khz: Vec<u64>,
}

/// What was sent in the network of one database, by others in it too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Sent {
    /// The database's id.
    pub database: String,
    /// TCP segments in moments of 50 ms or more, oldest first.
    pub segments_per_s: Vec<f64>,
}

/// What one database was asked, window after window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Loads {
    /// The database's id.
    pub database: String,
    /// Each window.
    pub each: Vec<Load>,
}

fn database<'a>(snapshot: &'a Snapshot, id: &str) -> Option<&'a Database> {
    snapshot.databases.iter().find(|database| database.id == id)
}

/// What the kernel counted of a database's threads on CPUs between two moments.
fn on_cpu_s(start: &Database, end: &Database) -> Option<Seconds> {
    let counted = |database: &Database| database.counters.on_cpu_s.value().copied();
    Some(counted(end)? - counted(start)?).filter(|counted_s| counted_s.0 >= 0.0)
}

/// Whether tracing saw so little of it that it does not stand for the window.
fn overlooks(activity: &Activity, counted_s: Seconds) -> bool {
    let traced_s = activity.doing(&[Doing::OnCpu, Doing::ReclaimOnCpu]);
    counted_s.0 > OVERLOOKED * traced_s.0 + unwatched_s(activity) + 0.5
}

/// Before tracing began, a server answered what it was asked.
fn unwatched_s(activity: &Activity) -> f64 {
    (activity.window_s.0 - activity.watched_s().0).max(0.0)
}

/// Threads that used so many times more of the CPUs than tracing saw were not all traced. Slices of
/// a window are a sample, so a little more is no sign.
const OVERLOOKED: f64 = 2.0;

/// A window that was traced to this part has nothing much in its pauses.
const WHOLE: f64 = 0.95;

/// What the processes of one database that serve a client each had faulted in, at one moment
/// inside a window. Clients that came and went between its ends are seen by this alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FaultSample {
    /// The database's id.
    pub database: String,
    /// Shared memory that they had mapped, counted once for each process.
    pub mapped_shared_bytes: Bytes,
    /// Page tables of theirs.
    #[serde(default)]
    pub page_table_bytes: Option<Bytes>,
    /// Their minor faults since each was started.
    pub minor_faults: u64,
}

/// A process that is part of no database that was watched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Other {
    /// Its pid.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Its control group.
    pub cgroup: Reading<String>,
    /// How many threads it has.
    pub threads: u32,
    /// Its time on CPU in the window, and that of those it started that ended in it.
    pub cpu_s: Seconds,
    /// What of it those took that ended.
    pub ended_s: Seconds,
    /// What of it was in the kernel, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_s: Option<Seconds>,
    /// How long it waited for CPUs in the window, where that is known.
    #[serde(default)]
    pub waited_s: Option<Seconds>,
    /// The CPUs that it may use, such as `0-15,32-47`, where that is known.
    #[serde(default)]
    pub allowed_cpus: Option<String>,
}

impl Other {
    /// A process with one thread of which only this is known.
    pub fn unknown(pid: u32, name: &str, cpu_s: Seconds, why: &str) -> Self {
        Self {
            pid,
            name: name.to_owned(),
            cgroup: Reading::absent(why),
            threads: 1,
            cpu_s,
            ended_s: Seconds(0.0),
            system_s: None,
            waited_s: None,
            allowed_cpus: None,
        }
    }

    /// The most that its threads could have had in so many seconds; `None` when others worked for
    /// it, of which nobody knows how many there were at once.
    pub fn room_s(&self, seconds: f64) -> Option<f64> {
        let alone = self.ended_s.0 < 0.1 * self.cpu_s.0;
        alone.then(|| f64::from(self.threads.max(1)) * seconds)
    }
}

/// One database at both ends of a window.
#[derive(Debug, Clone)]
pub struct Pair<'a> {
    /// At the start, unless it was started during the window.
    pub start: Option<&'a Database>,
    /// At the end.
    pub end: &'a Database,
    /// Length of the window, seconds.
    pub seconds: f64,
    /// What its threads did.
    pub activity: Reading<&'a Activity>,
}

impl Pair<'_> {
    /// How many requests were worked on at once, and how many were done: the time that threads
    /// which serve clients were active, and the engine's own count.
    pub fn load(&self) -> Reading<Load> {
        let Some(count) = &self.end.traits.requests_counter else {
            return Reading::Absent(format!("{} does not count its requests", self.end.product));
        };
        self.told_growth(count).and_then(|requests| {
            self.activity.clone().map(|activity| {
                let model = self.end.model;
                let works = |spent: &Spent| spent.serves(model) && spent.part(model).is_active();
                let at_once = activity.sum(works).0 / self.seconds;
                Load { at_once, per_s: requests / self.seconds }
            })
        })
    }

    /// How much one of the server's own counts grew over the window.
    pub fn told_growth(&self, name: &str) -> Reading<f64> {
        self.growth_by_server(name, |database| database.counters.told(name))
    }

    /// How much a count that the server keeps grew over the window, by its rate between the two answers. A
    /// server may answer late, and at another pace at each end.
    pub fn growth_by_server(
        &self,
        name: &str,
        read: impl Fn(&Database) -> Reading<f64>,
    ) -> Reading<f64> {
        let told = |database: &Database| database.counters.told_at_s;
        let between = self.start.and_then(told).zip(told(self.end)).map(|(start, end)| end - start);
        let part = between.filter(|s| *s > 0.0).map_or(1.0, |between_s| self.seconds / between_s);
        self.growth(name, read).map(|grown| grown * part)
    }

    /// How much a growing counter grew over the window.
    ///
    /// A counter that went backwards (processes left and took their counts with them, or the
    /// server was restarted) is a gap, not a zero.
    pub fn growth(&self, name: &str, read: impl Fn(&Database) -> Reading<f64>) -> Reading<f64> {
        let Some(start) = self.start else {
            return Reading::Absent("the database was started during the window".to_owned());
        };
        if self.seconds <= 0.0 {
            return Reading::Absent("the check had no window; use --window 10s".to_owned());
        }
        read(self.end).and_then(|end| {
            read(start).and_then(|start| {
                if end < start {
                    Reading::Failed(format!("{name} went backwards during the window"))
                } else {
                    Reading::Present(end - start)
                }
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::HostFacts;
    use jiff::Timestamp;

    /// A look at a database: when the look began, when the kernel's counts were read, when the server told
    /// its own, and what it told.
    fn look(uptime_s: f64, counted_at_s: f64, told_at_s: f64, requests: u64) -> Snapshot {
        let mut database = Database::unknown("postgres", 7, "not read");
        database.started_ticks = Reading::Present(1);
        database.counters.counted_at_s = Some(counted_at_s);
        database.counters.told_at_s = Some(told_at_s);
        database.counters.told = Reading::Present([("requests".to_owned(), requests)].into());
        let host = HostFacts::unknown("not read");
        let snapshot = Snapshot::of_host(Timestamp::UNIX_EPOCH, uptime_s, host);
        Snapshot { databases: vec![database], ..snapshot }
    }

    #[test]
    fn a_server_that_answers_late_changes_neither_the_windows_length_nor_its_rates() {
        // Ten seconds are counted; the server answers 1 s before the one and 9 s after the other, and does
        // 100 requests a second.
        let window = Window::unseen(
            look(99.5, 100.0, 99.0, 5_000),
            look(109.5, 110.0, 119.0, 7_000),
            "a test",
        );
        let pair = window.databases().next().unwrap();
        assert!((pair.seconds - 10.0).abs() < 1e-9);
        let requests = pair.told_growth("requests").into_value().unwrap();
        assert!((requests - 1_000.0).abs() < 1e-9, "{requests}");
    }

    #[test]
    fn each_database_has_the_time_between_its_own_counts() {
        let ends = [look(100.0, 100.2, 100.2, 0), look(110.0, 112.2, 112.2, 0)];
        let [start, end] = &ends;
        assert!((seconds_between(start, end, "postgres:7") - 12.0).abs() < 1e-9, "counted late");
        assert!((seconds_between(start, end, "redis:1") - 10.0).abs() < 1e-9, "not there");
        let mut older = ends.clone();
        older[0].databases[0].counters.counted_at_s = None;
        let [start, end] = &older;
        assert!((seconds_between(start, end, "postgres:7") - 10.0).abs() < 1e-9, "not captured");
        let mut again = ends.clone();
        again[1].databases[0].started_ticks = Reading::Present(2);
        let [start, end] = &again;
        assert!((seconds_between(start, end, "postgres:7") - 10.0).abs() < 1e-9, "another start");
    }
}
