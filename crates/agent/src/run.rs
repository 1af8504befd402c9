//! One window after the other, until the caller ends it.

use crate::exhaustion::Episodes;
use crate::exposition;
use crate::features::FeaturesFile;
use crate::hook::{Hook, Hooks};
use crate::http::{Access, HttpError, Server, Tls};
use crate::identity::Identity;
use crate::label::Label;
use crate::published::Published;
use crate::readings::{of_agent, of_database, of_node};
use crate::store::{Seen, Store};
use crate::trials::Trials;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use untax_core::{Check, Database, Window};
use untax_engines::pod_names;
use untax_host::{Host, process};
use untax_pipeline::{Event, Observed, PageCosts, PipelineError, Step, stream};

/// How an agent looks, and to whom it tells.
#[derive(Debug, Clone)]
pub struct Options {
    /// What to look at.
    pub pipeline: untax_pipeline::Options,
    /// The name of this node in every series.
    pub node: String,
    /// More labels of every series.
    pub labels: Vec<Label>,
    /// The token that readers need.
    pub access: Access,
    /// The agent's version.
    pub version: &'static str,
    /// Where the features of the node are written for Node Feature Discovery.
    pub features_file: Option<PathBuf>,
    /// The command to run when a database's memory runs out.
    pub hook: Option<Hook>,
}

/// For how long nothing is tried after a host could not be read.
const PAUSE: Duration = Duration::from_secs(10);

/// How often it is looked meanwhile whether the agent should end.
const GLANCE: Duration = Duration::from_millis(100);

/// An agent is stuck when no window ended for so many times its length, and this long beside it: servers are
/// asked at its end, some of which answer late.
const WINDOWS_UNTIL_STUCK: u32 = 3;
const GRACE: Duration = Duration::from_secs(60);

/// Watches until `step` ends it, and tells what was seen; `keep` gets each window with its check and the stable names
/// of its databases, and `say` hears of what a person should know. Fails only where the server cannot start.
pub fn run(
    options: &Options,
    server: Server,
    costs: &dyn PageCosts,
    mut step: impl FnMut(Duration) -> Step,
    mut keep: impl FnMut(&Window, &Check, &[String]),
    say: impl Fn(&str),
) -> Result<(), HttpError> {
    let mut agent = Agent::new(options);
    let patience = options.pipeline.window * WINDOWS_UNTIL_STUCK + GRACE;
    let (tls, mut trouble) = (server.tls().cloned(), None);
    server.start(Arc::clone(&agent.published), options.access.clone(), patience)?;
    loop {
        let ended = stream(options.pipeline.clone(), costs, &mut step, |event| {
            agent.hear(event, &mut keep, &say);
            say_trouble(tls.as_ref(), &mut trouble, &say);
            Ok::<_, PipelineError>(true)
        });
        let Err(error) = ended else { return Ok(()) };
        say(&format!("the host cannot be watched: {error}; tried again in 10 s"));
        agent.store.skipped(false);
        agent.publish(None, false);
        if !pauses(&mut step) {
            return Ok(());
        }
    }
}

/// Says once why the files of a certificate are not used as they are now.
fn say_trouble(tls: Option<&Tls>, said: &mut Option<String>, say: &impl Fn(&str)) {
    let now = tls.and_then(Tls::trouble);
    if now != *said
        && let Some(why) = &now
    {
        say(&format!("the certificate is not read again, and the one before is used: {why}"));
    }
    *said = now;
}

/// Why there is nothing to tell of one window.
#[derive(Debug, thiserror::Error)]
pub enum OnceError {
    /// The host cannot be watched.
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
    /// The window was not checked.
    #[error("{0}")]
    Check(String),
    /// `step` ended it.
    #[error("ended before the window did")]
    Ended,
}

/// Watches one window, and gives its metrics as text. Databases of any age are told.
pub fn once(
    options: &Options,
    costs: &dyn PageCosts,
    step: impl FnMut(Duration) -> Step,
) -> Result<String, OnceError> {
    let mut agent = Agent::new(options);
    agent.store = Store::new(options.version).of_any_age();
    let mut checked = false;
    stream(options.pipeline.clone(), costs, step, |event| match event {
        Event::Opened(_) => Ok::<_, OnceError>(true),
        Event::Window(observed) => {
            let taken = agent.take(&observed, &Host::live(), &mut |_, _, _| {}, &|_| {});
            taken.map_err(OnceError::Check)?;
            checked = true;
            Ok(false)
        }
        Event::Gap(why) => Err(why.into()),
    })?;
    if !checked {
        return Err(OnceError::Ended);
    }
    Ok(exposition::text(agent.store, &agent.labels).0)
}

/// Waits a little; false if the agent is to end.
fn pauses(step: &mut impl FnMut(Duration) -> Step) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < PAUSE {
        if matches!(step(begun.elapsed()), Step::End) {
            return false;
        }
        std::thread::sleep(GLANCE);
    }
    true
}

struct Agent {
    node: String,
    /// Of every series.
    labels: Vec<Label>,
    store: Store,
    published: Arc<Published>,
    trials: Trials,
    episodes: Episodes,
    hooks: Hooks,
    features_file: Option<FeaturesFile>,
}

