//! `bench network`: what ways of packets between client and database cost, on this machine, without a
//! cluster.
//!
//! Each arm is a path that `untax_scenes` builds in network namespaces: nothing of it is on the host. The
//! first one is two namespaces with one virtual wire, as the host networks of two nodes have one; all
//! others are divided by it. What a path imitates is in its summary: never a product's name.

mod arguments;
mod cluster;
mod costs;
mod entry;
pub(crate) mod exchange;
mod family;
pub(crate) mod peers;
mod pgbench;
mod redis;
mod workloads;

pub use costs::costs;
pub use entry::EXPERIMENT;
