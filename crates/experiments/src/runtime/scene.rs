//! What an arm is put into.

use crate::platform::Cell;
use std::path::Path;
use std::rc::Rc;
use untax_scenes::{Group, Job, Network, Runtime, SceneError, Setting, Setup};

/// Memory of an arm that goes through a file, page cache included. The file is four times as large, so that the
/// cache never holds it.
pub(super) const FILE_MEMORY: u64 = 64 << 20;
/// Of the file.
pub(super) const FILE_BYTES: u64 = 4 * FILE_MEMORY;

/// What an arm is put into; fields are dropped in this order.
pub(super) struct Scene {
    pub(super) runtime: Runtime,
    /// What the group may use at most; put back before the group goes.
    pub(super) _limits: Vec<Setting>,
    pub(super) group: Option<Group>,
    pub(super) network: Rc<Network>,
}

impl Scene {
    /// A directory in which programs run in the arm, on the server's CPUs; it shows them our own.
    pub(super) fn job(&self, program: &Path, cell: &Cell) -> Result<Job, SceneError> {
        Job::new(&Setup {
            runtime: self.runtime,
            group: self.group.as_ref(),
            network: Some(&self.network),
            before_server: &cell.cpus.server_words(),
            shown: &[program],
            ..Setup::default()
        })
    }
}
