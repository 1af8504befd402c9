//! `untax lab list`.

use crate::Outcome;
use crate::screen::{print, print_json};
use serde::Serialize;
use std::collections::BTreeMap;
use untax_lab::{CAUSES, Cause, Dose};
use untax_scenes::Release;

/// Arguments of `untax lab list`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  untax lab list")]
pub struct Args {
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

/// A cause as JSON.
#[derive(Serialize)]
struct Listed {
    cause: &'static str,
    summary: &'static str,
    /// The same of its mild dose; null when it has one alone.
    mild: Option<&'static str>,
    engines: Vec<&'static str>,
    /// Why not the others, by their ids.
    left_out: BTreeMap<&'static str, &'static str>,
    /// Why this machine cannot do it; null if it can.
    impossible: Option<String>,
}

impl From<&'static Cause> for Listed {
    fn from(cause: &'static Cause) -> Self {
        Self {
            cause: cause.id,
            summary: cause.summary,
            mild: cause.mild,
            engines: cause.engines.iter().map(|engine| engine.id()).collect(),
            left_out: cause.left_out.iter().map(|(engine, why)| (engine.id(), *why)).collect(),
            impossible: cause.impossible(Release::installed(cause.engines[0]), Dose::Strong),
        }
    }
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let listed: Vec<Listed> = CAUSES.iter().map(Listed::from).collect();
    if args.json {
        print_json(&listed)?;
    } else {
        print(&listed.iter().map(line).collect::<String>())?;
    }
    Ok(Outcome::Clean)
}

fn line(listed: &Listed) -> String {
    let Listed { cause, summary, mild, engines, left_out, impossible } = listed;
    let mild = mild.map_or(String::new(), |mild| format!("; mild: {mild}"));
    let first = match impossible {
        Some(why) => format!("{cause:<26} not here: {why}\n"),
        None => format!("{cause:<26} {summary}{mild} ({})\n", engines.join(", ")),
    };
    let others = left_out.iter().map(|(engine, why)| format!("{:<26} not {engine}: {why}\n", ""));
    first + &others.collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engines_that_are_left_out_say_why() {
        let text = line(&Cause::find("page-table-bloat").unwrap().into());
        assert!(
            text.contains("\n                           not mysql: MariaDB does not"),
            "{text}"
        );
        assert!(text.contains("\n                           not redis: Redis does not"), "{text}");
        assert_eq!(line(&Cause::find("none").unwrap().into()).lines().count(), 1);
    }
}
