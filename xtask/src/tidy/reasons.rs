//! Reasons are told apart by their words: each of these is in a text that the source holds.

use super::{Problem, Tree};
use untax_core::reason::REASONS;

/// Where the words stand.
const LIST: &str = "crates/core/src/reason.rs";

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let is_source = |path: &str| {
        path.starts_with("crates/")
            && path.contains("/src/")
            && path.ends_with(".rs")
            && path != LIST
    };
    let sources: Vec<String> =
        tree.iter().filter(|(path, _)| is_source(path)).map(|(_, text)| joined(text)).collect();
    let all =
        REASONS.iter().flat_map(|reason| reason.words.iter().map(|words| (reason.id, *words)));
    let is_said = |words: &str| sources.iter().any(|text| text.contains(words));
    all.filter(|(_, words)| !is_said(words))
        .map(|(id, words)| {
            let what = format!("no text says `{words}`, by which {id} is told: reword it here too");
            Problem::new(LIST, None, what)
        })
        .collect()
}

/// Source in which a text that goes on in the next line is in one piece.
fn joined(source: &str) -> String {
    source.replace("\\\n", "").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reworded_reason_is_found() {
        let said = REASONS.iter().flat_map(|reason| reason.words).copied().collect::<Vec<_>>();
        let source =
            |texts: &[&str]| Tree::from([("crates/a/src/b.rs".to_owned(), texts.join("\n"))]);
        assert!(check(&source(&said)).is_empty());
        let problems = check(&source(&said[1..]));
        assert!(problems.len() == 1 && problems[0].to_string().contains(said[0]), "{problems:?}");
    }

    #[test]
    fn a_text_goes_on_in_the_next_line() {
        assert_eq!(joined("\"went \\\n    backwards\""), "\"went backwards\"");
    }
}
