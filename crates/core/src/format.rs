//! Formats of saved files: each names itself, and one of a newer version is refused.

use std::fmt;

/// A format names itself `untax.NAME/NUMBER`. The number was raised for those here alone; all others have 1.
const RAISED: &[(&str, u32)] = &[];

/// Why a file is not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewerFormat {
    found: String,
    name: String,
    newest: u32,
}

impl fmt::Display for NewerFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { found, name, newest } = self;
        write!(
            f,
            "its format is {found}, and this version of untax reads {name}/{newest}; use the version that \
             wrote it, or a newer one"
        )
    }
}

impl std::error::Error for NewerFormat {}

/// Refuses a format that only a newer version can read. What does not name a format of untax is for the reader
/// of the file to judge.
pub fn is_readable(schema: &str) -> Result<(), NewerFormat> {
    let Some((name, number)) = schema.strip_prefix("untax.").and_then(|_| schema.rsplit_once('/'))
    else {
        return Ok(());
    };
    let raised = RAISED.iter().find(|(raised, _)| *raised == name);
    let newest = raised.map_or(1, |(_, number)| *number);
    match number.parse::<u32>() {
        Ok(number) if number > newest => {
            Err(NewerFormat { found: schema.to_owned(), name: name.to_owned(), newest })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_format_is_refused_with_what_to_do() {
        let refused = is_readable("untax.receipt/2").unwrap_err().to_string();
        assert!(refused.starts_with("its format is untax.receipt/2"), "{refused}");
        assert!(refused.contains("reads untax.receipt/1"), "{refused}");
        for schema in ["untax.receipt/1", "untax.bench.pages/1", "", "other/7", "untax.check/x"] {
            assert_eq!(is_readable(schema), Ok(()), "{schema}");
        }
    }
}
