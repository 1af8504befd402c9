//! `untax fleet`.

use crate::asking::Asking;
use crate::duration::duration;
use crate::screen::{print, print_json, write_file};
use crate::{Outcome, Usage};
use anyhow::Context;
use std::path::{Path, PathBuf};
use std::time::Duration;
use untax_fleet::{Copied, Rows, Ssh, agents, hosts, hosts_of, page, prometheus, rank, terminal};
use untax_pipeline::WINDOW_LENGTHS;
use untax_report::format::clean;

/// Arguments of `untax fleet`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 every node answered, with or without losses; 1 nodes are silent; \
                  2 failed; 3 bad usage.\n\n\
                  Examples:\n  untax fleet --prometheus http://127.0.0.1:9090\n  \
                  untax fleet --agents db-1:9871,db-2:9871 --html fleet.html\n  \
                  untax fleet --agents https://db-1:9871 --ca ca.crt\n  \
                  untax fleet --hosts hosts.txt --copy     hosts without untax"
)]
pub struct Args {
    /// Ask this Prometheus, or a store with its API, that scrapes the agents
    #[arg(long, value_name = "URL", group = "source", required_unless_present_any = ["agents", "hosts"])]
    prometheus: Option<String>,
    /// Ask these agents themselves; rates count from the start of each agent. https://HOST:PORT
    /// asks by TLS
    #[arg(long, value_name = "HOST:PORT,…", value_delimiter = ',', group = "source")]
    agents: Vec<String>,
    /// Run untax for one window on each host of this file over ssh, 64 hosts at once. Each line is
    /// HOST or USER@HOST. Only hosts whose keys are known are asked, and nobody is asked for a
    /// password
    #[arg(long, value_name = "FILE", group = "source")]
    hosts: Option<PathBuf>,
    /// How long each host is watched
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = window, requires = "hosts")]
    window: Duration,
    /// Copy this program to a new directory below /tmp on each host, verify it, run it and remove
    /// it, instead of running the host's own
    #[arg(long, requires = "hosts")]
    copy: bool,
    /// Run it by sudo -n: without root it sees little
    #[arg(long, requires = "hosts")]
    sudo: bool,
    /// The configuration file of ssh [default: the user's own]
    #[arg(long, value_name = "FILE", requires = "hosts")]
    ssh_config: Option<PathBuf>,
    #[command(flatten)]
    asking: Asking,
    /// Average rates over this period (only with --prometheus). The recording rules of Prometheus
    /// keep one hour
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = range)]
    since: Duration,
    /// Show the N databases that lose the most time
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

fn window(text: &str) -> Result<Duration, String> {
    let length = duration(text)?;
    if WINDOW_LENGTHS.contains(&length) {
        Ok(length)
    } else {
        Err("a window is 500ms to 24h long".to_owned())
    }
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let client = args.asking.client()?;
    let most = args.top as usize;
    let rows = match (&args.prometheus, &args.hosts) {
        (Some(url), _) => prometheus(url, &client, args.since.as_secs(), most)?,
        (None, Some(file)) => {
            args.asking.is_for("--prometheus or --agents")?;
            by_ssh(file, args)?
        }
        (None, None) => agents(&args.agents, &client)?,
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

#[expect(clippy::disallowed_methods, reason = "a file of the user's, not of the host")]
fn by_ssh(file: &Path, args: &Args) -> anyhow::Result<Rows> {
    let name = || file.display().to_string();
    let list = std::fs::read_to_string(file)
        .with_context(|| format!("cannot read the list of hosts {}", name()))?;
    let list = hosts_of(&list).map_err(|why| Usage(format!("{}: {why}", name())))?;
    let copied = || Copied::of(Path::new("/proc/self/exe")).context("cannot read this program");
    let ssh = Ssh {
        window: args.window,
        configuration: args.ssh_config.clone(),
        sudo: args.sudo,
        copy: args.copy.then(copied).transpose()?,
    };
    Ok(hosts(&list, &ssh)?)
}
