//! What trials of a plan are about, for whoever reads the result without having made it.

use super::Args;
use std::collections::BTreeSet;
use untax_core::Plan;
use untax_core::verdict::About;
use untax_host::{Host, command_line};

/// What is tried, and on what.
pub fn of(args: &Args, plan: &Plan) -> About {
    let of_tasks = plan.tasks.iter().flat_map(|task| &task.databases);
    let databases: BTreeSet<&String> =
        plan.steps.iter().flat_map(|step| &step.databases).chain(of_tasks).collect();
    let load = match (&args.workload, args.passive) {
        (Some(command), _) => command_line::without_secrets(command),
        (None, Some(length)) => format!("the traffic that was there, {length:?} each trial"),
        (None, None) => String::new(),
    };
    let facts = untax_host::facts::read_all(&Host::live());
    About {
        host: facts.hostname.into_value().unwrap_or_default(),
        databases: databases.into_iter().cloned().collect(),
        steps: plan.steps.iter().map(|step| step.summary.clone()).collect(),
        load,
    }
}
