//! `untax fleet`.

use crate::duration::duration;
use crate::screen::{print, print_json, write_file};
use crate::{Outcome, Usage};
use std::path::PathBuf;
use std::time::Duration;
use untax_agent::read_token;
use untax_fleet::{agents, page, prometheus, rank, terminal};
use untax_report::format::clean;

/// Arguments of `untax fleet`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 every node answered, whatever it loses; 1 nodes are silent; 2 could not do it; 3 bad usage.\n\n\
                  Examples:\n  untax fleet --prometheus http://127.0.0.1:9090\n  \
                  untax fleet --agents 10.0.1.11:9871,10.0.1.12:9871 --html fleet.html"
)]
pub struct Args {
    /// Ask this Prometheus, or a store with its API, that scrapes the agents
    #[arg(long, value_name = "URL", group = "source", required_unless_present = "agents")]
    prometheus: Option<String>,
    /// Ask these agents themselves; rates are since each was started
    #[arg(long, value_name = "HOST:PORT,…", value_delimiter = ',', group = "source")]
    agents: Vec<String>,
    /// The file with the bearer token of Prometheus or of the agents
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Average rates over this period (only with --prometheus). Its recording rules keep one hour
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = range)]
    since: Duration,
    /// Show at most so many databases, those that lose most
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    top: u32,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Also write the result as a self-contained web page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Shorter than a few windows of an agent says nothing of a rate.
const SHORTEST: Duration = Duration::from_secs(10);

fn range(text: &str) -> Result<Duration, String> {
    let range = duration(text)?;
    if range >= SHORTEST { Ok(range) } else { Err("a rate is over 10s or more".to_owned()) }
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let token = args.token_file.as_deref().map(read_token).transpose().map_err(Usage)?;
    let token = token.as_deref();
    let most = args.top as usize;
    let rows = match &args.prometheus {
        Some(url) => prometheus(url, token, args.since.as_secs(), most)?,
        None => agents(&args.agents, token)?,
    };
    let fleet = rank(&rows, most);
    if let Some(path) = &args.html {
        write_file(path, &page(&fleet))?;
    }
    if args.json {
        print_json(&fleet)?;
    } else {
        let text = terminal(&fleet);
        print(&text.lines().map(|line| format!("{}\n", clean(line))).collect::<String>())?;
    }
    Ok(if fleet.silent.is_empty() { Outcome::Clean } else { Outcome::Findings })
}
