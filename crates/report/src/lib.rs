//! Reports from saved data: a screen for the terminal, a view that goes on, and a page for the
//! browser.
//!
//! Everything here is pure: a result goes in, a `String` comes out; nothing is read, no clock is
//! asked. Names of processes, containers and mappings are other people's text, so whatever is
//! shown passes through [`format::clean`] on the way out.

pub mod facts;
pub mod format;
pub mod html;
pub mod markdown;
mod summary;
pub mod svg;
pub mod terminal;
mod time;
pub mod timeline_figure;
mod timeline_words;
pub mod watch;
