//! Boot arguments where `grubby` keeps them: in an entry for each kernel.
use crate::tree::Tree;
use std::io;

pub fn read(_tree: &Tree) -> io::Result<Option<String>> {
    Err(io::ErrorKind::Unsupported.into())
}
pub fn write(_tree: &Tree, _value: Option<&str>) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
