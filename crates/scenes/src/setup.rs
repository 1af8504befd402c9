//! How a scratch server is set up.

use crate::engine::Engine;
use crate::group::Group;
use crate::network::Network;
use crate::release::Release;
use std::path::Path;

/// A program that starts containers as the OCI specifies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OciRuntime {
    /// The words before its subcommand: what enters a namespace, the program, and its options.
    pub words: &'static [String],
}

/// What runs a scratch server: the host itself or a container runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runtime {
    /// As an ordinary process.
    Host,
    /// In a container of runc that sees this machine's programs and the server's own directory.
    Runc,
    /// The same, of an image without a machine id of its own: it has that of this machine.
    Clone,
    /// In a sandbox of gVisor that sees the same, in this machine's network.
    Gvisor,
    /// In a container of any runtime that sees the same, below the group and in the network of its setup.
    Oci(OciRuntime),
    /// In plain namespaces, made by bubblewrap, in the group and the network of its setup.
    Bubblewrap,
}

impl Runtime {
    /// Whether it is put into the group and the network that its setup names; the others make their own.
    pub(crate) fn is_placed(self) -> bool {
        matches!(self, Self::Host | Self::Oci(_) | Self::Bubblewrap)
    }

    /// Whether a socket that a server makes may exist in there alone.
    pub(crate) fn hides_sockets(self) -> bool {
        matches!(self, Self::Gvisor | Self::Oci(_))
    }
}

/// Settings of a server by name, in the server's own words; later ones win.
pub type Settings<'a> = &'a [(&'a str, &'a str)];

/// How a scratch server is set up: by default as an ordinary process whose data may be lost.
#[derive(Clone, Copy)]
pub struct Setup<'a> {
    /// Which server it is; that which is installed by default.
    pub release: Option<Release>,
    /// What runs it.
    pub runtime: Runtime,
    /// Its settings, in its own words; later ones win.
    pub settings: Settings<'a>,
    /// The control group that it runs in; a container makes one for itself.
    pub group: Option<&'a Group>,
    /// The directory below which its data are, when that is to be on a disk of its own.
    pub disk: Option<&'a Path>,
    /// The network of the server and its loads.
    pub network: Option<&'a Network>,
    /// The words that go before the command of the server, such as those of `taskset`.
    pub before_server: &'a [String],
    /// The same for each of its clients.
    pub before_clients: &'a [String],
    /// Files and directories of this machine that it sees besides the usual ones, where it is in a container.
    pub shown: &'a [&'a Path],
    /// The port of the server, where clients elsewhere must know it; any that is free otherwise. It then
    /// listens on all addresses of its own network, and lets everybody in.
    pub port: Option<u16>,
    /// Whether its data are to survive a crash, as in production: with flushing, a journal and
    /// checkpoints.
    pub durable: bool,
}

impl Setup<'_> {
    /// Whether it is a MariaDB or a MySQL.
    pub(crate) fn is_mysql(&self) -> bool {
        self.release.is_some_and(|release| release.engine == Engine::Mysql)
    }
}

impl Default for Setup<'_> {
    fn default() -> Self {
        Self {
            release: None,
            runtime: Runtime::Host,
            settings: &[],
            group: None,
            disk: None,
            network: None,
            before_server: &[],
            before_clients: &[],
            shown: &[],
            port: None,
            durable: false,
        }
    }
}
