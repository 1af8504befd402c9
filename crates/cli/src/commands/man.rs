//! `untax man`.

use crate::Outcome;
use crate::screen::{print, say};
use anyhow::Context;
use clap::Command;
use std::fs;
use std::path::PathBuf;

/// Arguments of `untax man`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  untax man | man -l -\n  untax man -o /usr/local/share/man/man1"
)]
pub struct Args {
    /// Write the pages of all commands here instead: untax.1, untax-check.1 and so on
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// Runs the command, for the definition of the command line.
pub fn run(args: &Args, command: Command) -> anyhow::Result<Outcome> {
    let Some(folder) = &args.output else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        print(&String::from_utf8(page)?)?;
        return Ok(Outcome::Clean);
    };
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let cannot = || format!("cannot write into {}", folder.display());
    clap_mangen::generate_to(command, folder).with_context(cannot)?;
    say(&format!("manual pages: {}", folder.display()));
    Ok(Outcome::Clean)
}
