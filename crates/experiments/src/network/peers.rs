//! The two programs that measure a path: a server and a client of our own, each a child in its own
//! namespace. netperf's RR and CRR, with percentiles and the CPU time of both sides.

mod client;
mod server;
mod shared;

pub(crate) use client::{CLIENT, ClientSpec, Exchanged};
pub(crate) use server::{SERVER, Served, ServerSpec};
pub(crate) use shared::{Kind, Place};
