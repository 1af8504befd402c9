//! Programs that pack and check releases, and that no Debian package has in the version that is needed.
//! They are built once, into the cache.

use crate::paths;
use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::process::Command;

/// A program of others.
struct Tool {
    name: &'static str,
    /// Its version is in the name of its directory, so that a newer one is built anew.
    version: &'static str,
    source: Source,
}

/// What builds it.
enum Source {
    /// `go install MODULE@VERSION`.
    Go(&'static str),
    /// `cargo install NAME --version VERSION`, with these arguments.
    Cargo(&'static [&'static str]),
}

const TOOLS: &[Tool] = &[
    Tool {
        name: "nfpm",
        version: "2.45.2",
        source: Source::Go("github.com/goreleaser/nfpm/v2/cmd/nfpm"),
    },
    Tool {
        name: "mdbook",
        version: "0.5.4",
        source: Source::Cargo(&["--no-default-features", "--features", "search"]),
    },
    Tool { name: "cargo-deny", version: "0.20.2", source: Source::Cargo(&[]) },
];

/// The path of a tool, which is built when it is not there yet.
pub fn get(name: &str) -> Result<PathBuf> {
    let tool = TOOLS.iter().find(|tool| tool.name == name).context("a tool that is not listed")?;
    let folder = paths::cache()?.join("tools").join(format!("{name}-{}", tool.version));
    let program = folder.join("bin").join(name);
    if program.is_file() {
        return Ok(program);
    }
    println!("building {name} {} into {}", tool.version, folder.display());
    let mut command = match tool.source {
        Source::Go(module) => {
            let mut command = Command::new("go");
            command.arg("install").arg(format!("{module}@v{}", tool.version));
            command.env("GOBIN", folder.join("bin"));
            command
        }
        Source::Cargo(arguments) => {
            let mut command = Command::new("cargo");
            command.args(["install", "--quiet", "--locked", name, "--version", tool.version]);
            command.args(arguments).arg("--root").arg(&folder);
            command.env("CARGO_TARGET_DIR", folder.join("build"));
            command
        }
    };
    let status = command.current_dir(paths::root()).status();
    let status =
        status.with_context(|| format!("cannot run {}", command.get_program().display()))?;
    if !status.success() || !program.is_file() {
        bail!("{name} {} could not be built: {status}", tool.version);
    }
    // What the build leaves takes hundreds of megabytes.
    let _ = std::fs::remove_dir_all(folder.join("build"));
    Ok(program)
}
