//! One file per command: its arguments and what it does.

pub mod advise;
pub mod agent;
pub mod apply;
pub mod bench;
pub mod capture;
pub mod check;
pub mod compare;
pub mod completions;
pub mod demo;
pub mod doctor;
pub mod explain;
pub mod fleet;
pub mod lab;
mod last;
pub mod man;
mod node_classes;
pub mod plan;
pub mod report;
pub mod runs;
pub mod steer;
pub mod timeline;
pub mod undo;
pub mod verify;
pub mod watch;
