//! What a build of a release knows: where it is made, of which commit, for which architecture.

use anyhow::{Context, Result, bail};
use jiff::Timestamp;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// An architecture, as others name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Architecture {
    /// As the kernel and Rust name it.
    pub name: &'static str,
    /// As Go, Debian and images name it.
    pub go: &'static str,
}

const ARCHITECTURES: [Architecture; 2] =
    [Architecture { name: "x86_64", go: "amd64" }, Architecture { name: "aarch64", go: "arm64" }];

/// A build of a release.
#[derive(Debug)]
pub struct Build {
    /// The source tree.
    pub root: PathBuf,
    /// Where artefacts go.
    pub out: PathBuf,
    /// Where files are made that artefacts hold.
    pub made: PathBuf,
    pub version: &'static str,
    pub architecture: Architecture,
    /// The commit, as the program says it.
    pub commit: String,
    /// When the commit was made: no artefact holds another time. Seconds of Unix time.
    pub time_s: i64,
}

impl Build {
    pub fn new(root: PathBuf, architecture: &str) -> Result<Self> {
        let known = ARCHITECTURES.into_iter().find(|known| known.name == architecture);
        let Some(architecture) = known else {
            bail!("no build for '{architecture}': name x86_64 or aarch64")
        };
        let git = |arguments: &[&str]| -> Result<String> {
            let output = Command::new("git").args(arguments).current_dir(&root).output()?;
            Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        };
        let commit = git(&["rev-parse", "HEAD"])?;
        let time_s = git(&["log", "-1", "--format=%ct"])?;
        let time_s = time_s.parse().context("a release is made from a git repository")?;
        let out = root.join("target/dist");
        let made = out.join("made").join(architecture.name);
        fs::create_dir_all(&made).with_context(|| made.display().to_string())?;
        let version = env!("CARGO_PKG_VERSION");
        Ok(Self { root, out, made, version, architecture, commit, time_s })
    }

    /// The time of the commit.
    pub fn time(&self) -> Timestamp {
        Timestamp::from_second(self.time_s).unwrap_or_default()
    }

    /// The program that make dist builds.
    pub fn program(&self) -> PathBuf {
        self.out.join(format!("untax-linux-{}", self.architecture.name))
    }
}
