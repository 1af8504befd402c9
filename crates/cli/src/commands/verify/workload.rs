//! What a trial of `untax verify` runs, and what it achieved.

use super::args::Args;
use super::passive::Passive;
use super::shell::shell;
use crate::screen::say;
use anyhow::{Context, bail};
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use untax_core::{Bytes, Database, Plan};
use untax_remedies::rate::{Rate, rate};
use untax_remedies::workloads::{Commands, Load, Workload};

/// Data of a workload that makes its own: more than caches hold, made within seconds.
const DATA: Bytes = Bytes::from_mib(256);

/// What the trials of one verification measure.
pub enum Measured {
    /// Commands of a shell: without the plan, and what is run instead with it.
    Commands { commands: Commands, with: String },
    /// What the databases of the plan serve anyway.
    Passive(Passive),
}

impl Measured {
    /// What the arguments ask for.
    pub fn choose(args: &Args, plan: &Plan) -> anyhow::Result<Self> {
        if let Some(time) = args.passive {
            return Ok(Self::Passive(Passive::choose(plan, time)?));
        }
        let command = args.workload.clone().unwrap_or_default();
        let commands = match Workload::find(&command) {
            Some(known) => known_commands(known, args, plan)?,
            None => Commands { run: command, ..Commands::default() },
        };
        let with = args.workload_applied.clone().unwrap_or_else(|| commands.run.clone());
        Ok(Self::Commands { commands, with })
    }

    /// Makes what a workload needs, if that is something.
    pub fn prepare(&self) -> anyhow::Result<()> {
        match self {
            Self::Commands { commands: Commands { prepare, .. }, .. } if !prepare.is_empty() => {
                say("preparing the workload");
                shell(prepare).map(drop).context("the workload was not prepared")
            }
            _ => Ok(()),
        }
    }

    /// What one trial achieves.
    pub fn rate(&self, applied: bool, stop: &AtomicBool) -> anyhow::Result<Rate> {
        let command = match self {
            Self::Passive(passive) => return passive.rate(stop),
            Self::Commands { with, .. } if applied => with,
            Self::Commands { commands, .. } => &commands.run,
        };
        let began = Instant::now();
        let output = shell(command)?;
        rate(&output, began.elapsed().as_secs_f64())
            .context("the workload achieved nothing that could be compared")
    }

    /// What takes away what was made; empty if that is nothing.
    pub fn clean_command(&self) -> &str {
        match self {
            Self::Commands { commands, .. } => &commands.clean,
            Self::Passive(_) => "",
        }
    }

    /// Takes away what was made.
    pub fn clean(&self) -> anyhow::Result<()> {
        match self.clean_command() {
            "" => Ok(()),
            clean => shell(clean).map(drop).context("what the workload made is still there"),
        }
    }
}

/// The commands of a workload for the one database of the plan that it is for.
fn known_commands(known: &Workload, args: &Args, plan: &Plan) -> anyhow::Result<Commands> {
    let look = untax_pipeline::take()?;
    let of_engine = || look.databases.iter().filter(|database| database.engine == known.engine);
    let of_plan = |database: &&Database| {
        let steps = plan.steps.iter().flat_map(|step| &step.databases);
        let mut concerned = steps.chain(plan.tasks.iter().flat_map(|task| &task.databases));
        concerned.any(|id| *id == database.id)
    };
    let mut candidates: Vec<&Database> = of_engine().filter(of_plan).collect();
    if candidates.is_empty() {
        candidates = of_engine().collect();
    }
    let [database] = candidates[..] else {
        bail!(
            "{} needs one database of {}, and this host has {}; give --workload a whole command",
            known.id,
            known.engine,
            candidates.len()
        );
    };
    if database.container.is_some() {
        bail!(
            "{} runs in a container, whose socket {} cannot reach; give --workload a whole \
             command, such as docker exec",
            database.id,
            known.id
        );
    }
    let cpus = look.host.cpu.value().map_or(1, |cpu| cpu.logical);
    let uid = database.uid.value().copied();
    let load = Load {
        clients: args.clients.unwrap_or(if wakes_cpus(plan) { 1 } else { cpus * EACH_CPU }),
        seconds: u32::try_from(args.trial.as_secs()).unwrap_or(u32::MAX).max(1),
        data: DATA,
        become_uid: uid.filter(|_| rustix::process::geteuid().is_root()),
    };
    Ok((known.commands)(database, &load))
}

/// Whether a plan is about CPUs that sleep between the requests of few clients: many keep them awake.
fn wakes_cpus(plan: &Plan) -> bool {
    let awake = untax_remedies::KEEP_CPUS_AWAKE;
    !plan.steps.is_empty() && plan.steps.iter().all(|step| awake.contains(&step.remedy.as_str()))
}

/// Connections for each CPU that keep all of them busy while some wait.
const EACH_CPU: u32 = 4;
