//! `cargo xtask site`: the documents as pages that open offline, with a search, into target/dist/site.

mod book;
mod links;
mod pictures;
pub mod recording;
mod summary;

use crate::{paths, tidy, tools};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Makes the site, and returns where it is. A link that leads nowhere fails.
pub fn make(root: &Path) -> Result<PathBuf> {
    let sources = root.join("target/dist/made/site");
    let site = root.join("target/dist/site");
    for folder in [&sources, &site] {
        if folder.exists() {
            fs::remove_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
    }
    let tree = tidy::read(root)?;
    let findings = pictures::read(&tree)?;
    let pages = book::pages(&tree, &findings)?;
    write(&sources, "book.toml", book::CONFIGURATION)?;
    write(&sources, "untax.css", book::STYLE)?;
    write(&sources, "src/SUMMARY.md", &summary::text(&pages)?)?;
    for (path, text) in &pages {
        write(&sources, &format!("src/{path}"), text)?;
    }
    book::copy_rest(&root.join("docs"), &sources.join("src/docs"))?;
    let mdbook = tools::get("mdbook")?;
    let mut command = Command::new(mdbook);
    command.arg("build").arg(&sources).arg("--dest-dir").arg(&site);
    let status = command.status().context("cannot run mdbook")?;
    if !status.success() {
        bail!("mdbook failed: {status}");
    }
    let broken = links::broken(&site)?;
    if !broken.is_empty() {
        bail!("links of the site that lead nowhere:\n{}", broken.join("\n"));
    }
    Ok(site)
}

/// Makes the site, and says where it is.
pub fn run() -> Result<()> {
    let site = make(&paths::root())?;
    println!("{}", site.join("index.html").display());
    Ok(())
}

fn write(folder: &Path, path: &str, text: &str) -> Result<()> {
    let file = folder.join(path);
    if let Some(parent) = file.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(&file, text).with_context(|| file.display().to_string())
}
