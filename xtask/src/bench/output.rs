//! Where results go, and what they say of how they were made.

use anyhow::Context;
use clap::Args;
use std::path::PathBuf;

/// Where results go.
#[derive(Debug, Clone, Args)]
pub struct Output {
    /// Folder of the results: NAME.json with every trial, NAME.md with the table. Those of docs/results/
    /// hold words of ours as well, so nothing writes there by itself
    #[arg(long, value_name = "DIR", default_value = "target/bench")]
    pub out: PathBuf,
}

impl Output {
    /// Makes the folder, so that a result of many minutes does not fail at its end.
    pub fn prepare(&self) -> anyhow::Result<()> {
        std::fs::create_dir_all(&self.out).with_context(|| self.out.display().to_string())
    }

    /// Writes one result.
    pub fn write(&self, name: &str, text: &str) -> anyhow::Result<()> {
        let path = self.out.join(name);
        std::fs::write(&path, text).with_context(|| path.display().to_string())
    }
}

/// The command that this program was started with.
pub fn command() -> String {
    format!("cargo xtask {}", std::env::args().skip(1).collect::<Vec<_>>().join(" "))
}

/// The machine: processor, kernel, CPUs.
pub fn machine() -> String {
    let facts = untax_host::facts::read_all(&untax_host::Host::live());
    let cpu = facts.cpu.value().map(|cpu| format!("{}, {} CPUs", cpu.model, cpu.logical));
    let kernel = facts.kernel.value().map(|kernel| format!("kernel {}", kernel.release));
    let virtualization = facts.virtualization.value().cloned();
    [cpu, kernel, virtualization].into_iter().flatten().collect::<Vec<_>>().join(", ")
}
