//! Windows of causes whose gains were measured: what predictions are held against.

use crate::Window;
use crate::lab::LabRun;
use serde::{Deserialize, Serialize};

/// The schema's name and version.
pub const SCHEMA: &str = "untax.truth/1";

/// One cause on one server: what was measured, and what checks saw beside the trials with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// `untax.truth/1`.
    pub schema: String,
    /// The trials.
    pub run: LabRun,
    /// The window of each check with the cause.
    pub windows: Vec<Window>,
}

impl Recorded {
    /// A recording without the names of programs that are no part of the scene: they are the machine's.
    pub fn new(run: LabRun, mut windows: Vec<Window>, is_of_scene: impl Fn(&str) -> bool) -> Self {
        for other in windows.iter_mut().flat_map(|window| &mut window.others) {
            if !is_of_scene(&other.name) {
                "other".clone_into(&mut other.name);
                other.cgroup = crate::Reading::absent("left out of the recording");
            }
        }
        Self { schema: SCHEMA.to_owned(), run, windows }
    }
}
