//! Errors of scenes, each with the next action.

use std::io;
use std::path::PathBuf;
use untax_changes::{PoolError, TemporaryError};
use untax_core::Bytes;

/// Why a scratch database or a load did not start, or a setting was not changed.
#[derive(Debug, thiserror::Error)]
pub enum SceneError {
    /// A program is not installed.
    #[error("{program} is not installed; try 'apt-get install {package}'")]
    Missing {
        /// The program.
        program: String,
        /// The Debian package that has it.
        package: String,
    },
    /// A server is neither installed nor unpacked.
    #[error("{server} is not unpacked below {cache}; run 'scripts/engines.sh {cache} {server}'")]
    NotUnpacked {
        /// The id of the server.
        server: &'static str,
        /// The directory of fetched things.
        cache: String,
    },
    /// A load is not built.
    #[error("{program} is not built below {cache}; run 'scripts/loads.sh {cache}'")]
    NotBuilt {
        /// The program.
        program: &'static str,
        /// The directory of fetched things.
        cache: String,
    },
    /// A program could not be started.
    #[error("cannot start {program}; check that it may be run")]
    Start {
        /// The program.
        program: String,
        /// What went wrong.
        source: io::Error,
    },
    /// A program ended with a failure.
    #[error("{program} failed ({status}); its output ends with: {output_end}")]
    Failed {
        /// The program.
        program: String,
        /// Its exit status.
        status: String,
        /// The end of what it printed.
        output_end: String,
    },
    /// A program took too long and was stopped.
    #[error("{program} was not {what} after {seconds} s; its output ends with: {output_end}")]
    Late {
        /// The program.
        program: String,
        /// What was waited for.
        what: &'static str,
        /// How long.
        seconds: u64,
        /// The end of what it printed.
        output_end: String,
    },
    /// A load ended well, but without the number that it should print.
    #[error(
        "{program} printed no throughput; is its version supported? Its output ends with: {output_end}"
    )]
    NoThroughput {
        /// The program.
        program: String,
        /// The end of what it printed.
        output_end: String,
    },
    /// A file or directory could not be made, read or written.
    #[error("{}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
    /// The cluster cannot be used.
    #[error("cannot use the cluster: {why}")]
    Cluster {
        /// What it lacks or said.
        why: String,
    },
    /// A file of the host could not be read.
    #[error("cannot read a setting of this host: {why}")]
    Host {
        /// Which, and why.
        why: String,
    },
    /// The kernel of this machine, or a program, lacks something.
    #[error("this machine has no {what}: {why}")]
    Lacking {
        /// What it lacks.
        what: String,
        /// How it said so.
        why: String,
    },
    /// A scratch volume could not be made.
    #[error("no {filesystem} could be made below {}: {why}; free space, or name another directory", base.display())]
    Volume {
        /// Its filesystem.
        filesystem: &'static str,
        /// Below what.
        base: PathBuf,
        /// The last line of what went wrong.
        why: String,
    },
    /// No port of the loopback interface could be had.
    #[error("no free port on 127.0.0.1; is the loopback interface up?")]
    Port {
        /// What went wrong.
        source: io::Error,
    },
    /// This needs more privilege.
    #[error("{what} needs root; run it with sudo")]
    NeedsRoot {
        /// What was asked for.
        what: &'static str,
    },
    /// A setting of the host cannot be held, or put back.
    #[error(transparent)]
    Changes(#[from] TemporaryError),
    /// A pool of huge pages cannot be read or set.
    #[error(transparent)]
    Pages(#[from] PoolError),
    /// The kernel did not find enough huge pages.
    #[error("got {got} of {wanted} huge pages of {size}; free memory or ask for fewer")]
    Pool {
        /// Of which size.
        size: Bytes,
        /// How many were asked for.
        wanted: u64,
        /// How many there were.
        got: u64,
    },
}

/// Turns an I/O error into one that names its file.
pub(crate) fn at(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> SceneError {
    let path = path.into();
    move |source| SceneError::File { path, source }
}
