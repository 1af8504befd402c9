//! `bench storage`: what a volume costs a database.
//!
//! A child process works on files that were written in full (`files`): it writes and flushes a log, reads at
//! random past the page cache, or both beside a checkpoint or a neighbour (`load`, `work`). Around each trial
//! the counters of all block devices below the files are read (`device`); where fewer bytes passed than were
//! asked for, the trial is no figure (`check`). A volume lasts for the whole run (`volumes`), and what is
//! measured is a child each time (`trial`). Commits of a PostgreSQL are predicted from the log and measured
//! (`commits`); fio and `pg_test_fsync` measure the same work independently (`instrument`).

mod arguments;
mod check;
mod commits;
mod device;
mod entry;
mod family;
mod files;
mod instrument;
mod job;
mod latency;
mod load;
mod paths;
mod spec;
mod trial;
mod volumes;
mod work;

pub use entry::EXPERIMENT;
pub(crate) use volumes::PATH;
