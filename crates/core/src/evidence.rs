//! What findings stand on.

use serde::{Deserialize, Serialize};

/// What all evidence of one kind has in common: all but its value, its source and its instance.
#[derive(Debug, PartialEq, Eq)]
pub struct EvidenceKind {
    /// What scripts, metrics and dashboards use, kebab-case.
    pub id: &'static str,
    /// What people read, in the field's terms; `{of}` stands for the instance.
    pub name: &'static str,
    /// `bytes`, `s`, `1/s`, `pages`, `share`, `count`, or empty for text and ratios.
    pub unit: &'static str,
    /// What the value says, in one line.
    pub meaning: &'static str,
}

/// One measured or configured value that supports a finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Evidence {
    /// The id of its kind; empty in runs of older versions.
    #[serde(default)]
    pub id: String,
    /// What the value is, in the field's standard terms.
    pub name: String,
    /// Which of several it is about: a device, a control group, a setting, a process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// The value itself.
    pub value: Value,
    /// Its unit: `bytes`, `s`, `1/s`, `pages`, `share`, `count`, or empty for text.
    pub unit: String,
    /// The file, query or calibration that it was read from.
    pub source: String,
}

impl Evidence {
    /// One piece of evidence.
    pub fn new(kind: &EvidenceKind, value: impl Into<Value>, source: impl Into<String>) -> Self {
        Self {
            id: kind.id.to_owned(),
            name: kind.name.to_owned(),
            of: None,
            value: value.into(),
            unit: kind.unit.to_owned(),
            source: source.into(),
        }
    }

    /// The same of one instance, which takes the place of `{of}` in the name.
    #[must_use]
    pub fn of(self, instance: &str) -> Self {
        let name = self.name.replace("{of}", instance);
        Self { name, of: Some(instance.to_owned()), ..self }
    }

    /// The same with more to read beside its name, which belongs to the value.
    #[must_use]
    pub fn noted(self, note: &str) -> Self {
        Self { name: format!("{} {note}", self.name), ..self }
    }
}

/// Whether a text is an id: words of lower-case letters and digits with hyphens between them.
pub fn is_kebab(id: &str) -> bool {
    let is_word = |word: &str| {
        !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    };
    id.split('-').all(is_word)
}

/// The few kinds of value that evidence holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum Value {
    /// A whole number.
    Count(u64),
    /// Any other number.
    Number(f64),
    /// True or false.
    Truth(bool),
    /// A text.
    Text(String),
}

impl From<u64> for Value {
    fn from(v: u64) -> Self {
        Self::Count(v)
    }
}

impl From<f64> for Value {
    fn from(v: f64) -> Self {
        Self::Number(v)
    }
}

impl From<bool> for Value {
    fn from(v: bool) -> Self {
        Self::Truth(v)
    }
}

impl From<&str> for Value {
    fn from(v: &str) -> Self {
        Self::Text(v.to_owned())
    }
}

impl From<String> for Value {
    fn from(v: String) -> Self {
        Self::Text(v)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUSY: EvidenceKind =
        EvidenceKind { id: "device-busy", name: "{of} busy", unit: "share", meaning: "" };

    #[test]
    fn an_instance_is_in_the_name_and_beside_it() {
        let busy = Evidence::new(&BUSY, 0.5, "/proc/diskstats").of("vda");
        let json = serde_json::to_string(&busy).unwrap();
        assert_eq!(
            json,
            r#"{"id":"device-busy","name":"vda busy","of":"vda","value":0.5,"unit":"share","source":"/proc/diskstats"}"#
        );
        assert_eq!(serde_json::from_str::<Evidence>(&json).unwrap(), busy);
        assert_eq!(busy.noted("(0.4 … 0.6)").name, "vda busy (0.4 … 0.6)");
    }

    #[test]
    fn runs_of_older_versions_have_no_ids() {
        let old = r#"{"name":"limit","value":2.0,"unit":"CPUs","source":"cpu.max"}"#;
        let evidence: Evidence = serde_json::from_str(old).unwrap();
        assert_eq!((evidence.id.as_str(), evidence.of), ("", None));
    }

    #[test]
    fn an_id_is_words_with_hyphens() {
        assert!(is_kebab("page-tables") && is_kebab("thp2"));
        assert!(["", "-a", "a--b", "Page", "a_b", "a b"].iter().all(|id| !is_kebab(id)));
    }
}
