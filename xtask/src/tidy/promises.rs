//! The documents that must be there, and the tests that SPECIFICATION.md names as its proofs.

use super::problem::{Problem, Tree, numbered};
use std::collections::HashMap;

const DOCUMENTS: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "SPECIFICATION.md",
    "CHANGELOG.md",
    "LICENSE",
];

const PROMISES: &str = "SPECIFICATION.md";

pub fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems: Vec<Problem> = DOCUMENTS
        .iter()
        .filter(|path| tree.get(**path).is_none_or(String::is_empty))
        .map(|path| Problem::new(path, None, "must be there"))
        .collect();
    problems.extend(proofs(tree));
    problems.extend(licences(tree));
    problems
}

/// Proofs that are not there. A proof is `FILE.rs::TEST` or the path of a script.
fn proofs(tree: &Tree) -> Vec<Problem> {
    let promises = tree.get(PROMISES).map_or("", String::as_str);
    let mut problems = Vec::new();
    for (number, line) in numbered(promises) {
        for word in line.split(|c: char| !c.is_alphanumeric() && !"/._-:".contains(c)) {
            let word = word.trim_end_matches(['.', ':']);
            let (file, test) = word.split_once("::").map_or((word, None), |(f, t)| (f, Some(t)));
            let is_path = file.contains('/') && (file.ends_with(".rs") || file.ends_with(".sh"));
            if is_path && let Some(what) = missing(tree, file, test) {
                problems.push(Problem::new(PROMISES, number, what));
            }
        }
    }
    problems
}

fn missing(tree: &Tree, file: &str, test: Option<&str>) -> Option<String> {
    let Some(source) = tree.get(file) else { return Some(format!("there is no {file}")) };
    let name = test?.rsplit("::").next()?;
    let defined = format!("fn {name}(");
    (!source.contains(&defined)).then(|| format!("{file} has no test {name}"))
}

/// Licence texts that are there twice.
fn licences(tree: &Tree) -> Vec<Problem> {
    let mut seen: HashMap<&str, &str> = HashMap::new();
    let mut problems = Vec::new();
    for (path, text) in tree {
        let name = path.rsplit('/').next().unwrap_or_default();
        if (name.starts_with("LICENSE") || name.starts_with("COPYING"))
            && let Some(first) = seen.insert(text, path)
        {
            problems.push(Problem::new(path, None, format!("the same licence as {first}")));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> Tree {
        files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
    }

    fn says(files: &[(&str, &str)]) -> Vec<String> {
        proofs(&tree(files)).into_iter().map(|problem| problem.what).collect()
    }

    #[test]
    fn a_promise_names_tests_that_are_there() {
        let test = ("crates/x/tests/y.rs", "#[test]\nfn it_works() {}\n");
        let link = "- a [proof](crates/x/tests/y.rs): `crates/x/tests/y.rs::it_works`.\n";
        assert!(says(&[test, (PROMISES, link)]).is_empty());
        let script = ("tests/vm/z.sh", "");
        assert!(says(&[script, (PROMISES, "by tests/vm/z.sh.")]).is_empty());
    }

    #[test]
    fn a_proof_that_is_not_there_is_found() {
        let test = ("crates/x/tests/y.rs", "fn it_works_not() {}\n");
        let named = (PROMISES, "see `crates/x/tests/y.rs::tests::it_works`, `a/b.rs::c`, d/e.sh\n");
        let expected = [
            "crates/x/tests/y.rs has no test it_works",
            "there is no a/b.rs",
            "there is no d/e.sh",
        ];
        assert_eq!(says(&[test, named]), expected);
    }

    #[test]
    fn missing_documents_and_double_licences_are_found() {
        let problems = check(&tree(&[("LICENSE", "free"), ("crates/a/LICENSE", "free")]));
        assert_eq!(problems.len(), DOCUMENTS.len() - 1 + 1);
    }
}
