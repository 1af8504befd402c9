//! `untax explain`.

use crate::nearest::did_you_mean;
use crate::screen::{print, print_json};
use crate::{Outcome, Usage};
use serde::Serialize;
use untax_core::Scope;
use untax_report::terminal::wrap;
use untax_rules::{RULES, Rule, find};

/// Arguments of `untax explain`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  untax explain small-pages")]
pub struct Args {
    /// The rule's id; without one, all rules are listed
    #[arg(value_name = "RULE")]
    rule: Option<String>,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

/// A rule as JSON.
#[derive(Serialize)]
struct Explained {
    rule: &'static str,
    summary: &'static str,
    what: &'static str,
    method: &'static str,
    measured: &'static str,
    fix: &'static str,
    scope: Scope,
    privilege: &'static str,
    minimum_kernel: &'static str,
    cost: &'static str,
    sources: &'static [&'static str],
}

impl From<&Rule> for Explained {
    fn from(rule: &Rule) -> Self {
        Self {
            rule: rule.id,
            summary: rule.summary,
            what: rule.what,
            method: rule.method,
            measured: rule.measured,
            fix: rule.fix,
            scope: rule.scope,
            privilege: rule.privilege,
            minimum_kernel: rule.minimum_kernel,
            cost: rule.cost,
            sources: rule.sources,
        }
    }
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    match &args.rule {
        Some(id) => {
            let Some(rule) = find(id) else {
                let ids: Vec<&str> = RULES.iter().map(|rule| rule.id).collect();
                let message = format!(
                    "there is no rule {id}{}. Rules: {}",
                    did_you_mean(id, ids.iter().copied()),
                    ids.join(", ")
                );
                return Err(Usage(message).into());
            };
            if args.json { print_json(&Explained::from(rule))? } else { print(&page(rule))? }
        }
        None if args.json => {
            print_json(&RULES.iter().map(Explained::from).collect::<Vec<_>>())?;
        }
        None => print(&list())?,
    }
    Ok(Outcome::Clean)
}

fn list() -> String {
    RULES.iter().map(|rule| format!("{:<18} {}\n", rule.id, rule.summary)).collect()
}

/// All that is to be said of a rule.
pub fn page(rule: &Rule) -> String {
    let needs = format!(
        "privilege: {}; kernel: {}; cost: {}; scope: {}",
        rule.privilege,
        rule.minimum_kernel,
        rule.cost,
        rule.scope.name()
    );
    let sections = [
        ("How to fix it", rule.fix),
        ("What it is", rule.what),
        ("How it is measured", rule.method),
        ("In detail", rule.measured),
        ("What it needs", needs.as_str()),
    ];
    let mut page = format!("{}: {}\n", rule.id, rule.summary);
    for (title, text) in sections {
        page += &format!("\n{title}\n");
        for line in wrap(text, 78, usize::MAX) {
            page += &format!("  {line}\n");
        }
    }
    page += "\nSources\n";
    for source in rule.sources {
        page += &format!("  {source}\n");
    }
    page
}
