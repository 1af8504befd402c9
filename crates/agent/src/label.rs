//! Labels that every series of an agent has.

use crate::METRICS;
use crate::metric::IDENTITY;

/// The label that names the node.
const NODE: &str = "node";

/// Labels that a scraper sets. Agents are scraped with `honor_labels`, so their own would take these places.
const OF_SCRAPERS: [&str; 4] = ["job", "instance", "le", "quantile"];

/// The longest name and the longest value, bytes.
const LONGEST: usize = 120;

/// A label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    pub(crate) name: String,
    pub(crate) value: String,
}

impl Label {
    /// The label that names the node.
    pub(crate) fn of_node(node: &str) -> Self {
        Self { name: NODE.to_owned(), value: node.to_owned() }
    }

    /// One of a person's own, `NAME=VALUE`: of a name that no series has yet.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, value) =
            text.split_once('=').ok_or("a label is NAME=VALUE, such as cluster=eu-1")?;
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && !name.starts_with("__");
        if !is_name || name.len() > LONGEST {
            return Err(format!("{name:?} is no name of a label: letters, digits and _"));
        }
        if value.is_empty() || value.len() > LONGEST || value.chars().any(char::is_control) {
            return Err(format!("the value of {name} is to have 1 to {LONGEST} bytes of text"));
        }
        let own = METRICS.iter().flat_map(|metric| metric.labels).chain(&IDENTITY).chain(&[NODE]);
        if own.chain(&OF_SCRAPERS).any(|taken| *taken == name) {
            return Err(format!("series have a label {name} of their own; choose another name"));
        }
        Ok(Self { name: name.to_owned(), value: value.to_owned() })
    }

    /// A name that two of these labels have.
    pub fn twice(labels: &[Self]) -> Option<&str> {
        let names = labels.iter().map(|label| label.name.as_str());
        names.enumerate().find_map(|(at, name)| {
            labels[..at].iter().any(|label| label.name == name).then_some(name)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_has_a_name_of_its_own_and_a_value() {
        let label = Label::parse("cluster=eu=1").unwrap();
        assert_eq!((label.name.as_str(), label.value.as_str()), ("cluster", "eu=1"));
        for text in ["a", "=x", "1a=x", "a-b=x", "__a=x", "a=", "a=x\ny", "é=x"] {
            assert!(Label::parse(text).is_err(), "{text}");
        }
        for taken in ["node=x", "rule=x", "database=x", "job=x", "command=x"] {
            assert!(Label::parse(taken).unwrap_err().contains("choose another"), "{taken}");
        }
        assert!(Label::parse(&format!("a={}", "x".repeat(LONGEST + 1))).is_err());
    }

    #[test]
    fn a_name_that_is_given_twice_is_found() {
        let labels = |texts: &[&str]| -> Vec<Label> {
            texts.iter().map(|text| Label::parse(text).unwrap()).collect()
        };
        assert_eq!(Label::twice(&labels(&["a=1", "b=1"])), None);
        assert_eq!(Label::twice(&labels(&["a=1", "b=1", "a=2"])), Some("a"));
    }
}
