//! What is installed, and where: the one list from which packages and the image are made.

use super::build::Build;
use anyhow::{Context, Result};
use std::fs;

/// A file that is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    pub from: From,
    pub to: &'static str,
    pub mode: u32,
    pub into: Into,
}

/// Where a file comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum From {
    /// The source tree.
    Tree(&'static str),
    /// What `cargo xtask release` makes before it packs.
    Made(&'static str),
}

/// What a file is put into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Into {
    /// Packages and the image.
    All,
    /// Packages of every kind.
    Packages,
    /// Packages of one kind.
    Kind(&'static str),
    /// The image alone.
    Image,
}

const fn file(from: From, to: &'static str, into: Into) -> File {
    File { from, to, mode: 0o644, into }
}

/// Everything but the manual pages, of which each command has one.
const FILES: &[File] = &[
    File { from: From::Made("untax"), to: "/usr/bin/untax", mode: 0o755, into: Into::All },
    file(
        From::Made("completions/untax.bash"),
        "/usr/share/bash-completion/completions/untax",
        Into::Packages,
    ),
    file(
        From::Made("completions/untax.fish"),
        "/usr/share/fish/vendor_completions.d/untax.fish",
        Into::Packages,
    ),
    file(
        From::Made("completions/_untax"),
        "/usr/share/zsh/vendor-completions/_untax",
        Into::Kind("deb"),
    ),
    file(
        From::Made("completions/_untax"),
        "/usr/share/zsh/site-functions/_untax",
        Into::Kind("rpm"),
    ),
    file(
        From::Tree("deploy/untax-undo-stale.service"),
        "/usr/lib/systemd/system/untax-undo-stale.service",
        Into::Packages,
    ),
    file(
        From::Tree("deploy/untax-steer.service"),
        "/usr/lib/systemd/system/untax-steer.service",
        Into::Packages,
    ),
    file(
        From::Tree("deploy/untax-agent.service"),
        "/usr/lib/systemd/system/untax-agent.service",
        Into::Packages,
    ),
    file(
        From::Tree("deploy/package/untax.preset"),
        "/usr/lib/systemd/system-preset/50-untax.preset",
        Into::Kind("rpm"),
    ),
    file(From::Made("copyright"), "/usr/share/doc/untax/copyright", Into::All),
    file(
        From::Made("third-party-licences.gz"),
        "/usr/share/doc/untax/third-party-licences.gz",
        Into::All,
    ),
    file(From::Made("changelog.gz"), "/usr/share/doc/untax/changelog.gz", Into::Packages),
    file(
        From::Tree("deploy/package/lintian-overrides"),
        "/usr/share/lintian/overrides/untax",
        Into::Kind("deb"),
    ),
    file(From::Tree("deploy/image/passwd"), "/etc/passwd", Into::Image),
    file(From::Tree("deploy/image/group"), "/etc/group", Into::Image),
];

/// A file with the paths of this build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    pub from: std::path::PathBuf,
    pub to: String,
    pub mode: u32,
    /// The kind of package that alone has it.
    pub only: Option<&'static str>,
}

/// What packages hold, manual pages included.
pub fn of_packages(build: &Build) -> Result<Vec<Installed>> {
    let mut all: Vec<Installed> = FILES
        .iter()
        .filter(|file| file.into != Into::Image)
        .map(|file| installed(build, file))
        .collect();
    let pages = build.made.join("man/man1");
    for page in fs::read_dir(&pages).with_context(|| pages.display().to_string())? {
        let page = page?;
        let to = format!("/usr/share/man/man1/{}", page.file_name().to_string_lossy());
        all.push(Installed { from: page.path(), to, mode: 0o644, only: None });
    }
    all.sort_by(|a, b| (&a.to, a.only).cmp(&(&b.to, b.only)));
    Ok(all)
}

/// What the image holds.
pub fn of_image(build: &Build) -> Vec<Installed> {
    let mut all: Vec<Installed> = FILES
        .iter()
        .filter(|file| matches!(file.into, Into::All | Into::Image))
        .map(|file| installed(build, file))
        .collect();
    all.sort_by(|a, b| a.to.cmp(&b.to));
    all
}

fn installed(build: &Build, file: &File) -> Installed {
    let from = match file.from {
        From::Tree(path) => build.root.join(path),
        From::Made(path) => build.made.join(path),
    };
    let only = match file.into {
        Into::Kind(kind) => Some(kind),
        Into::All | Into::Packages | Into::Image => None,
    };
    Installed { from, to: file.to.to_owned(), mode: file.mode, only }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths;

    #[test]
    fn what_comes_from_the_tree_is_there() {
        for file in FILES {
            if let From::Tree(path) = file.from {
                assert!(paths::root().join(path).is_file(), "there is no {path}");
            }
        }
    }

    #[test]
    fn no_two_files_of_one_kind_are_installed_in_one_place() {
        for (n, file) in FILES.iter().enumerate() {
            assert!(!FILES[..n].iter().any(|other| other.to == file.to), "{} twice", file.to);
        }
    }
}
