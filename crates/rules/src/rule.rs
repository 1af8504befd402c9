//! What every rule says of itself, and the function that applies it.

use untax_core::window::Pair;
use untax_core::{Diagnosis, Window};

pub use untax_core::Scope;

/// One diagnosis. Its id is the name of its file, with hyphens.
pub struct Rule {
    /// What users script against.
    pub id: &'static str,
    /// One line.
    pub summary: &'static str,
    /// What happens in the machine, and why it costs the database time or memory.
    pub what: &'static str,
    /// How its tax comes about, in one sentence.
    pub method: &'static str,
    /// In detail: how it is found, how its tax and gain are measured, and what they leave out.
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
    /// The time that its taxes are shares of.
    pub tax_base: TaxBase,
    /// Whose cause it is: its findings say so, and its taxes count in the total of that scope.
    pub scope: Scope,
    /// The diagnosis itself.
    pub evaluate: fn(&Window) -> Vec<Diagnosis>,
}

/// The time that the taxes of a rule are shares of.
#[derive(Debug, Clone, Copy)]
pub enum TaxBase {
    /// The active time of the database's threads.
    ActiveTime,
    /// Active time, and seconds beside it in which threads waited for a cause while they seemed idle.
    /// The function measures these seconds; it returns nothing where they are not known.
    ActiveTimeAnd(fn(&Pair) -> Option<f64>),
}
