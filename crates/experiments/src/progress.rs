//! Whoever wants to know how an experiment goes.

pub use untax_trials::Progress;

/// Whoever wants to know how an experiment goes, and keeps what it has so far.
pub trait Observer<T> {
    /// Something went on; called often.
    fn progress(&mut self, progress: &Progress);
    /// The result so far; called after every trial, to be saved.
    fn partial(&mut self, result: &T);
}

/// An observer that does not care.
pub struct Nobody;

impl<T> Observer<T> for Nobody {
    fn progress(&mut self, _: &Progress) {}
    fn partial(&mut self, _: &T) {}
}
