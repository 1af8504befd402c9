//! `untax timeline`.

use crate::asking::Asking;
use crate::duration::duration;
use crate::recording::of_agent;
use crate::screen::{print, print_json, say, style, write_file};
use crate::state::State;
use crate::{Outcome, Usage};
use anyhow::{Context, bail};
use std::path::PathBuf;
use std::time::Duration;
use untax_core::timeline::Timeline;
use untax_report::{html, terminal, timeline_figure};
use untax_timeline::{History, prometheus, read, timeline};

/// Arguments of `untax timeline`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit codes: 0 done, with or without changes; 2 failed; 3 bad usage.\n\n\
                  Examples:\n  untax watch --record day.untax         record, until interrupted\n  \
                  untax timeline day.untax               why throughput changed meanwhile\n  \
                  untax timeline --since 2h              what the agent of this host recorded\n  \
                  untax timeline --prometheus http://127.0.0.1:9090 --database postgres@5432 --html why.html")]
pub struct Args {
    /// The recording [default: that of untax agent --record on this host]
    #[arg(value_name = "FILE", conflicts_with = "prometheus")]
    file: Option<PathBuf>,
    /// Ask this Prometheus, or a store with its API, that scrapes the agents
    #[arg(long, value_name = "URL")]
    prometheus: Option<String>,
    #[command(flatten)]
    asking: Asking,
    /// Only this database, by its stable name, such as postgres@5432
    #[arg(long, value_name = "NAME")]
    database: Option<String>,
    /// Only the windows of this time before the last one: 2h, 30m [default: all of a recording, 6h of Prometheus]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    since: Option<Duration>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Also write the result as a self-contained web page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Also write the figure of the database whose throughput changed most
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// For how long Prometheus is asked by default.
const OF_PROMETHEUS: Duration = Duration::from_secs(6 * 3600);

/// Runs the command.
pub fn run(args: &Args, state: &State) -> anyhow::Result<Outcome> {
    let (mut history, source) = history(args, state)?;
    if let Some(name) = &args.database {
        choose(&mut history, name)?;
    }
    let result = timeline(&history, &source);
    if let Some(path) = &args.html {
        write_file(path, &html::timeline(&result))?;
    }
    if let Some(path) = &args.svg {
        write_file(path, &figure(&result)?)?;
    }
    if args.json {
        print_json(&result)?;
    } else {
        print(&terminal::timeline(&result, style()))?;
    }
    Ok(Outcome::Clean)
}

fn history(args: &Args, state: &State) -> anyhow::Result<(History, String)> {
    if let Some(url) = &args.prometheus {
        let client = args.asking.client()?;
        let since = args.since.unwrap_or(OF_PROMETHEUS);
        let database = args.database.as_deref();
        let history = prometheus(url, &client, database, since.as_secs_f64())?;
        return Ok((history, url.clone()));
    }
    args.asking.is_for("--prometheus")?;
    let path = args.file.clone().map_or_else(|| recorded_by_agent(state), Ok)?;
    let mut history = read(&path)?;
    if let Some(since) = args.since {
        history = history.last(since.as_secs_f64());
    }
    Ok((history, path.display().to_string()))
}

/// What the agent of this host recorded.
fn recorded_by_agent(state: &State) -> anyhow::Result<PathBuf> {
    let path = of_agent(state)?;
    if !path.exists() {
        bail!(
            "no recording: {} is not there; untax agent --record writes it, and untax watch --record FILE another",
            path.display()
        );
    }
    Ok(path)
}

/// Leaves one database.
fn choose(history: &mut History, name: &str) -> anyhow::Result<()> {
    if !history.names().contains(&name) {
        let names = history.names().join(", ");
        let names = if names.is_empty() { "none".to_owned() } else { names };
        return Err(Usage(format!("no database {name}; there are: {names}")).into());
    }
    history.retain(|other| other == name);
    Ok(())
}

fn figure(result: &Timeline) -> anyhow::Result<String> {
    let database = result.databases.first().context("there is no database to draw")?;
    if result.databases.len() > 1 {
        say(&format!("untax: the figure is of {}; --database NAME chooses another", database.name));
    }
    Ok(timeline_figure::file(database))
}
