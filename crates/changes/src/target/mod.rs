//! What can be changed: each kind of target has a value, a string or absent, that can be read and
//! set. A kind is one file here, one variant of `untax_core::plan::Target` and one line in [`of`].

mod affinity;
mod block;
mod class;
mod device_limit;
mod dirty;
mod file;
mod grubby;
mod kernel;
mod kind;
mod pool;
mod service;

pub use block::{Added, alike, loose, remove_loose};

use crate::tree::Tree;
use kind::Kind;
use std::io;
use untax_core::plan::Target;

fn of(target: &Target) -> Box<dyn Kind + '_> {
    match target {
        Target::Pool { directory } => Box::new(pool::Pool(directory)),
        Target::Word { file } => Box::new(kernel::Word(file)),
        Target::Value { file } => Box::new(kernel::Value(file)),
        Target::Dirty { what } => Box::new(dirty::Dirty(what)),
        Target::DeviceLimit { file, device } => {
            Box::new(device_limit::DeviceLimit { file, device })
        }
        Target::File { file } => Box::new(file::File(file)),
        Target::Block { file } => Box::new(block::Block(file)),
        Target::Service { unit } => Box::new(service::Service(unit)),
        Target::Grubby => Box::new(grubby::Grubby),
        Target::Affinity { family, cpus } => Box::new(affinity::Affinity { family, cpus }),
        Target::Class { family } => Box::new(class::Class(family)),
    }
}

/// The file that is read to know a target's value, for messages and checks of permissions.
pub fn file(target: &Target) -> Option<String> {
    of(target).file()
}

/// Its value now; `None` when it is not there.
pub fn read(tree: &Tree, target: &Target) -> io::Result<Option<String>> {
    match of(target).read(tree) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read,
    }
}

/// Sets it; `None` removes it. Setting the value that it has is harmless.
pub fn write(tree: &Tree, target: &Target, value: Option<&str>) -> io::Result<()> {
    of(target).write(tree, value)
}

/// Whether a value lies on the way from one to another, because writing was ended half way.
pub fn is_between(
    target: &Target,
    from: Option<&str>,
    now: Option<&str>,
    to: Option<&str>,
) -> bool {
    of(target).is_between(from, now, to)
}

/// Whether it belongs to the kernel, which removes it with what it is about: a control group that
/// ended has no limit left to put back.
pub fn is_of_kernel(target: &Target) -> bool {
    matches!(
        target,
        Target::Pool { .. }
            | Target::Word { .. }
            | Target::Value { .. }
            | Target::DeviceLimit { .. }
            | Target::Affinity { .. }
            | Target::Class { .. }
    )
}
