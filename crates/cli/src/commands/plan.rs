//! `untax plan`.

use super::check::{self, Saved};
use super::node_classes;
use crate::screen::{print, print_json, say, style};
use crate::state::State;
use crate::{Outcome, Usage};
use anyhow::Context;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use untax_core::{Check, Plan};
use untax_remedies::{Wish, is_significant};
use untax_report::terminal;

/// Arguments of `untax plan`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  untax plan                          from the last check\n  \
                        untax plan --only small-pages -o fix   for one cause, with files in fix/\n  \
                        untax plan --from check-20260101T101500000Z --json\n  \
                        untax plan --from host.tar.gz       for the host of a capture\n  \
                        untax plan --node-classes --from node-1.tar.gz --from node-2.tar.gz\n  \
                        untax apply fix                        when you have read it")]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct Args {
    /// The check: a saved run, its file, or a capture [default: the last check]. With --node-classes one of each
    /// node
    #[arg(long, value_name = "RUN|FILE|CAPTURE")]
    from: Vec<String>,
    /// Group the nodes of a cluster by the needs of their databases. Write pools, labels and
    /// taints, and the requests of each database. A node has the name of its file
    #[arg(long, conflicts_with_all = ["only", "configure"])]
    node_classes: bool,
    /// Only for findings of these rules
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    only: Vec<String>,
    /// Also plan for findings of severity info, and for findings without a visible gain
    #[arg(long)]
    include_info: bool,
    /// Write plan.json and the files to hand over here
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// The size of huge page to plan for, such as 2m or 1g, or thp: transparent ones instead of a pool
    /// [default: the advised size]
    #[arg(long, value_name = "SIZE")]
    page: Option<String>,
    /// Change the configuration files of databases too, instead of writing what to add
    #[arg(long)]
    configure: bool,
    /// Print the plan as JSON
    #[arg(long)]
    json: bool,
}

/// The name of the plan in a directory of its own.
const FILE: &str = "plan.json";

/// Runs the command.
pub fn run(args: &Args, state: &State) -> anyhow::Result<Outcome> {
    if args.node_classes {
        return node_classes::run(
            &args.from,
            args.page.as_deref(),
            args.output.as_deref(),
            args.json,
            state,
        );
    }
    let from = match &args.from[..] {
        [] => "@last",
        [one] => one,
        _ => {
            return Err(
                Usage("several --from are for --node-classes; name one check".to_owned()).into()
            );
        }
    };
    let Saved { check, window } = check::load(from, state)?;
    let (only, page) = (args.only.clone(), args.page.clone());
    let alternatives = super::advise::measured(&check, &window, state);
    let significant_only = !args.include_info && only.is_empty();
    let wish = Wish { only, significant_only, configure: args.configure, page, alternatives };
    let id = State::new_run("plan");
    let plan = untax_remedies::plan(id.clone(), &check, &window.end, &wish)?;
    state.save_run(&id, &plan)?;
    if let Some(folder) = &args.output {
        hand_over(&plan, folder)?;
    }
    if args.json {
        print_json(&plan)?;
    } else {
        print(&terminal::plan(&plan, style()))?;
        if significant_only {
            say_left_out(&check);
        }
        if args.output.is_none() && plan.tasks.iter().any(|task| task.file.is_some()) {
            say("untax plan -o DIR   writes the files in brackets");
        }
        if !plan.steps.is_empty() {
            say(&format!(
                "untax apply {id} --dry-run   whether it can be applied\nuntax apply {id}"
            ));
        }
    }
    Ok(Outcome::Clean)
}

/// Says which findings nothing was planned for, if any.
fn say_left_out(check: &Check) {
    let of_databases = check.databases.iter().flat_map(|database| &database.findings);
    let all = of_databases.chain(&check.findings);
    let left_out = all.filter(|finding| !is_significant(finding));
    let rules: BTreeSet<&str> = left_out.map(|finding| finding.rule.as_str()).collect();
    if !rules.is_empty() {
        let rules = rules.into_iter().collect::<Vec<_>>().join(", ");
        say(&format!(
            "left out, because they are only informational: {rules}. --include-info plans for \
             them"
        ));
    }
}

/// Writes the plan and the files of its tasks.
fn hand_over(plan: &Plan, folder: &Path) -> anyhow::Result<()> {
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    write(FILE, &serde_json::to_string_pretty(plan)?)?;
    write("plan.txt", &terminal::plan(plan, terminal::Style::default()))?;
    for (name, text) in plan.tasks.iter().filter_map(|task| task.file.as_ref()) {
        write(name, text)?;
    }
    say(&format!("plan: {}", folder.join(FILE).display()));
    Ok(())
}

/// Reads a plan by its run id, its file, or the directory that it was written to.
pub fn load(plan: &str, state: &State) -> anyhow::Result<Plan> {
    let within = Path::new(plan).join(FILE);
    if within.is_file() {
        return state.load_run(&within.to_string_lossy(), None);
    }
    state.load_run(plan, Some("plan"))
}
