//! A small HTTP server: it reads, and tells what was published. It holds a bounded number of connections,
//! each for a bounded time, and reads a bounded request from each.

mod answer;
mod client;
mod server;

pub use answer::{Access, read_token};
pub use client::{AskError, ask};
pub use server::{HttpError, Server};
