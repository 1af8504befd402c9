//! `cargo xtask release`: every artefact of a release, into target/dist, with a manifest.

mod archive;
mod build;
mod compress;
mod contents;
pub mod dependencies;
mod image;
mod krew;
pub mod manifest;
mod notices;
mod packages;
pub mod policy;
mod sbom;
mod site_archive;
mod spdx;

use crate::{docs, site, tools};
use anyhow::{Context, Result, bail};
use build::Build;
use clap::Args;
use compress::compress;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// What to make.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The architecture: `x86_64`, or `aarch64` (cross-built, unproven)
    #[arg(long, default_value = "x86_64")]
    architecture: String,
    /// Take the program that make dist has built, rather than build it
    #[arg(long)]
    built: bool,
    /// Leave out cargo-deny and the site, whose tools take minutes to build the first time
    #[arg(long)]
    quick: bool,
}

/// Makes the release.
pub fn run(root: PathBuf, arguments: &Arguments) -> Result<()> {
    policy::check(&root)?;
    let build = Build::new(root, &arguments.architecture)?;
    if !arguments.quick {
        deny(&build)?;
    }
    if !arguments.built {
        let script = build.root.join("scripts/dist.sh");
        let status = Command::new(&script).arg(build.architecture.name).status();
        let status = status.with_context(|| script.display().to_string())?;
        if !status.success() {
            bail!("{} failed: {status}", script.display());
        }
    }
    prepare(&build)?;
    let mut artefacts = vec![build.program()];
    artefacts.extend(packages::make(&build)?);
    artefacts.push(image::make(&build)?);
    artefacts.push(sbom::make(&build)?);
    artefacts.extend(krew::make(&build)?);
    if !arguments.quick {
        artefacts.push(site_archive::make(&build, &site::make(&build.root)?)?);
    }
    manifest::write(&build, &artefacts)
}

/// What Debian calls the form of its file of copyrights.
const COPYRIGHT_FORMAT: &str =
    concat!("https://www.debian", ".org/doc/packaging-manuals/copyright-format/1.0/");

/// Makes the files that packages and the image hold.
fn prepare(build: &Build) -> Result<()> {
    let program = build.program();
    fs::copy(&program, build.made.join("untax"))
        .with_context(|| format!("there is no {}: run make dist", program.display()))?;
    docs::dist(&build.made)?;
    let pages = build.made.join("man/man1");
    for page in fs::read_dir(&pages)? {
        let page = page?.path();
        if page.extension().is_some_and(|extension| extension == "1") {
            compress(&page, &page.with_extension("1.gz"))?;
            fs::remove_file(&page)?;
        }
    }
    let copyright = fs::read_to_string(build.root.join("deploy/package/copyright"))?;
    fs::write(build.made.join("copyright"), format!("Format: {COPYRIGHT_FORMAT}\n{copyright}"))?;
    compress(&build.root.join("CHANGELOG.md"), &build.made.join("changelog.gz"))?;
    let licences = build.made.join("third-party-licences");
    fs::write(&licences, notices::text(build)?)?;
    compress(&licences, &build.made.join("third-party-licences.gz"))
}

/// What `cargo xtask` checks of dependencies, by cargo-deny. Its database of advisories is a repository
/// that may be out of reach.
fn deny(build: &Build) -> Result<()> {
    let program = tools::get("cargo-deny")?;
    let check = |what: &[&str]| {
        let mut command = Command::new(&program);
        command.args(["check"]).args(what).current_dir(&build.root);
        command.status().context("cannot run cargo-deny")
    };
    if !check(&["bans", "licenses", "sources"])?.success() {
        bail!("cargo-deny refuses a dependency: see above and deny.toml");
    }
    if !check(&["advisories"])?.success() {
        println!("advisories were not checked, or there is one: see above");
    }
    Ok(())
}
