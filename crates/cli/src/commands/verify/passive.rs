//! What the databases of a plan serve anyway, by their own counters.

use anyhow::{Context, bail};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use untax_core::plan::Step;
use untax_core::{Database, Plan};
use untax_remedies::rate::Rate;

/// How often it is looked whether to stop.
const STEP: Duration = Duration::from_millis(100);

/// The databases whose counters are compared, and for how long.
pub struct Passive {
    time: Duration,
    /// As they were before the first trial.
    databases: Vec<Database>,
}

impl Passive {
    /// Finds the databases of a plan. All of them must tell what they serve.
    pub fn choose(plan: &Plan, time: Duration) -> anyhow::Result<Self> {
        let databases = named(&plan.steps, &untax_pipeline::take()?.databases)?;
        if databases.is_empty() {
            bail!("no database runs here");
        }
        for database in &databases {
            accesses(database)?;
        }
        Ok(Self { time, databases })
    }

    /// What they serve together from now on.
    pub fn rate(&self, stop: &AtomicBool) -> anyhow::Result<Rate> {
        let before = untax_pipeline::take()?;
        let until = Instant::now() + self.time;
        while Instant::now() < until && !stop.load(Ordering::Relaxed) {
            std::thread::sleep(STEP);
        }
        let after = untax_pipeline::take()?;
        let passed_s = after.uptime_s - before.uptime_s;
        let rate = |known| rate_of(known, &before.databases, &after.databases, passed_s);
        let per_s = self.databases.iter().map(rate).sum::<anyhow::Result<f64>>()?;
        if per_s == 0.0 {
            bail!("the databases of the plan served nothing in {:?}; use --workload", self.time);
        }
        Ok(Rate { per_s, measure: "accesses to cached data per second" })
    }
}

/// The databases that steps name: by their ids, or, where one was restarted since the check, the
/// only one of its engine. Steps that name none are for all.
fn named(steps: &[Step], here: &[Database]) -> anyhow::Result<Vec<Database>> {
    let ids: BTreeSet<&String> = steps.iter().flat_map(|step| &step.databases).collect();
    if ids.is_empty() {
        return Ok(here.to_vec());
    }
    let find = |id: &String| {
        let engine = id.split(':').next().unwrap_or_default();
        let itself = here.iter().find(|one| one.id == *id);
        let found = itself.or_else(|| only(here, |one| one.engine == engine));
        found.cloned().with_context(|| {
            format!("{id}, which the plan is for, does not run here any more; use --workload")
        })
    };
    ids.into_iter().map(find).collect()
}

/// The requests that a database served each second. The time is that between its two answers, which may be
/// late; where that is unknown, `passed_s` between two looks.
fn rate_of(
    known: &Database,
    before: &[Database],
    after: &[Database],
    passed_s: f64,
) -> anyhow::Result<f64> {
    let told = |here| again(known, here).ok()?.counters.told_at_s;
    let between_s = told(before).zip(told(after)).map(|(before, after)| after - before);
    let served = growth(known, before, after)? as f64;
    Ok(served / between_s.filter(|s| *s > 0.0).unwrap_or(passed_s))
}

/// By how much the count of a database grew between two looks.
fn growth(known: &Database, before: &[Database], after: &[Database]) -> anyhow::Result<u64> {
    let (before, after) = (again(known, before)?, again(known, after)?);
    if !after.is_same_instance(before) {
        bail!("{} was restarted during a trial", before.id);
    }
    let (before, after) = (accesses(before)?, accesses(after)?);
    let went_backwards = || format!("what {} counts went backwards during a trial", known.id);
    after.checked_sub(before).with_context(went_backwards)
}

/// A database in a later look: itself, or after a restart, which gives it another process, the only
/// one that it may be, in its container or else in another.
fn again<'a>(known: &Database, here: &'a [Database]) -> anyhow::Result<&'a Database> {
    let itself = here.iter().find(|one| one.is_same_instance(known));
    let there = || only(here, |one| may_be(one, known) && one.container == known.container);
    let again = itself.or_else(there).or_else(|| only(here, |one| may_be(one, known)));
    again.with_context(|| format!("{} is not to be found any more", known.id))
}

/// Whether one database may be another start of the other: by their data directories, where both
/// are known.
fn may_be(one: &Database, other: &Database) -> bool {
    let directories = one.data_directory.value().zip(other.data_directory.value());
    one.engine == other.engine && directories.is_none_or(|(one, other)| one == other)
}

