//! `untax completions`.

use crate::Outcome;
use crate::screen::print;
use clap::Command;
use clap_complete::Shell;

/// Arguments of `untax completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
                        untax completions bash > /etc/bash_completion.d/untax\n  \
                        untax completions zsh > /usr/share/zsh/vendor-completions/_untax\n  \
                        untax completions fish > ~/.config/fish/completions/untax.fish")]
pub struct Args {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Runs the command, for the definition of the command line.
pub fn run(args: &Args, mut command: Command) -> anyhow::Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "untax", &mut script);
    print(&String::from_utf8(script)?)?;
    Ok(Outcome::Clean)
}
