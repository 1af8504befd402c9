//! The project's own tooling: tidiness, generated documents, the guest machine, benchmarks of the
//! whole program.
// Tools read the source tree and talk to the person who called them; the bans on both are about
// the program itself.
#![allow(clippy::disallowed_methods, clippy::print_stdout)]

mod bench;
mod chart;
mod child;
mod dashboards;
mod docs;
mod paths;
mod release;
mod site;
mod test;
mod tidy;
mod tools;
mod truth;
mod vm;

use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

/// Tools of the untax project.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    tool: Tool,
}

#[derive(Debug, Subcommand)]
enum Tool {
    /// Check what the compiler does not: sizes, forbidden words, names, promises.
    Tidy,
    /// Write the documents that are generated from the program's definitions.
    Docs {
        /// Only say whether they are fresh.
        #[arg(long)]
        check: bool,
    },
    /// Write dashboards and rules for the metrics of the agent, into deploy/.
    Dashboards,
    /// Write manual pages and shell completions.
    Dist {
        /// Where to.
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
    /// Make every artefact of a release, into target/dist
    Release(release::Arguments),
    /// Make the site, which opens offline, into target/dist/site
    Site,
    /// Make a picture that plays, of what script(1) logged of a terminal
    Recording(site::recording::Arguments),
    /// Run the tests in stages, and say at the end what failed and what took longest.
    Test(test::Arguments),
    /// Measure the figures of docs/results/ anew.
    #[command(subcommand)]
    Bench(bench::Tool),
    /// Windows of real servers with measured gains, which the tests replay.
    #[command(subcommand)]
    Truth(truth::Tool),
    /// Run a command in a guest machine that shares this machine's root, read-only.
    #[command(subcommand)]
    Vm(vm::Tool),
}

/// Runs the tool that the command line names.
pub fn main() -> ExitCode {
    if let Some(code) = untax_changes::guard::main(std::env::args_os()) {
        return code;
    }
    let done = match Arguments::parse().tool {
        Tool::Tidy => tidy::run(&paths::root()).map(|()| ExitCode::SUCCESS),
        Tool::Docs { check: true } => docs::check(&paths::root()).map(|()| ExitCode::SUCCESS),
        Tool::Docs { check: false } => docs::write(&paths::root()).map(|()| ExitCode::SUCCESS),
        Tool::Dashboards => dashboards::write(&paths::root()).map(|()| ExitCode::SUCCESS),
        Tool::Dist { out } => docs::dist(&out).map(|()| ExitCode::SUCCESS),
        Tool::Release(arguments) => {
            release::run(paths::root(), &arguments).map(|()| ExitCode::SUCCESS)
        }
        Tool::Site => site::run().map(|()| ExitCode::SUCCESS),
        Tool::Recording(arguments) => site::recording::run(&arguments).map(|()| ExitCode::SUCCESS),
        Tool::Test(tests) => Ok(tests.run()),
        Tool::Bench(tool) => tool.run().map(|()| ExitCode::SUCCESS),
        Tool::Truth(tool) => tool.run().map(|()| ExitCode::SUCCESS),
        Tool::Vm(tool) => tool.run(),
    };
    done.unwrap_or_else(|e| {
        eprintln!("error: {e:#}");
        ExitCode::from(2)
    })
}
