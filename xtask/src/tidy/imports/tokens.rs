//! The words and signs of a Rust source file, without its comments and literals.

/// A word or a sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token<'a> {
    /// An identifier or a keyword.
    Word(&'a str),
    /// `::`.
    Path,
    /// Any other character that is not white space.
    Sign(char),
}

/// Splits a source text. Comments, strings, characters and lifetimes are left out.
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = skipped(rest).unwrap_or_else(|| {
            let (token, length) = token(rest, first);
            found.extend(token);
            length
        });
        rest = &rest[length..];
    }
    found
}

fn token(rest: &str, first: char) -> (Option<Token<'_>>, usize) {
    if is_word(first) {
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        (Some(Token::Word(&rest[..end])), end)
    } else if rest.starts_with("::") {
        (Some(Token::Path), 2)
    } else {
        let token = (!first.is_whitespace()).then_some(Token::Sign(first));
        (token, first.len_utf8())
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The length of the comment, literal or lifetime that a text begins with.
fn skipped(rest: &str) -> Option<usize> {
    if rest.starts_with("//") {
        Some(rest.find('\n').unwrap_or(rest.len()))
    } else if rest.starts_with("/*") {
        Some(rest.find("*/").map_or(rest.len(), |end| end + 2))
    } else if let Some(length) = raw_string(rest) {
        Some(length)
    } else if rest.starts_with('"') || rest.starts_with("b\"") || rest.starts_with("c\"") {
        Some(string(rest))
    } else if rest.starts_with('\'') || rest.starts_with("b'") {
        Some(character(rest))
    } else {
        None
    }
}

fn raw_string(rest: &str) -> Option<usize> {
    let prefix = ["r", "br", "cr"].into_iter().find(|prefix| {
        let rest = rest.strip_prefix(prefix);
        rest.is_some_and(|rest| rest.trim_start_matches('#').starts_with('"'))
    })?;
    let start = rest[prefix.len()..].find('"')? + prefix.len();
    let end = format!("\"{}", "#".repeat(start - prefix.len()));
    let body = &rest[start + 1..];
    Some(body.find(&end).map_or(rest.len(), |at| start + 1 + at + end.len()))
}

fn string(rest: &str) -> usize {
    let start = rest.find('"').unwrap_or_default() + 1;
    closing(rest, start, '"')
}

/// A character, or a lifetime: a quote, a name and no second quote.
fn character(rest: &str) -> usize {
    let start = rest.find('\'').unwrap_or_default() + 1;
    let mut chars = rest[start..].chars();
    match (chars.next(), chars.next()) {
        (Some('\\'), _) | (Some(_), Some('\'')) => closing(rest, start, '\''),
        _ => rest[start..].find(|c| !is_word(c)).map_or(rest.len(), |end| start + end),
    }
}

/// Where the literal ends whose text begins at `start`, its escapes counted as text.
fn closing(rest: &str, start: usize, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in rest[start..].char_indices() {
        if c == quote && !is_escaped {
            return start + at + c.len_utf8();
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        let word = |token| if let Token::Word(word) = token { Some(word) } else { None };
        tokens(text).into_iter().filter_map(word).collect()
    }

    #[test]
    fn comments_and_literals_hold_no_words() {
        assert_eq!(words("a // b\n/* c */ d"), ["a", "d"]);
        assert_eq!(words(r##"a "b \" c" r#"d " e"# f b"g" h"##), ["a", "f", "h"]);
        assert_eq!(words(r"x: &'a str = '\'' 'b' b'\\' y"), ["x", "str", "y"]);
        assert_eq!(words("fn f<'a>(r: &'a r::T)"), ["fn", "f", "r", "r", "T"]);
    }

    #[test]
    fn a_path_is_one_sign() {
        let path = [Token::Word("a"), Token::Path, Token::Word("b"), Token::Sign(';')];
        assert_eq!(tokens("a::b;"), path);
    }
}
