//! How a command ends.

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing to say.
    Clean,
    /// Findings, or a failed guard of a benchmark.
    Findings,
}

/// An error that is the user's to mend on the command line.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);
