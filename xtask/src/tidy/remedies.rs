//! Every remedy that a finding names is one: some remedy answers it.

use super::problem::{Problem, Tree, numbered};

/// Where findings name remedies.
const RULES: &str = "crates/rules/src/diagnoses/";

/// What stands before the name of a remedy there.
const BEFORE: [&str; 5] = ["Some(\"", "then_some(\"", "then(|| \"", "map(|_| \"", "{ \""];

pub fn check(tree: &Tree) -> Vec<Problem> {
    let rules = tree.iter().filter(|(path, _)| path.starts_with(RULES));
    let named = rules.flat_map(|(path, text)| names(text).map(move |(at, name)| (path, at, name)));
    let unknown = named.filter(|(.., name)| !is_answered(name));
    unknown
        .map(|(path, line, name)| {
            Problem::new(path, line, format!("names {name}, which no remedy answers"))
        })
        .collect()
}

fn is_answered(name: &str) -> bool {
    untax_remedies::REMEDIES.iter().any(|remedy| remedy.answers.contains(&name))
}

/// The names in the code of a rule, without its tests, and their lines.
fn names(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let code = numbered(text).take_while(|(_, line)| line.trim() != "#[cfg(test)]");
    code.flat_map(|(at, line)| {
        let literals = BEFORE.iter().flat_map(move |before| line.split(before).skip(1));
        let names = literals.filter_map(|rest| rest.split_once('"').map(|(name, _)| name));
        names.filter(|name| is_name(name)).map(move |name| (at, name))
    })
}

/// Words with hyphens between them.
fn is_name(text: &str) -> bool {
    let is_word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase());
    text.contains('-') && text.split('-').all(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_no_remedy_answers_is_found() {
        let line = |name: &str| format!("        remedy: Some(\"{name}\".to_owned()),\n");
        let tree = |text: &str| Tree::from([(format!("{RULES}a_rule.rs"), text.to_owned())]);
        assert!(check(&tree(&line("hugepage-pool"))).is_empty());
        assert_eq!(check(&tree(&line("no-such-remedy"))).len(), 1);
        let both = "remedy: Some(if base { \"hugepage-pool\" } else { \"not-there\" }),\n";
        assert_eq!(check(&tree(both)).len(), 1);
        let tested = format!("#[cfg(test)]\n{}", line("no-such-remedy"));
        assert!(check(&tree(&tested)).is_empty());
    }

    #[test]
    fn the_names_of_the_rules_are_seen() {
        let tree = crate::tidy::read(&crate::paths::root()).unwrap();
        let rules = tree.iter().filter(|(path, _)| path.starts_with(RULES));
        let mut seen: Vec<&str> = rules.flat_map(|(_, text)| names(text)).map(|(_, n)| n).collect();
        seen.sort_unstable();
        seen.dedup();
        for name in
            ["hugepage-pool", "connection-pooler", "memory-limit", "conntrack-max", "numa-bind"]
        {
            assert!(seen.contains(&name), "{name} is among {seen:?}");
        }
    }
}
