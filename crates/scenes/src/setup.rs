//! How a scratch server is set up.

use crate::group::Group;
use crate::network::Network;
use crate::release::Release;
use std::path::Path;

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
    /// Whether its data are to survive a crash, as in production: with flushing, a journal and
    /// checkpoints.
    pub durable: bool,
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
            durable: false,
        }
    }
}
