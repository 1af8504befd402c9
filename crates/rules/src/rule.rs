//! What every rule says of itself, and the function that applies it.

use untax_core::{Diagnosis, Window};

/// One diagnosis. Its id is the name of its file, with hyphens.
pub struct Rule {
    /// What users script against.
    pub id: &'static str,
    /// One line.
    pub summary: &'static str,
    /// What happens in the machine, and why it costs the database time or memory.
    pub what: &'static str,
    /// How it is found, how its tax and gain are measured, and what they leave out.
    pub measured: &'static str,
    /// What to change.
    pub fix: &'static str,
    /// Where the facts come from.
    pub sources: &'static [&'static str],
    /// What it needs beyond an ordinary user.
    pub privilege: &'static str,
    /// The oldest kernel on which it says anything.
    pub minimum_kernel: &'static str,
    /// What measuring it costs the database.
    pub cost: &'static str,
    /// The diagnosis itself.
    pub evaluate: fn(&Window) -> Vec<Diagnosis>,
}
