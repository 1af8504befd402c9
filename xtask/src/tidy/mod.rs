//! What the compiler does not check of the source tree: sizes, forbidden words and paths, where
//! `unsafe` may stand, where engines are told apart, circles of imports, names of listed things, schemas,
//! promises that name their tests, paths that documents name.
//!
//! Every check is a function from text to problems, and all but that of imports are line-based: the tree
//! is rustfmt'ed.

// Names of source files are written in lower case, and one that is not should be found.
#![allow(clippy::case_sensitive_file_extension_comparisons)]

mod documents;
mod engines;
mod formats;
mod imports;
mod lengths;
mod modules;
mod page_sizes;
mod problem;
mod promises;
mod reasons;
mod remedies;
mod slices;
mod text;
mod unsafety;

use anyhow::{Result, bail};
use problem::Problem;
pub use problem::Tree;
use std::fs;
use std::path::Path;

/// Directories that are no source: built, fetched or found. `.git` is a file in a linked worktree. Below
/// `src` one of these names is a module.
const NOT_SOURCE: &[&str] = &[".git", "target", "corpus", "artifacts"];

/// Checks the tree below `root`.
pub fn run(root: &Path) -> Result<()> {
    let problems = check(&read(root)?);
    if problems.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
    bail!("the tree is not tidy:\n{}", lines.join("\n"))
}

fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in tree {
        problems.extend(lengths::check(path, text));
        problems.extend(text::check(path, text));
        problems.extend(unsafety::check(path, text));
        problems.extend(engines::check(path, text));
        problems.extend(page_sizes::check(path, text));
    }
    problems.extend(modules::check(tree));
    problems.extend(imports::check(tree));
    problems.extend(slices::check(tree));
    problems.extend(promises::check(tree));
    problems.extend(documents::check(tree));
    problems.extend(reasons::check(tree));
    problems.extend(formats::check(tree));
    problems.extend(remedies::check(tree));
    problems
}

/// Reads the text files below `root`.
pub fn read(root: &Path) -> Result<Tree> {
    let mut tree = Tree::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let (path, kind) = entry.and_then(|e| Ok((e.path(), e.file_type()?)))?;
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if NOT_SOURCE.contains(&name.as_str()) && !folder.ends_with("src") {
                continue;
            }
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file()
                && let Ok(text) = fs::read_to_string(&path)
            {
                let path = path.strip_prefix(root)?.to_string_lossy().into_owned();
                tree.insert(path, text);
            }
        }
    }
    Ok(tree)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_tidy() {
        if let Err(e) = run(&crate::paths::root()) {
            panic!("{e}");
        }
    }
}
