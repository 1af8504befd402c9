//! `untax agent`.

use super::last;
use crate::duration::duration;
use crate::page_costs::StatePageCosts;
use crate::recording::{LIMITS, Recording, of_agent};
use crate::screen::{print, say, style};
use crate::state::State;
use crate::{Outcome, Usage};
use anyhow::{Context, bail};
use serde_json::Value;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use untax_agent::{Access, Bounds, Client, Hook, Label, Options, Server, Tls, read_token};
use untax_core::{Check, Window};
use untax_host::Host;
use untax_pipeline::{Calibrating, Step, Target, WINDOW_LENGTHS};
use untax_report::format::{clean, clean_json};
use untax_report::terminal;
use untax_trials::Interrupt;

/// Where an agent listens, and is asked, by default.
const ADDRESS: &str = "127.0.0.1:9871";

/// For how long `agent last` waits for an answer.
const BOUNDS: Bounds = Bounds::within(Duration::from_secs(10));

/// Where the chart puts the token of the agent in its pod.
const TOKEN_OF_POD: &str = "/etc/untax/token";

/// Arguments of `untax agent`.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "The agent answers GET /metrics, /healthz, /readyz and /last, which holds the \
                  last check. The file docs/metrics.md lists the metrics.\n\n\
                  Exit codes: 0 ended by a signal; 2 failed; 3 bad usage.\n\n\
                  Examples:\n  untax agent                        for a Prometheus on this host\n  \
                  untax agent --listen [::]:9871 --token-file /etc/untax/token\n                                     \
                  for one elsewhere\n  \
                  untax agent last                   the last check of the agent on this host\n  \
                  untax agent last --text --pod db/pg-0\n  \
                  untax agent --record               keep what untax timeline explains"
)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// How long each window is
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = window)]
    window: Duration,
    /// The address to listen on; port 0 picks a free port
    #[arg(long, value_name = "ADDR:PORT", default_value = ADDRESS)]
    listen: SocketAddr,
    /// Require from every scraper the bearer token in the first line of this file
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Speak TLS by the certificate in this PEM file, with those of intermediate CAs after it. It is read again
    /// when it changes. From this host itself the agent is asked without TLS, too
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The certificate's key, a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Put this label on every series, such as cluster=eu-1; may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = Label::parse)]
    label: Vec<Label>,
    /// The name of this node in every series [default: the host's name]
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    /// Measure the cost of page faults and page walks if no calibration is saved: some 3 s of CPU
    /// time and several hundred MiB, once
    #[arg(long)]
    calibrate: bool,
    /// Watch one window, print its metrics and end: for untax fleet --hosts, or a collector of text files
    #[arg(long, conflicts_with_all = ["listen", "token_file", "tls_cert"])]
    once: bool,
    /// Write facts of the node here for Node Feature Discovery, which makes labels of them: page pools and
    /// transparent huge pages
    #[arg(long, value_name = "FILE", conflicts_with = "once")]
    features_file: Option<PathBuf>,
    /// Run this program once when a database's memory begins to run out. The arguments are the
    /// database's name and the seconds that are left. Only for an agent that is a systemd unit
    #[arg(long, value_name = "PROGRAM", requires = "oom_hook_user", conflicts_with = "once")]
    oom_hook: Option<PathBuf>,
    /// The user that runs it; not root
    #[arg(long, value_name = "USER", requires = "oom_hook")]
    oom_hook_user: Option<String>,
    /// Also record the windows in the state directory, for untax timeline
    #[arg(long, conflicts_with = "once")]
    record: bool,
    /// The most that the recording may take, MiB
    #[arg(long, value_name = "MIB", default_value_t = 64, requires = "record", value_parser = clap::value_parser!(u32).range(LIMITS))]
    record_limit: u32,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Print the last check of the agent that runs on this host, or in this pod, as JSON
    Last(Last),
}

/// Arguments of `untax agent last`.
#[derive(Debug, clap::Args)]
struct Last {
    /// Where the agent listens
    #[arg(long, value_name = "ADDR:PORT", default_value = ADDRESS)]
    from: SocketAddr,
    /// The file with the agent's bearer token [default in a pod: /etc/untax/token, where there is one]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Only the databases of this pod
    #[arg(long, value_name = "NAMESPACE/NAME")]
    pod: Option<String>,
    /// Print it as text
    #[arg(long)]
    text: bool,
    /// Print a line of each database: seconds lost each second, share, name, first cause, node
    #[arg(long, conflicts_with = "text")]
    top: bool,
}

/// The length of a window of an agent.
fn window(text: &str) -> Result<Duration, String> {
    let length = duration(text)?;
    if WINDOW_LENGTHS.contains(&length) {
        return Ok(length);
    }
    Err("a window is 500ms to 24h long".to_owned())
}

/// Runs the command.
pub fn run(args: &Args, state: &State) -> anyhow::Result<Outcome> {
    match &args.command {
        Some(Command::Last(args)) => last(args),
        None => watch(args, state),
    }
}

