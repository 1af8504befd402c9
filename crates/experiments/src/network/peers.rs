//! The two programs that measure a path: a server and a client of our own, each a child in its own
//! namespace. netperf's RR and CRR, with percentiles and the CPU time of both sides.

mod client;
mod server;
mod shared;

pub(super) use client::{CLIENT, ClientSpec, Exchanged};
pub(super) use server::{SERVER, Served, ServerSpec};
pub(super) use shared::{Kind, Place};
