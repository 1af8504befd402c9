//! How a scratch server is set up.

use crate::Settings;
use crate::group::Group;
use crate::network::Network;
use crate::server::Place;
use std::path::Path;

/// How a scratch server is set up: by default as an ordinary process beside everything else, with
/// data that need not last.
#[derive(Clone, Copy)]
pub struct Setup<'a> {
    /// Whether it runs in a container.
    pub place: Place,
    /// Its settings, in its own words; later ones win.
    pub settings: Settings<'a>,
    /// The control group that it runs in; a container makes one for itself.
    pub group: Option<&'a Group>,
    /// The directory below which its data are, when that is to be on a disk of its own.
    pub disk: Option<&'a Path>,
    /// The network that it listens in, and that its loads come from.
    pub network: Option<&'a Network>,
    /// Whether its data are to survive a crash, as in production: with flushing, a journal and
    /// checkpoints.
    pub durable: bool,
}

impl Default for Setup<'_> {
    fn default() -> Self {
        Self {
            place: Place::Host,
            settings: &[],
            group: None,
            disk: None,
            network: None,
            durable: false,
        }
    }
}
