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

/// Reads a file of `$2` MiB below directory `$1`, `$3` of them at once, again and again: sixteen MiB at
/// a time and with pauses, so that it takes memory rather than CPUs, which each new process does. The
/// files are holes, which no disk is asked for.
const READ: &str = r#"
left=$3
while [ "$left" -gt 0 ]; do
    truncate -s "$2M" "$1/read.$left"
    setpriv --pdeathsig=KILL -- /bin/sh -c '
        at=0
        while :; do
            dd if="$1" of=/dev/null bs=1M count=16 skip=$at
            at=$(((at + 16) % $2))
            sleep 0.05
        done' \
        read "$1/read.$left" "$2" &
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

    /// Reads so many MiB below a directory, so many times at once, again and again; in a group
    /// below another one.
    pub fn reading(
        directory: &Path,
        mebibytes: u64,
        count: u32,
        above: &Group,
    ) -> Result<Self, LabError> {
        let arguments = [directory.to_string_lossy().into_owned(), mebibytes.to_string()];
        let arguments = [&arguments[..], &[count.to_string()]].concat();
        Self::start(READ, &arguments, Group::neighbours_below(above)?)
    }

    fn start(script: &str, arguments: &[String], group: Group) -> Result<Self, LabError> {
        program::find("setpriv", "util-linux")?;
        let shell = words(["/bin/sh", "-c", script, "untax-lab-neighbour"]);
        let line = [group.entering(), shell, arguments.to_vec()].concat();
        let shell = Shell::run(&line, "KILL", Path::new("/dev/null"), Path::new("/"))?;
        Ok(Self { _shell: shell, _group: group })
    }
}
