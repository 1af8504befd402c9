//! The one way to change a host and to put it back.
//!
//! A change is a target that gets another value. Its prior value is in a receipt on disk before the
//! target is written, so that whatever ends this process, undoing the receipt leaves the host as it
//! was.

pub mod executor;
mod grubby;
pub mod receipt;
pub mod target;
mod tree;

pub use executor::{ExecutorError, Undone, apply, standing, undo};
pub use receipt::{Receipt, ReceiptError};
pub use tree::Tree;