impl Agent {
    fn new(options: &Options) -> Self {
        let mut labels = vec![Label::of_node(&options.node)];
        labels.extend(options.labels.iter().cloned());
        let (text, store) = exposition::text(Store::new(options.version), &labels);
        let published = Arc::new(Published::new(text));
        Self {
            node: options.node.clone(),
            labels,
            store,
            published,
            trials: Trials::default(),
            episodes: Episodes::default(),
            hooks: Hooks::new(options.hook.clone()),
            features_file: options.features_file.clone().map(FeaturesFile),
        }
    }

    fn hear(
        &mut self,
        event: Event,
        keep: &mut impl FnMut(&Window, &Check, &[String]),
        say: &impl Fn(&str),
    ) {
        let told = match event {
            Event::Opened(_) => Ok(None),
            Event::Window(observed) => self.take(&observed, &Host::live(), keep, say).map(Some),
            Event::Gap(why) => Err(why.to_string()),
        };
        match told {
            Ok(last) => self.publish(last, true),
            Err(why) => {
                say(&format!("a window is skipped: {why}"));
                self.store.skipped(true);
                self.publish(None, true);
            }
        }
    }

    /// Takes a window in, and gives its check as JSON. A rule that panics costs this window and no other.
    fn take(
        &mut self,
        observed: &Observed,
        host: &Host,
        keep: &mut impl FnMut(&Window, &Check, &[String]),
        say: &impl Fn(&str),
    ) -> Result<String, String> {
        let window = &observed.window;
        let run = window.end.taken_at.strftime("agent-%Y%m%dT%H%M%SZ").to_string();
        let checked = catch_unwind(AssertUnwindSafe(|| observed.check(run)));
        let check = checked.map_err(|_| "its check panicked; send untax capture".to_owned())?;
        let identities = identities(&window.end.databases, host);
        self.warn(&check, &identities, say);
        if let Some(Err(why)) = self.features_file.as_ref().map(|file| file.write(&check)) {
            say(&format!("the features of the node are not written: {why}"));
        }
        keep(window, &check, &names_of(&identities));
        let beside = self.trials.beside(host, window);
        let seen = seen(window, &check, &identities, host, !beside.is_empty());
        self.store.window(of_node(window, &check), of_agent(&check, &beside), seen);
        last(&check, &identities, &self.node, &beside)
    }

    /// Says, and runs the hook, where a database's memory begins to run out.
    fn warn(&mut self, check: &Check, identities: &[Identity], say: &impl Fn(&str)) {
        self.hooks.say_ended(say);
        let names = identities.iter().map(|identity| identity.database.as_str());
        for alarm in self.episodes.window(names.zip(&check.databases), Instant::now()) {
            if alarm.is_event {
                let left = alarm.seconds_left.map(|seconds| format!(", {seconds:.0} s are left"));
                say(&format!("{}: {}{}", alarm.database, alarm.summary, left.unwrap_or_default()));
            }
            self.hooks.start(&alarm, say);
        }
    }

    fn publish(&mut self, last: Option<String>, is_ready: bool) {
        let (text, store) = exposition::text(std::mem::take(&mut self.store), &self.labels);
        self.store = store;
        self.published.set(text, last, is_ready);
    }
}

/// The stable names of the databases of a snapshot, in its order: those that metrics have.
pub fn names(databases: &[Database], host: &Host) -> Vec<String> {
    names_of(&identities(databases, host))
}

fn names_of(identities: &[Identity]) -> Vec<String> {
    identities.iter().map(|identity| identity.database.clone()).collect()
}

/// The identity of each database of a snapshot, in its order.
fn identities(databases: &[Database], host: &Host) -> Vec<Identity> {
    let of = |database: &Database| Identity::of(database, pod_names(host, database));
    databases.iter().map(of).collect()
}

/// The databases of a window with their samples.
fn seen(
    window: &Window,
    check: &Check,
    identities: &[Identity],
    host: &Host,
    is_beside_trial: bool,
) -> Vec<Seen> {
    let ticks_per_s = process::ticks_per_second(host).into_value();
    let age_s = |database: &Database| {
        let started_s = *database.started_ticks.value()? as f64 / ticks_per_s? as f64;
        Some(window.end.uptime_s - started_s)
    };
    let all = window.databases().zip(&check.databases).zip(identities);
    let one = |((pair, checked), identity): ((_, _), &Identity)| {
        let pair: untax_core::window::Pair = pair;
        let samples = of_database(&pair, checked, &check.io, is_beside_trial);
        Seen { identity: identity.clone(), age_s: age_s(pair.end), samples }
    };
    all.map(one).collect()
}

/// The check as JSON, with the names that metrics use and the trials beside its window.
fn last(
    check: &Check,
    identities: &[Identity],
    node: &str,
    beside: &BTreeSet<String>,
) -> Result<String, String> {
    let mut value = serde_json::to_value(check).map_err(|error| error.to_string())?;
    value["node"] = json!(node);
    if !beside.is_empty() {
        value["beside_trials"] = json!(beside);
    }
    let databases = value["databases"].as_array_mut().map_or(&mut [][..], Vec::as_mut_slice);
    for (database, identity) in databases.iter_mut().zip(identities) {
        database["name"] = Value::from(identity.database.as_str());
    }
    Ok(value.to_string())
}
