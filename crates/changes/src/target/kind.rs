//! What every kind of target can do.

use crate::tree::Tree;
use std::io;

/// One kind of target.
pub trait Kind {
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

/// The value to set of a file that cannot be removed.
pub fn require(value: Option<&str>) -> io::Result<&str> {
    value.ok_or_else(|| io::ErrorKind::InvalidInput.into())
}
