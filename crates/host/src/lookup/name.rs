//! Names of hosts.

use std::fmt;

/// The longest name, bytes, and the longest part of one (RFC 1035, 2.3.4).
const LONGEST: usize = 253;
const LONGEST_LABEL: usize = 63;

/// A name in lower case. Names are the same whatever their case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    text: String,
    /// Whether a dot ends it as written: it is whole, and nothing is searched.
    pub is_whole: bool,
}

impl Name {
    /// `None` where the text cannot be the name of a host.
    pub fn new(text: &str) -> Option<Self> {
        let (text, is_whole) = text.strip_suffix('.').map_or((text, false), |text| (text, true));
        let is_letter = |c: u8| c.is_ascii_alphanumeric() || c == b'-' || c == b'_';
        let is_label = |label: &str| {
            (1..=LONGEST_LABEL).contains(&label.len()) && label.bytes().all(is_letter)
        };
        let is_name = text.len() <= LONGEST && text.split('.').all(is_label);
        is_name.then(|| Self { text: text.to_ascii_lowercase(), is_whole })
    }

    /// The name within a domain; `None` where that is too long.
    pub fn within(&self, domain: &Name) -> Option<Self> {
        Self::new(&format!("{}.{}", self.text, domain.text))
    }

    /// Its parts.
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        self.text.split('.')
    }

    /// How many dots it has.
    pub fn dots(&self) -> usize {
        self.labels().count() - 1
    }

    /// Whether it is this host's own on loopback, which no server is asked for (RFC 6761, 6.3).
    pub fn is_of_this_host(&self) -> bool {
        self.labels().last() == Some("localhost")
    }

    /// The text, in lower case and without a dot at its end.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.text)
    }
}
