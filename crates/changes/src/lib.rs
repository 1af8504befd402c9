//! The one way to change a host and to put it back.
//!
//! A change is a target that gets another value. Its prior value is in a receipt on disk before the
//! target is written, so that whatever ends this process, undoing the receipt leaves the host as it
//! was. A plan is applied until somebody undoes it ([`executor`]). What a bench changes does not stay
//! ([`temporary`]): a process of its own puts it back ([`guard`]).

pub mod affinity;
mod announced;
pub mod class;
pub mod executor;
pub mod guard;
pub mod lock;
pub mod pool;
pub mod receipt;
mod refresh;
mod restore;
pub mod target;
pub mod temporary;
mod tree;

pub use announced::Announced;
pub use executor::{ExecutorError, Undone, apply, standing, undo};
pub use guard::{Guard, GuardError, Program};
pub use lock::{Lock, LockError};
pub use pool::{Pool, PoolError};
pub use receipt::{Receipt, ReceiptError};
pub use restore::RestoreError;
pub use temporary::{Temporary, TemporaryError, recover};
pub use tree::Tree;
