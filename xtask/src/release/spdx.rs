//! Licences of a crate: expressions of names, AND, OR, WITH and brackets.

/// Whether a licence that is allowed can be chosen; `None` where the expression cannot be read. A slash
/// stands for OR, as in older crates.
pub fn is_met(expression: &str, allowed: &impl Fn(&str) -> bool) -> Option<bool> {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let (met, rest) = any(&words, allowed)?;
    rest.is_empty().then_some(met)
}

type Parsed<'a> = Option<(bool, &'a [&'a str])>;

fn any<'a>(words: &'a [&'a str], allowed: &impl Fn(&str) -> bool) -> Parsed<'a> {
    let (mut met, mut rest) = all(words, allowed)?;
    while let Some(("OR", more)) = first(rest) {
        let (other, after) = all(more, allowed)?;
        (met, rest) = (met || other, after);
    }
    Some((met, rest))
}

fn all<'a>(words: &'a [&'a str], allowed: &impl Fn(&str) -> bool) -> Parsed<'a> {
    let (mut met, mut rest) = one(words, allowed)?;
    while let Some(("AND", more)) = first(rest) {
        let (other, after) = one(more, allowed)?;
        (met, rest) = (met && other, after);
    }
    Some((met, rest))
}

fn one<'a>(words: &'a [&'a str], allowed: &impl Fn(&str) -> bool) -> Parsed<'a> {
    match words {
        ["(", inner @ ..] => {
            let (met, rest) = any(inner, allowed)?;
            let (")", rest) = first(rest)? else { return None };
            Some((met, rest))
        }
        ["AND" | "OR" | "WITH" | ")", ..] | [] => None,
        [name, "WITH", exception, rest @ ..] => {
            Some((allowed(&format!("{name} WITH {exception}")), rest))
        }
        [name, rest @ ..] => Some((allowed(name), rest)),
    }
}

fn first<'a>(words: &'a [&'a str]) -> Option<(&'a str, &'a [&'a str])> {
    words.split_first().map(|(first, rest)| (*first, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn and_binds_more_than_or() {
        let allowed =
            |name: &str| ["MIT", "Unicode-3.0", "Apache-2.0 WITH LLVM-exception"].contains(&name);
        for (expression, met) in [
            ("MIT", Some(true)),
            ("GPL-3.0-only", Some(false)),
            ("GPL-3.0-only OR MIT", Some(true)),
            ("GPL-3.0-only/MIT", Some(true)),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", Some(true)),
            ("(MIT OR Apache-2.0) AND GPL-2.0", Some(false)),
            ("GPL-2.0 AND MIT OR MIT", Some(true)),
            ("GPL-2.0 AND (MIT OR MIT)", Some(false)),
            ("Apache-2.0 WITH LLVM-exception OR Apache-2.0", Some(true)),
            ("", None),
            ("MIT OR", None),
            ("(MIT", None),
            ("MIT MIT", None),
        ] {
            assert_eq!(is_met(expression, &allowed), met, "{expression}");
        }
    }
}
