//! `--fail-if`: a count of the result, and the bound at which a build fails.

use super::schema::{GuardResult, LocalityBench};
use std::str::FromStr;

/// A guard such as `named < 4`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Guard {
    asked: String,
    count: Count,
    is_below: bool,
    bound: u32,
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Count {
    Found,
    Named,
    Others,
}

impl FromStr for Guard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is no guard; 'named < 4' and 'others > 0' are");
        let at = text.find(['<', '>']).ok_or_else(wrong)?;
        let (name, rest) = text.split_at(at);
        let count = match name.trim() {
            "found" => Count::Found,
            "named" => Count::Named,
            "others" => Count::Others,
            _ => return Err(wrong()),
        };
        let bound = rest[1..].trim().parse().map_err(|_| wrong())?;
        Ok(Self { asked: text.trim().to_owned(), count, is_below: rest.starts_with('<'), bound })
    }
}

impl Guard {
    /// Whether the bench fails by it.
    pub(super) fn judge(&self, bench: &LocalityBench) -> GuardResult {
        let value = match self.count {
            Count::Found => bench.found(),
            Count::Named => bench.named(),
            Count::Others => bench.others.len() as u32,
        };
        let failed = if self.is_below { value < self.bound } else { value > self.bound };
        GuardResult { asked: self.asked.clone(), value, failed }
    }
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;

    #[test]
    fn counts_are_compared_and_nonsense_is_refused() {
        let bench = example::bench();
        let failed = |text: &str| text.parse::<Guard>().unwrap().judge(&bench).failed;
        assert_eq!((bench.found(), bench.named(), bench.others.len()), (3, 2, 1));
        assert!(!failed("found < 3") && failed("found<4"));
        assert!(failed("named < 3") && failed("others > 0") && !failed(" others>1 "));
        for wrong in ["", "named", "named = 3", "known < 3", "named < x", "named <"] {
            assert!(wrong.parse::<Guard>().is_err(), "{wrong}");
        }
    }
}
