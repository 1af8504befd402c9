//! What can be changed: each kind of target has a value, a string or absent, that can be read and
//! set. A kind is one file here, one variant of `untax_core::plan::Target` and one line in [`of`].

mod block;
mod dirty;
mod file;
mod grubby;
mod kernel;
mod pool;

pub use block::{Added, alike, loose, remove_loose};

use crate::tree::Tree;
use std::io;
use untax_core::plan::Target;

/// One kind of target.
trait Kind {
    /// The file that is read to know its value, for messages and checks of permissions.
    fn file(&self) -> Option<String>;

    /// Its value; an error of kind `NotFound`, or `None`, when it is not there.
    fn read(&self, tree: &Tree) -> io::Result<Option<String>>;

    /// Sets it; `None` removes it. Setting the value that it has is harmless.
    fn write(&self, tree: &Tree, value: Option<&str>) -> io::Result<()>;

    /// Whether a value lies on the way from one to another: a write of several parts was ended
    /// between two of them.
    fn is_between(&self, _from: Option<&str>, _now: Option<&str>, _to: Option<&str>) -> bool {
        false
    }
}

fn of(target: &Target) -> Box<dyn Kind + '_> {
    match target {
        Target::Pool { directory } => Box::new(pool::Pool(directory)),
        Target::Word { file } => Box::new(kernel::Word(file)),
        Target::Value { file } => Box::new(kernel::Value(file)),
        Target::Dirty { what } => Box::new(dirty::Dirty(what)),
        Target::File { file } => Box::new(file::File(file)),
        Target::Block { file } => Box::new(block::Block(file)),
        Target::Grubby => Box::new(grubby::Grubby),
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
    matches!(target, Target::Pool { .. } | Target::Word { .. } | Target::Value { .. })
}

/// The value to set of a file that cannot be removed.
fn require(value: Option<&str>) -> io::Result<&str> {
    value.ok_or_else(|| io::ErrorKind::InvalidInput.into())
}
