//! The vocabulary of untax as plain data, and the statistics every verdict stands on.
//!
//! Nothing here reads the host or writes anywhere: every type can be saved, printed as JSON and
//! replayed.

pub mod activity;
pub mod advice;
pub mod bench;
pub mod boot;
pub mod calibration;
pub mod check;
pub mod compare;
pub mod cpus;
pub mod database;
pub mod evidence;
pub mod finding;
pub mod format;
pub mod gain;
pub mod guards;
pub mod host;
pub mod idle;
pub mod interval;
pub mod io;
pub mod lab;
pub mod ledger;
pub mod network;
pub mod node_classes;
pub mod page_size;
pub mod path_costs;
pub mod placement;
pub mod plan;
pub mod portions;
pub mod power;
pub mod pressure;
pub mod reading;
pub mod reason;
pub mod receipt;
pub mod scalability;
pub mod sleeps;
pub mod snapshot;
pub mod stats;
pub mod storage;
pub mod timeline;
pub mod truth;
pub mod units;
pub mod verdict;
pub mod window;

pub use activity::Activity;
pub use calibration::Calibration;
pub use check::Check;
pub use database::Database;
pub use evidence::{Evidence, EvidenceKind};
pub use finding::{Diagnosis, Finding, Scope, Severity, Tax, Unmeasured};
pub use gain::{Ceiling, Gain};
pub use interval::Interval;
pub use io::Io;
pub use path_costs::PathCosts;
pub use plan::Plan;
pub use portions::Portions;
pub use reading::Reading;
pub use snapshot::Snapshot;
pub use units::{Bytes, Seconds};
pub use window::Window;
