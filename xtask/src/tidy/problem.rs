//! What checks read, and what they say.

use std::collections::BTreeMap;
use std::fmt;

/// The text files of the tree by their path from its root. Others are left out.
pub type Tree = BTreeMap<String, String>;

/// One thing that is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub path: String,
    /// The line, from 1.
    pub line: Option<usize>,
    /// What is wrong.
    pub what: String,
}

impl Problem {
    /// A problem of a file, and its line where it has one.
    pub fn new(path: &str, line: impl Into<Option<usize>>, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: line.into(), what: what.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path, self.what),
            None => write!(f, "{}: {}", self.path, self.what),
        }
    }
}

/// The lines of a text with their numbers, from 1.
pub fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(i, line)| (i + 1, line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_says_where() {
        assert_eq!(Problem::new("a.rs", 3, "bad").to_string(), "a.rs:3: bad");
        assert_eq!(Problem::new("a.rs", None, "bad").to_string(), "a.rs: bad");
    }
}
