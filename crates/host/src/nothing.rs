//! Standard streams of a child that is to read nothing and say nothing.

use rustix::fs::{MemfdFlags, memfd_create};
use std::path::Path;
use std::process::Stdio;

/// `/dev/null`; in a root that does not hold it, a file in memory, which is empty to read and takes what is
/// written.
pub fn nothing() -> Stdio {
    stream(Path::new("/dev/null"))
}

fn stream(null: &Path) -> Stdio {
    if null.exists() {
        return Stdio::null();
    }
    memfd_create("nothing", MemfdFlags::CLOEXEC).map_or_else(|_| Stdio::null(), Stdio::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_child_reads_nothing_and_may_write_where_there_is_no_dev_null() {
        for null in ["/dev/null", "/dev/there/is/none"] {
            let mut child = Command::new("sh");
            child.args(["-c", "echo said >&2; test -z \"$(cat)\""]);
            let child = child.stdin(stream(Path::new(null))).stderr(stream(Path::new(null)));
            assert!(child.status().unwrap().success(), "{null}");
        }
    }
}
