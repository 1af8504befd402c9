//! Scratch volumes: a filesystem of each kind below a given directory, for benches of storage.
//!
//! Images are written in full with random bytes, and nothing is discarded later. In a sparse or
//! preallocated image the filesystem below would read zeros without its disk, and allocate blocks in
//! the middle of a measurement.

use crate::disk::{Limit, REMOVE};
use crate::group::{Group, Version};
use crate::program::words;
use crate::setting::Setting;
use crate::shell::Shell;
use crate::{SceneError, program};
use std::path::{Path, PathBuf};
use untax_host::Host;

/// Makes a directory below `$1`, and in it `mount`: the volume of kind `$2` with `$3` MiB. `$4…` make the
/// filesystem in the image that follows. Prints `made`, the device or `none`, and the directory; else the last
/// line of what went wrong.
const MAKE: &str = r#"
base=$1 kind=$2 size=$3
shift 3
directory='' device=''
attempt() {
    directory=$(mktemp -d "$base/untax-bench.XXXXXXXX") &&
        chmod 755 "$directory" && mkdir "$directory/mount" || return
    case $kind in
    directory) ;;
    tmpfs) mount -t tmpfs -o "size=${size}M,mode=755" tmpfs "$directory/mount" ;;
    overlayfs)
        mkdir "$directory/lower" "$directory/upper" "$directory/work" &&
            mount -t overlay -o "lowerdir=$directory/lower,upperdir=$directory/upper,workdir=$directory/work" \
                overlay "$directory/mount"
        ;;
    *)
        dd if=/dev/urandom of="$directory/image" bs=1M count="$size" conv=fsync status=none &&
            "$@" "$directory/image" >/dev/null &&
            device=$(losetup --find --show --direct-io=on "$directory/image") &&
            mount -t "$kind" -o noatime,nodiscard "$device" "$directory/mount"
        ;;
    esac
}
errors=$(mktemp)
if attempt "$@" 2>"$errors"; then
    why="made ${device:-none} $directory"
else
    why=$(tail -n 1 "$errors")
fi
rm -f "$errors"
printf '%s\n' "$why"
"#;

/// A kind of filesystem that a scratch volume may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filesystem {
    /// A directory of the filesystem that is there.
    Directory,
    /// A layer over such a directory, as containers have it.
    Overlay,
    /// ext4 on a loop device.
    Ext4,
    /// XFS on a loop device.
    Xfs,
    /// Btrfs on a loop device.
    Btrfs,
    /// Memory.
    Tmpfs,
}

impl Filesystem {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Directory, Self::Overlay, Self::Ext4, Self::Xfs, Self::Btrfs, Self::Tmpfs];

    /// Its name, as the kernel has it.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Directory => "directory",
            Self::Overlay => "overlayfs",
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
            Self::Tmpfs => "tmpfs",
        }
    }

    /// The program that makes it in an image, its package, and its words: none of them discards.
    const fn maker(self) -> Option<(&'static str, &'static str, &'static [&'static str])> {
        match self {
            Self::Directory | Self::Overlay | Self::Tmpfs => None,
            Self::Ext4 => Some(("mkfs.ext4", "e2fsprogs", EXT4)),
            Self::Xfs => Some(("mkfs.xfs", "xfsprogs", &["-q", "-K", "-f"])),
            Self::Btrfs => Some(("mkfs.btrfs", "btrfs-progs", &["-q", "-K", "-f"])),
        }
    }

    /// Its name in `/proc/filesystems`; none for a directory.
    const fn kernel_name(self) -> Option<&'static str> {
        match self {
            Self::Directory => None,
            Self::Overlay => Some("overlay"),
            other => Some(other.id()),
        }
    }

    /// Whether it takes an image as large as itself.
    pub const fn has_image(self) -> bool {
        self.maker().is_some()
    }

    /// Why it cannot be made below a directory here; none where nothing speaks against it.
    pub fn obstacle(self, base: &Path) -> Option<String> {
        let host = Host::live();
        let name = self.kernel_name()?;
        if !crate::account::is_root() {
            return Some("mounting it needs root; run it with sudo".to_owned());
        }
        let known = host.text("/proc/filesystems").into_value().unwrap_or_default();
        let has = |line: &str| line.split_whitespace().next_back() == Some(name);
        let modules =
            known.lines().any(has) || host.exists("/proc/modules") && self.is_module(&host);
        if !modules {
            return Some(format!("this kernel has no {name}; name a directory on one with --path"));
        }
        if self == Self::Overlay && base.to_string_lossy().contains([',', ':', '\\']) {
            return Some("overlayfs takes no ',', ':' or '\\' in a path".to_owned());
        }
        let (program, package, _) = self.maker()?;
        if !host.text("/sys/class/block/loop0/dev").is_present() {
            return Some("this machine has no loop devices (/sys/class/block/loop0)".to_owned());
        }
        let programs = [program::find(program, package), program::find("losetup", "mount")];
        programs.into_iter().find_map(Result::err).map(|error| error.to_string())
    }

    /// Whether it may be loaded as a module.
    fn is_module(self, host: &Host) -> bool {
        let release = host.text("/proc/sys/kernel/osrelease").into_value().unwrap_or_default();
        let list = format!("/lib/modules/{}/modules.dep", release.trim());
        let name = self.kernel_name().unwrap_or_default();
        let wanted = format!("/{name}.ko");
        host.text(&list).into_value().is_some_and(|text| text.contains(&wanted))
    }
}

