//! Where an engine keeps what.

use crate::io::Role;
use serde::{Deserialize, Serialize};

/// A directory of a database beside its data, as its engine lays it out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DataPlace {
    /// As the database sees it; below the data directory unless it begins with `/`. A last part `*` stands
    /// for everything there. What does not exist is no place.
    pub path: String,
    /// What is kept there.
    pub role: Role,
    /// Whether others keep their files there too.
    pub is_common: bool,
}

impl DataPlace {
    /// A directory of the database's own.
    pub fn own(path: impl Into<String>, role: Role) -> Self {
        Self { path: path.into(), role, is_common: false }
    }
}
