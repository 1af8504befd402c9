//! Every database of this host, all the time, as metrics: windows of the pipeline become series, which an
//! HTTP server gives to Prometheus.
//!
//! It runs the pipeline's windows. It writes a file of node features, and starts a hook, only where a person asks for
//! them. [`METRICS`] lists every series; another one cannot be made.

mod catalogue;
mod exhaustion;
mod exposition;
mod features;
mod hook;
mod http;
mod identity;
mod label;
mod metric;
mod published;
mod readings;
mod run;
mod sample;
mod store;
mod trials;

pub use catalogue::METRICS;
pub use hook::Hook;
pub use http::{Access, AskError, Bounds, Client, HttpError, Server, Tls, read_token};
pub use label::Label;
pub use metric::{Kind, Metric, Of, Unit};
pub use run::{OnceError, Options, names, once, run};
