//! The databases on a host: how to recognise them, where their memory, data and connections are,
//! and what they count. One file per engine.
//!
//! Facts only: nothing here judges. All that is read of the host goes through
//! [`untax_host::Host`], and what a server answers over its socket is one observation, so that a
//! capture replays without any server.

mod answer;
mod ask;
mod catalogue;
mod child;
mod clock;
mod connect;
mod counters;
mod cpu_queue;
mod database_view;
mod discover;
mod endpoint;
mod engine;
mod generic;
mod included_files;
mod listeners;
mod loader;
mod mappings;
mod memory;
mod mongodb;
mod mysql;
mod names;
mod network;
mod oracle;
mod placement;
mod postgres;
mod process_table;
mod recognition;
mod redis;
mod running;
mod settings;
mod thp;
mod work;

pub use ask::Asker;
pub use catalogue::{ENGINES, complete, file_names, process_role, traits};
pub use child::answer_main;
pub use discover::{Discovered, Selection, ask_beforehand, discover};
pub use engine::Engine;
pub use listeners::listening_ports;
pub use names::{PodNames, pod_names};
pub use running::{Running, running};
pub use work::count_work;

// The parsers of files and titles that others write, for tests and fuzzing from outside.
pub mod parsers {
    //! Parsers of configuration files and process titles.
    pub use crate::mongodb::conf as mongodb_conf;
    pub use crate::mysql::conf as mysql_conf;
    pub use crate::postgres::conf as postgres_conf;
    pub use crate::postgres::title as postgres_title;
    pub use crate::redis::conf as redis_conf;
}
