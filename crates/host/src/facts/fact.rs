//! What every fact says of itself, and the function that reads it.

use crate::Host;
use untax_core::host::HostFacts;

/// Something true of the host that changes rarely, and how to read it.
pub struct Fact {
    /// Its name, and the name of its file here.
    pub id: &'static str,
    /// What it says of the host.
    pub summary: &'static str,
    /// The files, instruction or call it is read from.
    pub source: &'static str,
    /// What one must be to read it.
    pub privilege: &'static str,
    /// The first kernel that has its source.
    pub minimum_kernel: &'static str,
    /// What reading it costs.
    pub cost: &'static str,
    /// Fills its own fields and no others.
    pub read: fn(&Host, &mut HostFacts),
}
