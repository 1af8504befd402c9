//! Everything that is listed in a slice lies in a file of its name.

use super::problem::{Problem, Tree};

pub fn check(tree: &Tree) -> Vec<Problem> {
    let facts = untax_host::facts::FACTS.iter().map(|fact| fact.id);
    let engines = untax_engines::ENGINES.iter().map(|engine| engine.id);
    let rules = untax_rules::RULES.iter().map(|rule| rule.id);
    let experiments = untax_experiments::EXPERIMENTS.iter().map(|experiment| experiment.id);
    [
        files(tree, "crates/host/src/facts", facts),
        files(tree, "crates/engines/src", engines),
        files(tree, "crates/rules/src/diagnoses", rules),
        files(tree, "crates/experiments/src", experiments),
    ]
    .concat()
}

fn files<'a>(tree: &Tree, folder: &str, ids: impl Iterator<Item = &'a str>) -> Vec<Problem> {
    ids.map(|id| (id, format!("{folder}/{}", id.replace('-', "_"))))
        .filter(|(_, file)| {
            !tree.contains_key(&format!("{file}.rs"))
                && !tree.contains_key(&format!("{file}/mod.rs"))
        })
        .map(|(id, file)| Problem::new(&format!("{file}.rs"), None, format!("'{id}' has no file")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_without_a_file_is_found() {
        let tree: Tree = [("r/a_b.rs", ""), ("r/c/mod.rs", "")]
            .map(|(path, text)| (path.to_owned(), text.to_owned()))
            .into();
        assert!(files(&tree, "r", ["a-b", "c"].into_iter()).is_empty());
        let problems = files(&tree, "r", ["a-b", "d"].into_iter());
        assert_eq!(problems, [Problem::new("r/d.rs", None, "'d' has no file")]);
    }
}
