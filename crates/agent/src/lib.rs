//! Every database of this host, all the time, as metrics: windows of the pipeline become series, which an
//! HTTP server gives to Prometheus.
//!
//! This crate saves nothing but the features of the node that a person asks for, and starts nothing but the pipeline's windows and the hook that a person names. What it tells is in
//! [`METRICS`]; a series that is not listed there cannot be made.

mod catalogue;
mod exhaustion;
mod exposition;
mod features;
mod hook;
mod http;
mod identity;
mod metric;
mod published;
mod readings;
mod run;
mod sample;
mod store;

pub use catalogue::METRICS;
pub use hook::Hook;
pub use http::{Access, AskError, HttpError, Server, ask, read_token};
pub use metric::{Kind, Metric, Of, Unit};
pub use run::{OnceError, Options, names, once, run};
