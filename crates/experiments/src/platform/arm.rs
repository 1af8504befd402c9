//! One of the alternatives.

use serde::{Deserialize, Serialize};

/// The arm that is the baseline measured once more.
pub const AGAIN: &str = "baseline-again";

/// One of the alternatives of a family.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Arm {
    /// Its id, kebab-case.
    pub id: String,
    /// What it is, in one line.
    pub summary: String,
    /// What is in force in it, by name: versions, options, limits. Another configuration is another arm.
    #[serde(default)]
    pub configuration: Vec<Setting>,
    /// What it separates from the host beside its speed, where that is a reason to choose it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<String>,
    /// Whether system calls reach another kernel than the host's first; none where that is not known, or no
    /// question of this layer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub separates_kernel: Option<bool>,
    /// Whether it imitates what it is named after, so that its figures stand apart from the others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_emulated: bool,
    /// Where it stands in a series of arms that differ by a number alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<Step>,
    /// Why it cannot run here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cannot: Option<String>,
}

/// Where an arm stands in its series.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Step {
    /// The series' id, such as `services-iptables`.
    pub series: String,
    /// What the number counts, such as `services`.
    pub counts: String,
    /// The number.
    pub number: u32,
}

/// A name and a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Setting {
    /// Such as `version`.
    pub name: String,
    /// As it is in force.
    pub value: String,
}

impl Arm {
    /// An arm that can run here.
    pub fn new(id: &str, summary: &str) -> Self {
        Self { id: id.to_owned(), summary: summary.to_owned(), ..Self::default() }
    }

    /// The same, with something more that is in force.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.configuration.push(Setting { name: name.to_owned(), value: value.into() });
        self
    }

    /// The same, which separates this from the host, its kernel or not.
    #[must_use]
    pub fn isolating(self, isolation: &str, separates_kernel: Option<bool>) -> Self {
        Self { isolation: Some(isolation.to_owned()), separates_kernel, ..self }
    }

    /// The same, which cannot run here.
    #[must_use]
    pub fn cannot(self, why: impl Into<String>) -> Self {
        Self { cannot: Some(why.into()), ..self }
    }

    /// All that is in force, in one line.
    pub fn configuration_line(&self) -> String {
        let setting = |setting: &Setting| format!("{} {}", setting.name, setting.value);
        self.configuration.iter().map(setting).collect::<Vec<_>>().join(", ")
    }
}
