//! A small HTTP server: it reads, and tells what was published. It holds a bounded number of connections,
//! each for a bounded time, and reads a bounded request from each. A client that reads a bounded answer in a
//! bounded time. Both speak TLS where they are asked to.

mod answer;
mod certificate;
mod client;
mod incoming;
mod server;
mod timed;
#[cfg(test)]
mod tls_tests;
mod trust;

pub use answer::{Access, read_token};
pub use certificate::Tls;
pub use client::{AskError, Bounds, Client};
pub use server::{HttpError, Server};
