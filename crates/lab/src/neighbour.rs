//! Neighbours: programs that take what a database beside them would need.

use crate::LabError;
use crate::group::Group;
use crate::program;
use crate::server::words;
use crate::shell::Shell;
use std::path::Path;

/// Keeps `$1` CPUs busy.
const SPIN: &str = r#"
left=$1
while [ "$left" -gt 0 ]; do
    setpriv --pdeathsig=KILL -- /bin/sh -c 'while :; do :; done' &
    left=$((left - 1))
done
wait
"#;

/// Writes `$2` MiB to a file below directory `$1` without flushing, `$3` times at once, again and
/// again.
const FLOOD: &str = r#"
left=$3
while [ "$left" -gt 0 ]; do
    setpriv --pdeathsig=KILL -- /bin/sh -c '
        while :; do dd if=/dev/zero of="$1" bs=1M count="$2" conv=notrunc; done' \
        flood "$1/flood.$left" "$2" &
    left=$((left - 1))
done
wait
"#;

/// Reads files of `$2` MiB below directory `$1` again and again, `$3` at once, through a memory
/// limit that holds a part of them.
const CHURN: &str = r#"
left=$3
while [ "$left" -gt 0 ]; do
    truncate -s "$2M" "$1/churn.$left"
    setpriv --pdeathsig=KILL -- /bin/sh -c '
        while :; do dd if="$1" of=/dev/null bs=1M; done' churn "$1/churn.$left" &
    left=$((left - 1))
done
wait
"#;

/// A program beside the database; ended when dropped.
pub struct Neighbour {
    // In this order: the programs end, then their group goes.
    _shell: Shell,
    _group: Group,
}

impl Neighbour {
    /// Keeps so many CPUs busy.
    pub fn spinning(count: u32) -> Result<Self, LabError> {
        Self::start(SPIN, &[count.to_string()], Group::for_neighbours()?)
    }

    /// Dirties so many MiB below a directory, so many times at once, again and again.
    pub fn flooding(directory: &Path, mebibytes: u64, count: u32) -> Result<Self, LabError> {
        let arguments = [directory.to_string_lossy().into_owned(), mebibytes.to_string()];
        let arguments = [&arguments[..], &[count.to_string()]].concat();
        Self::start(FLOOD, &arguments, Group::for_neighbours()?)
    }

    /// Reads so many MiB below a directory, so many times at once, in a group whose memory holds
    /// `limit_mebibytes` of them.
    pub fn churning(
        directory: &Path,
        mebibytes: u64,
        count: u32,
        limit_mebibytes: u64,
    ) -> Result<(Self, crate::setting::Setting), LabError> {
        let group = Group::for_neighbours()?;
        let limit = group.limit_memory(limit_mebibytes << 20)?;
        let arguments = [directory.to_string_lossy().into_owned(), mebibytes.to_string()];
        let arguments = [&arguments[..], &[count.to_string()]].concat();
        Ok((Self::start(CHURN, &arguments, group)?, limit))
    }

    fn start(script: &str, arguments: &[String], group: Group) -> Result<Self, LabError> {
        program::find("setpriv", "util-linux")?;
        let shell = words(["/bin/sh", "-c", script, "untax-lab-neighbour"]);
        let line = [group.entering(), shell, arguments.to_vec()].concat();
        let shell = Shell::run(&line, "KILL", Path::new("/dev/null"), Path::new("/"))?;
        Ok(Self { _shell: shell, _group: group })
    }
}