fn watch(args: &Args, state: &State) -> anyhow::Result<Outcome> {
    if let Some(why) = blind() {
        bail!("{why}");
    }
    let token = token(args.token_file.as_deref())?;
    let options = options(args, token)?;
    let costs = StatePageCosts(state);
    if args.once {
        return once(&options, &costs);
    }
    let mut server = Server::bind(args.listen)?;
    let mut scheme = "http";
    if let Some(tls) = tls(args)? {
        (server, scheme) = (server.with_tls(tls), "https");
    }
    let interrupt = signals()?;
    let address = server.address();
    say(&format!("untax: {scheme}://{address}/metrics, a window of {:?} each", args.window));
    if options.access.token.is_none() && !args.listen.ip().is_loopback() {
        say("untax: whoever reaches this address reads the metrics; --token-file asks for a token");
    }
    let step = |_| if interrupt.check().is_ok() { Step::Continue } else { Step::End };
    let note = |note: &str| say(&format!("untax: {note}"));
    let record = || Recording::open(&of_agent(state)?, args.record_limit);
    let mut recording = args.record.then(record).transpose()?;
    let keep = |window: &Window, check: &Check, names: &[String]| {
        let said = recording.as_mut().and_then(|recording| recording.add(window, check, names));
        if let Some(said) = said {
            note(&said);
        }
    };
    untax_agent::run(&options, server, &costs, step, keep, note)?;
    Ok(Outcome::Clean)
}

fn once(options: &Options, costs: &StatePageCosts) -> anyhow::Result<Outcome> {
    let interrupt = signals()?;
    let step = |_| if interrupt.check().is_ok() { Step::Continue } else { Step::End };
    let text = untax_agent::once(options, costs, step)?;
    print(&text.lines().map(|line| format!("{}\n", clean(line))).collect::<String>())?;
    Ok(Outcome::Clean)
}

fn options(args: &Args, token: Option<String>) -> anyhow::Result<Options> {
    if let Some(name) = Label::twice(&args.label) {
        return Err(Usage(format!("--label {name} is given twice")).into());
    }
    Ok(Options {
        pipeline: untax_pipeline::Options {
            target: Target::All,
            window: args.window,
            calibrating: if args.calibrate { Calibrating::Measure } else { Calibrating::Kept },
        },
        node: args.node.clone().unwrap_or_else(host_name),
        access: Access { token },
        labels: args.label.clone(),
        version: env!("CARGO_PKG_VERSION"),
        features_file: args.features_file.clone(),
        hook: hook(args)?,
    })
}

/// The hook, where there is one. In a cluster the agent's event is the hook.
fn hook(args: &Args) -> Result<Option<Hook>, Usage> {
    let Some((program, user)) = args.oom_hook.as_ref().zip(args.oom_hook_user.as_ref()) else {
        return Ok(None);
    };
    if std::env::var_os("INVOCATION_ID").is_none() {
        let why = "--oom-hook is for the agent as a unit of systemd: add it by systemctl edit untax-agent";
        return Err(Usage(why.to_owned()));
    }
    Hook::new(program, user, &Host::live()).map(Some).map_err(Usage)
}

fn signals() -> anyhow::Result<Interrupt> {
    Interrupt::by_signals().context("cannot listen for signals")
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

fn token(file: Option<&Path>) -> anyhow::Result<Option<String>> {
    file.map(read_token).transpose().map_err(anyhow::Error::msg)
}

fn tls(args: &Args) -> anyhow::Result<Option<Tls>> {
    let files = args.tls_cert.as_deref().zip(args.tls_key.as_deref());
    files.map(|(cert, key)| Tls::read(cert, key)).transpose().map_err(anyhow::Error::msg)
}

fn is_in_pod() -> bool {
    std::env::var_os("KUBERNETES_SERVICE_HOST").is_some()
}

/// Why this process sees no database but those of its own container, if so.
fn blind() -> Option<String> {
    let host = Host::live();
    // In the node's pid namespace, process 1 is the node's own, with other mounts than a container's.
    let own = |pid: &str| host.link(&format!("/proc/{pid}/ns/mnt")).into_value();
    let is_alone = std::process::id() == 1 || (is_in_pod() && own("1") == own("self"));
    is_alone.then(|| {
        "the processes of this container alone are seen, and no database; give it the host's: \
         add \"hostPID: true\" to the pod's spec, or --pid=host to the container's command line"
            .to_owned()
    })
}

fn last(args: &Last) -> anyhow::Result<Outcome> {
    let of_pod = || Some(Path::new(TOKEN_OF_POD)).filter(|file| is_in_pod() && file.exists());
    let client = Client::new(token(args.token_file.as_deref().or_else(of_pod))?);
    let answer = client
        .ask(&format!("http://{}", args.from), "/last", BOUNDS)
        .context("no check from the agent; --from says where it listens")?;
    let mut value: Value =
        serde_json::from_str(&answer).context("the agent's answer is no JSON")?;
    if let Some(beside) = last::beside_trials(&value) {
        say(&format!("untax: {beside} ran during this window: it is not what the platform takes"));
    }
    if let Some(pod) = &args.pod {
        last::keep_pod(&mut value, pod)?;
    }
    if args.top {
        print(&last::top(&value))?;
    } else if args.text {
        let check: Check =
            serde_json::from_value(value).context("the agent is of another version")?;
        print(&terminal::check(&check, terminal::Details::All, style()))?;
    } else {
        let text =
            serde_json::to_string_pretty(&value).context("cannot write the result as JSON")?;
        print(&(clean_json(&text) + "\n"))?;
    }
    Ok(Outcome::Clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_of_an_agent_have_a_length() {
        assert!(window("60s").is_ok() && window("500ms").is_ok());
        assert!(window("0s").is_err() && window("25h").is_err());
    }

    #[test]
    fn this_test_is_not_blind_where_it_is_not_process_one() {
        if std::env::var_os("KUBERNETES_SERVICE_HOST").is_none() {
            assert_eq!(blind(), None);
        }
    }
}
