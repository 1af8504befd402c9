//! `untax bench pages`.

/// (being written)
#[derive(Debug, clap::Args)]
pub struct Args {}

/// (being written)
pub fn run(_: &Args, _: &crate::state::State) -> anyhow::Result<crate::Outcome> {
    anyhow::bail!("not there yet")
}
