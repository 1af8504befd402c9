//! Pods of a cluster in which benches run their servers and clients.
//!
//! Each server pod has a container for each kind of exchange, which listens on a port of its own. Clients are
//! started in pods by `kubectl exec`, and time themselves: what that takes is in no figure.

mod arguments;
mod exchange;
mod pods;
#[cfg(test)]
pub(crate) mod scripted;
mod template;

pub(crate) use arguments::ClusterArguments;
pub(crate) use exchange::{PodExchange, exec_own};
pub(crate) use pods::{Pod, port, service, service_port};
pub(crate) use template::Template;
