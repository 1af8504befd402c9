//! `bench runtime`: what a container runtime costs a database.
//!
//! Every arm runs the same programs of this machine from the same directory, in the same network namespace, on
//! the same CPUs: a container is a bundle whose root shows this machine's programs. Servers run in the arm and
//! their clients outside of it; other work runs in the arm whole and times itself, so that starting a container
//! is never measured. Beside the ratios stand the costs of single calls in each arm, which explain them.

mod arguments;
mod arms;
mod calls;
mod cluster;
mod entry;
mod exchange;
mod family;
mod job;
mod memory_copy;
mod probe;
mod repeat;
mod scene;
mod server;
mod work;
mod workloads;

pub use entry::EXPERIMENT;
