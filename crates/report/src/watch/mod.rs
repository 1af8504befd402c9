//! The view of `untax watch`: what it shows is a pure function of a state, and the state one of
//! what happened so far.

mod detail;
mod draw;
mod events;
mod history;
mod list;
mod state;
mod steered;
mod widgets;

pub use draw::draw;
pub use events::{Event, Key};
pub use state::State;
pub use steered::Steered;
