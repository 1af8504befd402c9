//! What one look costs: a live host with many backends, and a captured one with many processes.
//!
//! Nothing is compared with it, so there are no pairs for `untax_trials`.

use super::output::Output;
use super::program::Untax;
use crate::child::mortal;
use anyhow::{Context, bail};
use clap::Args;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use untax_core::{Interval, stats};
use untax_scenes::{Postgres, Runtime, Turn};

/// What to measure.
#[derive(Debug, Args)]
pub struct Options {
    /// Looks at each host
    #[arg(long, default_value_t = 15)]
    looks: u32,
    /// Backends of PostgreSQL
    #[arg(long, default_value_t = 300)]
    backends: u32,
    /// Processes on the live host besides those
    #[arg(long, default_value_t = 140)]
    others: u32,
    /// `shared_buffers`, in MiB, all of it touched
    #[arg(long, default_value_t = 6144)]
    buffers_mib: u32,
    /// A capture of a host with 10,000 processes (see `synthetic_tree` of untax-host)
    #[arg(long, value_name = "DIR")]
    tree: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
}

/// Other processes; ended when dropped.
struct Crowd(Vec<Child>);

impl Drop for Crowd {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Runs the bench and writes the result.
pub fn run(options: &Options) -> anyhow::Result<()> {
    options.output.prepare()?;
    let _turn = Turn::wait()?;
    let untax = Untax::find()?;
    let mut text = String::from(
        "# What one look costs\n\n| host | wall, ms | cpu, ms | peak resident, MiB |\n|---|---|---|---|\n",
    );
    text += &live(options, &untax)?;
    if let Some(tree) = &options.tree {
        text += &captured(options, &untax, tree)?;
    }
    text += "\nMedians with 95 % intervals; whole processes, from start to end, replay \
             and socket children included. The machine is shared: take the order of magnitude.\n";
    options.output.write("snapshot.md", &text)?;
    eprintln!("{text}");
    Ok(())
}

fn live(options: &Options, untax: &Untax) -> anyhow::Result<String> {
    let buffers = format!("{}MB", options.buffers_mib);
    let settings = [("shared_buffers", buffers.as_str()), ("huge_pages", "off")];
    let postgres = Postgres::start(Runtime::Host, &settings)?;
    // 15 MB for each scale: fills the buffers.
    postgres.pgbench_fill(options.buffers_mib / 16, 100)?;
    let mut crowd = Crowd(vec![sessions(&postgres, options.backends)?]);
    wait_until_idle(&postgres, options.backends)?;
    for _ in 0..options.others {
        crowd.0.push(mortal("sleep").arg("infinity").spawn()?);
    }
    let processes = untax_host::process::all(&untax_host::Host::live()).into_value();
    let count = processes.map_or(0, |all| all.len());
    let label = format!("{count} processes, {} backends, {buffers} on 4 KiB", options.backends);
    Ok(row(&label, &measure(options.looks, untax, &["check", "--json", "--window", "0s"])?))
}

/// Sessions that have mapped most of the buffers, by reading a fifth of all blocks each, and then
/// do nothing: the look is measured, not what a load leaves of the processors.
fn sessions(postgres: &Postgres, backends: u32) -> anyhow::Result<Child> {
    const SCRIPT: &str =
        "select count(*) from pgbench_accounts tablesample system (20);\n\\sleep 36000 s\n";
    let (port, clients) = (postgres.port().to_string(), backends.to_string());
    let mut pgbench = mortal("pgbench");
    pgbench.args(["-h", &postgres.socket_directory(), "-p", &port, "-U", postgres.user()]);
    pgbench.args(["-n", "-t", "1", "-c", &clients, "-f", "-", "postgres"]);
    pgbench.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = pgbench.spawn()?;
    child.stdin.take().context("pgbench takes no script")?.write_all(SCRIPT.as_bytes())?;
    Ok(child)
}

/// Waits until so many sessions have read and are idle.
fn wait_until_idle(postgres: &Postgres, backends: u32) -> anyhow::Result<()> {
    let count = "select count(*) from pg_stat_activity where backend_type = 'client backend' \
                 and state = 'idle' and query like '%tablesample%'";
    for _ in 0..1200 {
        if postgres.sql(count)?.trim().parse::<u32>()? >= backends {
            return Ok(());
        }
        std::thread::sleep(Duration::from_secs(1));
    }
    bail!("{backends} sessions were not there after 20 minutes")
}

fn captured(options: &Options, untax: &Untax, tree: &Path) -> anyhow::Result<String> {
    let tree = tree.to_str().context("the tree's path is not UTF-8")?;
    let look = ["check", "--json", "--replay", tree];
    Ok(row("capture of 10,000 processes", &measure(options.looks, untax, &look)?))
}

/// Wall time, processor time and peak memory of whole commands.
#[derive(Default)]
struct Costs {
    wall_ms: Vec<f64>,
    cpu_ms: Vec<f64>,
    resident_mib: Vec<f64>,
}

fn measure(looks: u32, untax: &Untax, arguments: &[&str]) -> anyhow::Result<Costs> {
    let mut costs = Costs::default();
    for _ in 0..looks {
        let mut command = Command::new("/usr/bin/time");
        command.args(["-f", "%U %S %M"]).arg(&untax.program);
        command.arg("--state-dir").arg(untax.state.path()).args(arguments);
        let begun = Instant::now();
        let output = command.stdout(Stdio::null()).output().context("is GNU time installed?")?;
        costs.wall_ms.push(begun.elapsed().as_secs_f64() * 1e3);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        // 1 is a check with findings.
        if !matches!(output.status.code(), Some(0 | 1)) {
            bail!("untax {} ended with {}: {said}", arguments.join(" "), output.status);
        }
        let numbers: Vec<f64> = said
            .lines()
            .last()
            .unwrap_or_default()
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        let [user_s, system_s, resident_kib] = numbers[..] else {
            bail!("time said: {said}");
        };
        costs.cpu_ms.push((user_s + system_s) * 1e3);
        costs.resident_mib.push(resident_kib / 1024.0);
    }
    Ok(costs)
}

fn row(label: &str, costs: &Costs) -> String {
    let cell = |values: &[f64]| match stats::median_interval(values) {
        Some(Interval { mid, low, high }) => format!("{mid:.0} ({low:.0} … {high:.0})"),
        None => "not measured".to_owned(),
    };
    let Costs { wall_ms, cpu_ms, resident_mib } = costs;
    format!("| {label} | {} | {} | {} |\n", cell(wall_ms), cell(cpu_ms), cell(resident_mib))
}
