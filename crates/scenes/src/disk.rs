//! A disk: a filesystem in a file, mounted through a loop device.

use crate::group::{Group, Version};
use crate::setting::{Override, Setting};
use crate::shell::Shell;
use crate::{SceneError, program};
use std::borrow::Cow;
use std::path::Path;
use untax_host::Host;

/// Makes a filesystem of `$1` MiB with mkfs `$2`, and prints its mount point and its device. Without
/// lazy initialisation, which would write during a measurement. With direct I/O where the file's own
/// filesystem supports it: else the device buffers writes in memory, and a flush of the database waits
/// for all that a neighbour wrote.
const MAKE: &str = r#"
directory=$(mktemp -d -t untax-lab.XXXXXXXX) && chmod 755 "$directory" && mkdir "$directory/mount" &&
    truncate -s "$1M" "$directory/image" &&
    "$2" -q -F -m 0 -E lazy_itable_init=0,lazy_journal_init=0 "$directory/image" &&
    device=$(losetup --find --show --direct-io=on "$directory/image") &&
    mount -o noatime "$device" "$directory/mount" &&
    echo "$directory/mount $device" || echo
"#;

/// Unmounts and deletes it as soon as the server on it has ended.
pub(crate) const REMOVE: &str = r#"
ticks=1200
while mountpoint -q "$directory/mount" && [ "$ticks" -gt 0 ]; do
    umount "$directory/mount" || sleep 0.1
    ticks=$((ticks - 1))
done 2>/dev/null
[ -z "$device" ] || losetup --detach "$device"
[ -z "$directory" ] || remove "$directory"
"#;

/// Freezes the filesystem at `$1` for `$2` seconds, thaws it for `$3`, and so on.
const FREEZE: &str = r#"
echo
(trap stop=yes TERM
 stop=
 while [ -z "$stop" ]; do
     fsfreeze --freeze "$1"; sleep "$2"; fsfreeze --unfreeze "$1"; sleep "$3"
 done) >/dev/null 2>&1 </dev/null &
loop=$!
"#;

/// Ends the loop, which thaws the filesystem; and thaws it once more in case the loop was killed.
const UNFREEZE: &str = r#"
kill -s TERM "$loop"
wait "$loop"
fsfreeze --unfreeze "$1" 2>/dev/null
"#;

/// A mounted filesystem; unmounted and removed when dropped.
pub struct Disk {
    guard: Shell,
}

/// A filesystem that is frozen again and again, until dropped.
pub struct FreezeLoop {
    _guard: Shell,
}

impl Disk {
    /// Whether this host has the loop devices that it takes.
    pub fn is_possible() -> bool {
        Host::live().text("/sys/class/block/loop0/dev").is_present()
    }

    /// Makes an ext4 filesystem of so many MiB. The file is sparse.
    pub fn make(mebibytes: u64) -> Result<Self, SceneError> {
        if !crate::account::is_root() {
            return Err(SceneError::NeedsRoot { what: "a filesystem of its own" });
        }
        let mkfs = program::find("mkfs.ext4", "e2fsprogs")?;
        program::find("losetup", "mount")?;
        let arguments = [mebibytes.to_string(), mkfs.to_string_lossy().into_owned()];
        let guard = Shell::guard(MAKE, REMOVE, &arguments)?;
        if guard.first_line.is_empty() {
            let why = "no filesystem could be mounted through a loop device".to_owned();
            return Err(SceneError::Host { why });
        }
        Ok(Self { guard })
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        Path::new(self.guard.first_line.split(' ').next().unwrap_or_default())
    }

    /// Its device, such as `/dev/loop0`.
    pub fn device(&self) -> &str {
        self.guard.first_line.split(' ').nth(1).unwrap_or_default()
    }

    /// Limits how many operations or bytes a second it does in one direction for a server's group,
    /// and with control groups of version 1 for the kernel, which does the rest of the server's
    /// writing: there it is in the root group, whose limits do not hold for those below.
    pub fn limit(
        &self,
        group: &Group,
        limit: Limit,
        a_second: u64,
    ) -> Result<Vec<Setting>, SceneError> {
        let number = number(self.device())?;
        let value = a_second.to_string();
        match group.directory("blkio", "io")? {
            (Version::V1, directory) => {
                let root = Path::new(directory).parent().map(Path::to_string_lossy);
                let groups = [Cow::from(directory), root.unwrap_or_default()];
                let line = |value: &str| format!("{number} {value}");
                let set = |group: &Cow<str>| {
                    let file = format!("{group}/blkio.throttle.{}_device", limit.v1());
                    Setting::set(&file, &line("0"), &line(&value))
                };
                groups.iter().map(set).collect()
            }
            (Version::V2, directory) => {
                let line = |value: &str| format!("{number} {}={value}", limit.v2());
                let file = format!("{directory}/io.max");
                Ok(vec![Setting::set(&file, &line("max"), &line(&value))?])
            }
        }
    }

    /// Limits how many requests of each direction it does a second.
    pub fn limit_requests(&self, group: &Group, a_second: u64) -> Result<Vec<Setting>, SceneError> {
        let writes = self.limit(group, Limit::WriteOperations, a_second)?;
        let reads = self.limit(group, Limit::ReadOperations, a_second)?;
        Ok(writes.into_iter().chain(reads).collect())
    }

    /// Lets a disk that does so many operations a second by these limits do others, until dropped.
    pub fn override_limits(
        limits: &[Setting],
        a_second: u64,
        other: u64,
    ) -> Result<Vec<Override>, SceneError> {
        let line = |line: &str| match line.strip_suffix(&a_second.to_string()) {
            Some(rest) => format!("{rest}{other}"),
            None => line.to_owned(),
        };
        limits.iter().map(|limit| limit.replace_value(line)).collect()
    }

    /// Freezes it for `frozen_s` seconds, thaws it for `free_s`, and so on.
    pub fn freeze_in_loop(&self, frozen_s: f64, free_s: f64) -> Result<FreezeLoop, SceneError> {
        program::find("fsfreeze", "util-linux")?;
        let path = self.path().to_string_lossy().into_owned();
        let arguments = [path, frozen_s.to_string(), free_s.to_string()];
        Ok(FreezeLoop { _guard: Shell::guard(FREEZE, UNFREEZE, &arguments)? })
    }
}

/// The number of a device such as `/dev/loop0`: `7:0`.
pub(crate) fn number(device: &str) -> Result<String, SceneError> {
    let name = device.rsplit('/').next().unwrap_or_default();
    program::host_text(&format!("/sys/class/block/{name}/dev")).map(|text| text.trim().to_owned())
}

/// A limit of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Operations that read.
    ReadOperations,
    /// Operations that write.
    WriteOperations,
    /// Bytes written.
    WriteBytes,
}

impl Limit {
    pub(crate) fn v1(self) -> &'static str {
        match self {
            Self::ReadOperations => "read_iops",
            Self::WriteOperations => "write_iops",
            Self::WriteBytes => "write_bps",
        }
    }

    pub(crate) fn v2(self) -> &'static str {
        match self {
            Self::ReadOperations => "riops",
            Self::WriteOperations => "wiops",
            Self::WriteBytes => "wbps",
        }
    }
}
