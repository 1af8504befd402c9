//! Recording cases anew.

use super::cases::{CASES, Case};
use super::replay;
use crate::bench::program::Untax;
use anyhow::bail;
use clap::Args;

/// Which cases.
#[derive(Debug, Args)]
pub struct Options {
    /// These cases alone
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    cases: Vec<String>,
    /// Pairs of trials of each
    #[arg(long, value_name = "N", default_value_t = 3)]
    pairs: u32,
}

/// Records them one by one, and goes on where one cannot be had.
pub fn run(options: &Options) -> anyhow::Result<()> {
    let known = |id: &String| CASES.iter().any(|case| case.id == id);
    if let Some(unknown) = options.cases.iter().find(|id| !known(id)) {
        bail!("there is no case {unknown}; xtask/src/truth/cases.rs lists them");
    }
    let untax = Untax::find()?;
    let chosen =
        |case: &&Case| options.cases.is_empty() || options.cases.iter().any(|id| id == case.id);
    std::fs::create_dir_all(replay::folder())?;
    let mut failed = Vec::new();
    for case in CASES.iter().filter(chosen) {
        println!("{}", case.id);
        if let Err(error) = record(&untax, case, options.pairs) {
            println!("{}: {error:#}", case.id);
            failed.push(case.id);
        }
    }
    if failed.is_empty() { Ok(()) } else { bail!("not recorded: {}", failed.join(", ")) }
}

fn record(untax: &Untax, case: &Case, pairs: u32) -> anyhow::Result<()> {
    let (pairs, file) = (pairs.to_string(), replay::file(case));
    let file = file.to_string_lossy();
    let rest = ["--pairs", &pairs, "--window", "4s", "--json", "--record", &file];
    let arguments = [&["lab", "run"], case.arguments, &rest].concat();
    let output = untax.command(&arguments).stderr(std::process::Stdio::piped()).output()?;
    // A cause that is not found is a result too.
    if let Some(0 | 1) = output.status.code() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    bail!("{}: {}", output.status, said.lines().last().unwrap_or_default())
}
