//! What an engine is, and how a server of it is asked.

use crate::answer::Answer;
use crate::database_view::{DatabaseView, Description};
use crate::endpoint::Endpoint;
use crate::process_table::{Candidate, Role, Table};
use crate::settings::Values;
use untax_core::Reading;
use untax_core::database::{DataPlace, ProcessRole, Traits};
use untax_core::io::Role as FileRole;

/// A kind of database, and how it is found and read.
pub struct Engine {
    /// Its id, and the name of its file.
    pub id: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// Who may read all of it; others see gaps with the reason.
    pub privilege: &'static str,
    /// The oldest kernel on which all of it can be read.
    pub minimum_kernel: &'static str,
    /// What reading it costs the database.
    pub cost: &'static str,
    /// How it serves a connection: by a process, a thread, or one thread for all.
    pub connection_model: &'static str,
    /// Where its throughput usually ends on a sound platform.
    pub usual_bottleneck: &'static str,
    /// Which parts untax reads for this engine alone, beside the time of its threads.
    pub reads: &'static str,
    /// What was not tried on a real server of it.
    pub unproven: &'static str,
    /// Base names of its program. A version or `.real` after the name is allowed for.
    pub(crate) programs: &'static [&'static str],
    /// What is known of it, for those that judge.
    pub(crate) traits: fn() -> Traits,
    /// Symbols that its program exports to its modules: a program of another name that exports them all
    /// is this engine's. Empty where none are known.
    pub(crate) exports: &'static [&'static str],
    /// What part one process of that program plays.
    pub(crate) role: fn(&Candidate) -> Role,
    /// What a process of its is for, by its title, or a thread, by its name; `None` where that does not tell.
    pub(crate) process_role: fn(&str) -> Option<ProcessRole>,
    /// The processes of the database whose main process is given.
    pub(crate) members: fn(&Table, u32) -> Vec<u32>,
    /// Settings from its files and command line.
    pub(crate) settings: fn(&DatabaseView) -> Values,
    /// Directories beside that of the data.
    pub(crate) places: fn(&DatabaseView) -> Vec<DataPlace>,
    /// Beginnings of names of files and directories below its directories, eight bytes at most, that tell
    /// a role of their own. Names that it makes while it runs have to be here; for those that are there
    /// from the start, the place is looked up.
    pub(crate) file_names: &'static [(&'static str, FileRole)],
    /// All else.
    pub(crate) describe: fn(&DatabaseView) -> Description,
    /// Whether one process holds all the data as its own memory.
    pub(crate) single_process: bool,
    /// How its server is asked over its socket, where that is done.
    pub(crate) asking: Option<Asking>,
}

/// How a server is asked. Runs in a child process of its own.
pub(crate) struct Asking {
    /// Whom it is worth being, in turn.
    pub identities: &'static [Identity],
    /// Whether a Unix socket of this path, on which the server listens, is the one for clients.
    pub is_socket: fn(&str) -> bool,
    /// Whether a Unix socket of this path is likely to be such a server's, whoever listens.
    pub looks_so: fn(&str) -> bool,
    /// Whether a server that has no socket may be asked over TCP on the loopback.
    pub over_tcp: bool,
    /// Asks.
    pub ask: fn(&Endpoint) -> Reading<Answer>,
}

/// The OS user that a server is asked as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Identity {
    /// The user that runs the server.
    Server,
    /// The superuser.
    Root,
}

impl Identity {
    pub fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Root => "root",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Server, Self::Root].into_iter().find(|identity| identity.name() == name)
    }
}
