//! Noisy neighbours: programs that use CPUs, memory or a disk that a database needs.

use crate::SceneError;
use crate::group::Group;
use crate::program;
use crate::program::words;
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

/// Allocates `$1` MiB for a second, again and again, in `$2` processes at once. It uses memory rather
/// than CPUs: the process that copies the data waits while the other one sleeps.
const ALLOCATE: &str = r#"
left=$2
while [ "$left" -gt 0 ]; do
    setpriv --pdeathsig=KILL -- /bin/sh -c '
        while :; do
            dd if=/dev/zero bs="$1M" count=1 | sleep 1
        done' \
        allocate "$1" &
    left=$((left - 1))
done
wait
"#;

/// Writes `$2` files of 4 MiB below `$1` in pieces of 16 KiB, past the page cache, again and again; the
/// files are deleted already, so nothing is left. They are small: a flush of a loop device that holds
/// much of them in memory would make the filesystem hang, which is another cause.
const WRITE: &str = r#"
left=$2
while [ "$left" -gt 0 ]; do
    setpriv --pdeathsig=KILL -- /bin/sh -c '
        exec 3<>"$1" && rm "$1"
        while :; do
            dd if=/dev/zero of=/dev/fd/3 bs=16k count=256 oflag=direct conv=notrunc status=none ||
                sleep 1
        done' \
        write "$1/neighbour.$left" &
    left=$((left - 1))
done
wait
"#;

/// Reads a file of `$2` MiB below `$1` again and again, through the page cache; it is deleted already, so nothing
/// is left.
const READ: &str = r#"
exec 3<>"$1/neighbour.read" && rm "$1/neighbour.read"
dd if=/dev/zero of=/dev/fd/3 bs=1M count="$2" conv=fsync status=none
while :; do
    dd if=/dev/fd/3 of=/dev/null bs=64k status=none || sleep 1
done
"#;

/// A program beside the database; ended when dropped.
pub struct Neighbour {
    // In this order: the programs end, then their group goes.
    _shell: Shell,
    group: Group,
}

impl Neighbour {
    /// A neighbour that keeps so many CPUs busy.
    pub fn of_cpus(count: u32) -> Result<Self, SceneError> {
        Self::start(SPIN, &[count.to_string()], Group::for_neighbours()?)
    }

    /// A neighbour that allocates so many MiB in `count` processes at once, again and again; in a group
    /// below another one.
    pub fn of_memory(mebibytes: u64, count: u32, above: &Group) -> Result<Self, SceneError> {
        let arguments = [mebibytes.to_string(), count.to_string()];
        Self::start(ALLOCATE, &arguments, Group::neighbours_below(above)?)
    }

    /// A neighbour that writes so many files to a disk, again and again.
    pub fn of_disk(directory: &Path, count: u32) -> Result<Self, SceneError> {
        let arguments = [directory.to_string_lossy().into_owned(), count.to_string()];
        Self::start(WRITE, &arguments, Group::for_neighbours()?)
    }

    /// A neighbour that reads a file of so many MiB on a disk, again and again.
    pub fn of_reads(directory: &Path, mebibytes: u64) -> Result<Self, SceneError> {
        let arguments = [directory.to_string_lossy().into_owned(), mebibytes.to_string()];
        Self::start(READ, &arguments, Group::for_neighbours()?)
    }

    /// Its control group.
    pub fn group(&self) -> &Group {
        &self.group
    }

    fn start(script: &str, arguments: &[String], group: Group) -> Result<Self, SceneError> {
        program::find("setpriv", "util-linux")?;
        let shell = words(["/bin/sh", "-c", script, "untax-lab-neighbour"]);
        let line = [group.enter_command(), shell, arguments.to_vec()].concat();
        let shell = Shell::run(&line, "KILL", Path::new("/dev/null"), Path::new("/"))?;
        Ok(Self { _shell: shell, group })
    }
}
