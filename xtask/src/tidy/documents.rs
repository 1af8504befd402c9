//! Paths that documents name: each must be in the tree.

use super::problem::{Problem, Tree, numbered};

/// Where the paths begin that a document may name in backquotes.
const FOLDERS: [&str; 5] = ["crates/", "docs/", "scripts/", "tests/", "xtask/"];

/// Documents whose paths people follow. SPECIFICATION.md is checked as a list of proofs.
fn is_followed(path: &str) -> bool {
    ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].contains(&path)
        || path.starts_with("docs/") && path.ends_with(".md")
}

pub fn check(tree: &Tree) -> Vec<Problem> {
    let followed = tree.iter().filter(|(path, _)| is_followed(path));
    let lines = followed.flat_map(|(path, text)| numbered(text).map(move |line| (path, line)));
    let missing = lines.flat_map(|(path, (number, line))| {
        let linked = links(line).map(move |link| below(path, link));
        let named = names(line).map(str::to_owned);
        let missing = linked.chain(named).filter(|named| !exists(tree, named));
        missing.map(move |named| Problem::new(path, number, format!("there is no {named}")))
    });
    missing.collect()
}

/// The targets of a line's links to files of the tree.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
    targets.filter(|target| !target.is_empty() && !target.contains(':'))
}

/// The paths that stand in backquotes; one with a capital or a star stands for several.
fn names(line: &str) -> impl Iterator<Item = &str> {
    let quoted = line.split('`').skip(1).step_by(2);
    quoted.filter(|word| {
        FOLDERS.iter().any(|folder| word.starts_with(folder))
            && !word.contains(|c: char| c.is_ascii_uppercase() || "* :…".contains(c))
    })
}

/// A link's path from the root of the tree.
fn below(document: &str, link: &str) -> String {
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." | "" => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Whether a file or a folder is in the tree.
fn exists(tree: &Tree, path: &str) -> bool {
    let folder = format!("{}/", path.trim_end_matches('/'));
    tree.contains_key(path) || tree.keys().any(|file| file.starts_with(&folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_not_there_is_found() {
        let tree: Tree = [
            ("crates/a/src/lib.rs", ""),
            (
                "docs/b.md",
                "[a](../crates/a), [map](map.md#x), [web](https://x.y), `crates/a/src/c.rs`\n",
            ),
            (
                "ARCHITECTURE.md",
                "`crates/a/`, `crates/NAME/x.rs`, `docs/b.md` and [d](docs/d.md)\n",
            ),
            ("crates/a/notes.md", "[nobody follows](this.md)\n"),
        ]
        .map(|(path, text)| (path.to_owned(), text.to_owned()))
        .into();
        let found: Vec<String> = check(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "ARCHITECTURE.md:1: there is no docs/d.md",
                "docs/b.md:1: there is no docs/map.md",
                "docs/b.md:1: there is no crates/a/src/c.rs",
            ]
        );
    }
}
