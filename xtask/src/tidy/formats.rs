//! Each format that the source names has a schema in docs/schema, and each schema is of such a format.

use super::problem::numbered;
use super::{Problem, Tree};
use std::collections::BTreeSet;

/// Formats of the project's own tests, which nobody else reads.
const OWN: [&str; 2] = ["untax.truth/1", "untax.bench.made-up/1"];

/// Where the schemas are.
const FOLDER: &str = "docs/schema/";

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let is_source = |path: &str| {
        let is_crate = path.starts_with("crates/") && path.contains("/src/");
        path.ends_with(".rs") && (is_crate || path.starts_with("xtask/src/release/"))
    };
    let mut problems = Vec::new();
    let mut named = BTreeSet::new();
    for (path, text) in tree.iter().filter(|(path, _)| is_source(path)) {
        // Tests also name formats that are not there.
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (line, format) in
            numbered(code).flat_map(|(line, text)| formats(text).map(move |format| (line, format)))
        {
            let file = format!("{FOLDER}{}.json", format.replace('/', "-"));
            if !OWN.contains(&format) && !tree.contains_key(&file) {
                let what =
                    format!("{format} has no schema: add it to FORMATS, then cargo xtask docs");
                problems.push(Problem::new(path, line, what));
            }
            named.insert(file);
        }
    }
    let is_schema = |path: &&String| path.starts_with(FOLDER) && path.ends_with(".json");
    let unused = tree.keys().filter(is_schema).filter(|path| !named.contains(*path));
    problems.extend(unused.map(|path| Problem::new(path, None, "no source names this format")));
    problems
}

/// The formats that a line names in quotes: `untax.NAME/NUMBER`.
fn formats(line: &str) -> impl Iterator<Item = &str> {
    let is_format = |text: &&str| {
        let name = text.strip_prefix("untax.").and_then(|rest| rest.split_once('/'));
        name.is_some_and(|(name, number)| {
            let is_letter = |c: char| c.is_ascii_lowercase() || c == '.' || c == '-';
            name.chars().all(is_letter)
                && !number.is_empty()
                && number.chars().all(|c| c.is_ascii_digit())
        })
    };
    line.split('"').skip(1).step_by(2).filter(is_format)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_without_a_schema_and_a_schema_without_a_format_are_found() {
        let source = "const A: &str = \"untax.check/1\";\nconst B: &str = \"untax.bench.x-y/2\";\n\
                      const C: &str = \"untax.truth/1\"; // \"untax/1\"\n#[cfg(test)]\n\"untax.z/9\"\n";
        let tree = |files: &[&str]| {
            let mut tree = Tree::from([("crates/a/src/b.rs".to_owned(), source.to_owned())]);
            tree.extend(files.iter().map(|file| (format!("{FOLDER}{file}"), String::new())));
            tree
        };
        let said = |files: &[&str]| -> Vec<String> {
            check(&tree(files)).iter().map(Problem::to_string).collect()
        };
        assert!(said(&["untax.check-1.json", "untax.bench.x-y-2.json", "index.md"]).is_empty());
        let missing = said(&["untax.check-1.json"]);
        assert!(
            missing.len() == 1 && missing[0].starts_with("crates/a/src/b.rs:2: untax.bench.x-y/2 "),
            "{missing:?}"
        );
        let unused = said(&["untax.check-1.json", "untax.bench.x-y-2.json", "untax.old-1.json"]);
        assert_eq!(unused, ["docs/schema/untax.old-1.json: no source names this format"]);
    }
}