/// Without lazy initialisation, which would write during a measurement.
const EXT4: &[&str] =
    &["-q", "-F", "-m", "0", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"];

/// A scratch volume; unmounted and removed when dropped.
pub struct Volume {
    _guard: Shell,
    directory: PathBuf,
    device: String,
}

impl Volume {
    /// Makes a volume of so many MiB below a directory.
    pub fn make(filesystem: Filesystem, base: &Path, mebibytes: u64) -> Result<Self, SceneError> {
        let mut arguments = words([
            &base.to_string_lossy(),
            filesystem.kernel_name().map_or("directory", |_| filesystem.id()),
            &mebibytes.to_string(),
        ]);
        if let Some((program, package, options)) = filesystem.maker() {
            let program = program::find(program, package)?;
            arguments.push(program.to_string_lossy().into_owned());
            arguments.extend(options.iter().map(|word| (*word).to_owned()));
        }
        let guard = Shell::guard(MAKE, REMOVE, &arguments)?;
        let Some(made) = guard.first_line.strip_prefix("made ") else {
            let (base, why) = (base.to_owned(), guard.first_line.clone());
            return Err(SceneError::Volume { filesystem: filesystem.id(), base, why });
        };
        let (device, directory) = made.split_once(' ').unwrap_or(("none", made));
        let device = if device == "none" { "" } else { device }.to_owned();
        let directory = PathBuf::from(directory);
        Ok(Self { _guard: guard, directory, device })
    }

    /// Where its files go.
    pub fn path(&self) -> PathBuf {
        self.directory.join("mount")
    }

    /// Its loop device, such as `/dev/loop0`; empty where it has none of its own.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// Its loop device's number, such as `7:0`.
    pub fn number(&self) -> Result<String, SceneError> {
        crate::disk::number(&self.device)
    }
}

/// Limits what a group may do on a device, by its number, `major:minor`. With control groups of version 1
/// only what the group's own processes submit is limited: not what the kernel writes for them.
pub fn limit_device(
    number: &str,
    group: &Group,
    limit: Limit,
    a_second: u64,
) -> Result<Setting, SceneError> {
    match group.directory("blkio", "io")? {
        (Version::V1, directory) => {
            let file = format!("{directory}/blkio.throttle.{}_device", limit.v1());
            Setting::set(&file, &format!("{number} 0"), &format!("{number} {a_second}"))
        }
        (Version::V2, directory) => {
            let line = |value: &str| format!("{number} {}={value}", limit.v2());
            Setting::set(&format!("{directory}/io.max"), &line("max"), &line(&a_second.to_string()))
        }
    }
}
