//! What a run of the lab is of.

/// What a run was of.
#[derive(Debug, Clone, PartialEq)]
pub struct Subject {
    /// The run's id.
    pub run: String,
    /// The cause's id.
    pub cause: String,
    /// The engine's id.
    pub engine: String,
    /// How much of the cause: `strong` or `mild`.
    pub dose: String,
    /// The load, where it is another than the cause's own.
    pub load: Option<&'static str>,
    /// The cause that was there all the time.
    pub beside: Option<&'static str>,
    /// What the cause takes when that is no time of the database's.
    pub takes: Option<&'static str>,
    /// What is set with the cause and without it, where machines differ in that.
    pub treatment: Option<String>,
}
