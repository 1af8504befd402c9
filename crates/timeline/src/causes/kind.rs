//! What a cause is.

use crate::scene::Scene;
use untax_core::timeline::FactChange;

/// The number of threads, as if it were a part of a request's time.
pub(crate) const AT_ONCE: &str = "at-once";

/// Parts of a request's time.
pub(crate) enum Parts {
    /// These.
    These(&'static [&'static str]),
    /// All of them.
    All,
}

/// A kind of cause.
pub(crate) struct Kind {
    /// Its id.
    pub id: &'static str,
    /// The parts of a request's time that it acts on.
    pub parts: Parts,
    /// The sign of it about a change, if there is one.
    pub look: fn(&Scene) -> Option<Sign>,
}

/// A sign of a cause.
pub(crate) struct Sign {
    /// What happened, in a sentence.
    pub text: String,
    /// The facts, and measures, that changed.
    pub facts: Vec<FactChange>,
    /// Whether it can only shorten the parts that it acts on, or only lengthen them; `None`: either.
    pub shortens: Option<bool>,
}

impl Sign {
    /// The same of what can only shorten parts, or only lengthen them.
    pub fn that_shortens(self, shortens: bool) -> Self {
        Self { shortens: Some(shortens), ..self }
    }
}
