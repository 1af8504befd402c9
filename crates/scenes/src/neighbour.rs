//! Neighbours: programs that take what a database beside them would need.

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

/// Takes `$1` MiB for a second, `$2` times at once, again and again. It takes memory rather than CPUs:
/// who copies it waits until nobody wants it any more.
const TAKE: &str = r#"
left=$2
while [ "$left" -gt 0 ]; do
    setpriv --pdeathsig=KILL -- /bin/sh -c '
        while :; do
            dd if=/dev/zero bs="$1M" count=1 | sleep 1
        done' \
        take "$1" &
    left=$((left - 1))
done
wait
"#;

/// Writes `$2` files of 4 MiB below `$1` in pieces of 16 KiB, past the page cache, again and again; they are
/// gone when it ends. Small files: what a loop device may have in memory of them when it is flushed makes a
/// filesystem that hangs, which is another cause.
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

/// A program beside the database; ended when dropped.
pub struct Neighbour {
    // In this order: the programs end, then their group goes.
    _shell: Shell,
    _group: Group,
}

impl Neighbour {
    /// Keeps so many CPUs busy.
    pub fn spinning(count: u32) -> Result<Self, SceneError> {
        Self::start(SPIN, &[count.to_string()], Group::for_neighbours()?)
    }

    /// Takes so many MiB, so many times at once, again and again; in a group below another one.
    pub fn taking_memory(mebibytes: u64, count: u32, above: &Group) -> Result<Self, SceneError> {
        let arguments = [mebibytes.to_string(), count.to_string()];
        Self::start(TAKE, &arguments, Group::neighbours_below(above)?)
    }

    /// Writes so many files to a disk, again and again.
    pub fn writing(directory: &Path, count: u32) -> Result<Self, SceneError> {
        let arguments = [directory.to_string_lossy().into_owned(), count.to_string()];
        Self::start(WRITE, &arguments, Group::for_neighbours()?)
    }

    fn start(script: &str, arguments: &[String], group: Group) -> Result<Self, SceneError> {
        program::find("setpriv", "util-linux")?;
        let shell = words(["/bin/sh", "-c", script, "untax-lab-neighbour"]);
        let line = [group.enter_command(), shell, arguments.to_vec()].concat();
        let shell = Shell::run(&line, "KILL", Path::new("/dev/null"), Path::new("/"))?;
        Ok(Self { _shell: shell, _group: group })
    }
}