/// The one of which something holds, if it holds of no other.
fn only(here: &[Database], is: impl Fn(&Database) -> bool) -> Option<&Database> {
    let mut those = here.iter().filter(|one| is(one));
    those.next().filter(|_| those.next().is_none())
}

/// What a database has served so far.
fn accesses(database: &Database) -> anyhow::Result<u64> {
    let accesses = &database.counters.accesses;
    accesses.value().map(|accesses| accesses.count).with_context(|| {
        let why = accesses.why().unwrap_or_default();
        format!("{} does not tell what it served: {why}; use --workload", database.id)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::slice::from_ref;
    use untax_core::Interval;
    use untax_core::Reading::{self, Absent, Present};
    use untax_core::database::Accesses;
    use untax_core::plan::{Effect, Target};
    use untax_host::Capture;

    fn postgres() -> Database {
        let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases");
        let capture = Capture::open(&cases.join("postgres-huge-pages.tar.gz")).unwrap();
        let (window, _) = untax_pipeline::replay(&capture).unwrap();
        counted(&window.start.databases[0], 0)
    }

    fn counted(database: &Database, count: u64) -> Database {
        let pages_each = Interval::exact(1.0);
        let accesses = Accesses { count, counter: "blks_hit".to_owned(), pages_each, by_key: None };
        telling(database, Present(accesses))
    }

    fn telling(database: &Database, accesses: Reading<Accesses>) -> Database {
        let mut database = database.clone();
        database.counters.accesses = accesses;
        database
    }

    fn restarted(database: &Database, pid: u32) -> Database {
        let (id, started_ticks) = (format!("postgres:{pid}"), Present(u64::from(pid)));
        Database { id, pid, started_ticks, ..database.clone() }
    }

    fn elsewhere(database: &Database) -> Database {
        Database { data_directory: Present("/elsewhere".to_owned()), ..restarted(database, 2) }
    }

    fn step(databases: &[&str]) -> Step {
        Step {
            id: "a".to_owned(),
            remedy: "a".to_owned(),
            summary: String::new(),
            databases: databases.iter().map(|id| (*id).to_owned()).collect(),
            target: Target::File { file: "/a".to_owned() },
            from: None,
            to: None,
            refresh: Vec::new(),
            effect: Effect::Now,
        }
    }

    #[test]
    fn what_others_serve_is_not_counted() {
        let known = postgres();
        let other = elsewhere(&known);
        let before = [counted(&other, 1), counted(&known, 10)];
        let after = [counted(&known, 15), counted(&other, 1000)];
        assert_eq!(growth(&known, &before, &after).unwrap(), 5);
    }

    #[test]
    fn a_database_that_does_not_tell_at_either_end_is_no_rate() {
        let known = counted(&postgres(), 7);
        let silent = telling(&known, Absent("nobody asked".to_owned()));
        for (before, after) in [(&known, &silent), (&silent, &known)] {
            let grew = growth(&known, from_ref(before), from_ref(after));
            let said = grew.unwrap_err().to_string();
            assert!(said.contains(&known.id) && said.contains("nobody asked"), "{said}");
        }
        for after in [counted(&known, 6), restarted(&known, 1)] {
            assert!(growth(&known, from_ref(&known), &[after]).is_err());
        }
    }

    #[test]
    fn a_database_is_found_again_after_a_restart() {
        let known = postgres();
        let now = restarted(&known, 1);
        let here = [elsewhere(&known), now.clone()];
        assert_eq!(again(&known, &here).unwrap().id, now.id);
        assert!(again(&known, &here[..1]).is_err());
        let unknown = Database { data_directory: Absent("unread".to_owned()), ..now };
        assert!(again(&known, &[unknown, restarted(&known, 3)]).is_err(), "it may be either");
    }

    #[test]
    fn a_plan_is_for_the_databases_that_its_steps_name() {
        let (one, other) = (restarted(&postgres(), 1), elsewhere(&postgres()));
        let here = [one, other];
        let ids = |steps: &[Step], here: &[Database]| -> Option<Vec<String>> {
            Some(named(steps, here).ok()?.into_iter().map(|database| database.id).collect())
        };
        let twice = [step(&["postgres:2"]), step(&["postgres:2"])];
        assert_eq!(ids(&twice, &here).unwrap(), ["postgres:2"]);
        assert_eq!(ids(&[step(&[])], &here).unwrap().len(), 2);
        let gone = [step(&["postgres:9"])];
        assert_eq!(ids(&gone, &here), None);
        assert_eq!(ids(&gone, &here[..1]).unwrap(), ["postgres:1"], "it was restarted");
    }
}
