//! The block devices that a directory's bytes pass, and what they counted.
//!
//! A file on a loop device passes the loop device and the disk below the image. A read that one of them did
//! not see came out of a page cache.

use serde::{Deserialize, Serialize};
use untax_core::Bytes;
use untax_host::{Host, mountinfo};

/// A sector of block statistics, whatever the device's own is (Documentation/block/stat.rst).
const SECTOR: u64 = 512;

/// How deep devices may be made of each other.
const MOST_DEPTH: u32 = 8;

/// What a directory's bytes pass on their way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Way {
    /// The filesystem, as the kernel names it.
    pub(crate) filesystem: String,
    /// From the filesystem down to the disk; none where it has no block device.
    pub(crate) devices: Vec<Device>,
    /// Why more cannot be told; none where the way is known to its end.
    pub(crate) gap: Option<String>,
}

/// One block device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Device {
    /// Its name, such as `vda1`.
    pub(crate) name: String,
    /// Its number, `major:minor`.
    pub(crate) number: String,
    /// The number of the whole device, which limits are set on.
    pub(crate) whole: String,
}

/// What a device moved so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Moved {
    /// Read from it.
    pub(crate) read: Bytes,
    /// Written to it.
    pub(crate) written: Bytes,
}

impl Moved {
    /// What was moved since an earlier moment.
    pub(crate) fn since(self, earlier: Self) -> Self {
        let less = |now: Bytes, before: Bytes| Bytes(now.0.saturating_sub(before.0));
        Self { read: less(self.read, earlier.read), written: less(self.written, earlier.written) }
    }
}

impl Device {
    /// What it moved so far; none where that cannot be read.
    pub(crate) fn moved(&self, host: &Host) -> Option<Moved> {
        let text = host.text(&format!("/sys/dev/block/{}/stat", self.number)).into_value()?;
        let fields: Vec<u64> = text.split_whitespace().map_while(|f| f.parse().ok()).collect();
        let sectors = |at: usize| fields.get(at).map(|sectors| Bytes(sectors * SECTOR));
        Some(Moved { read: sectors(2)?, written: sectors(6)? })
    }
}

/// One line of `/proc/self/mountinfo`.
struct Mount {
    number: String,
    point: String,
    filesystem: String,
    source: String,
    options: String,
}

/// The way of a path without links, as `canonicalize` gives it.
pub(crate) fn way(host: &Host, path: &str) -> Way {
    follow(host, path, 0)
}

fn follow(host: &Host, path: &str, depth: u32) -> Way {
    let Some(mount) = mount_of(host, path) else {
        let gap = format!("/proc/self/mountinfo has no mount for {path}");
        return Way { filesystem: "unknown".to_owned(), devices: Vec::new(), gap: Some(gap) };
    };
    let filesystem = mount.filesystem.clone();
    let (devices, gap) = match mount.filesystem.as_str() {
        "overlay" if depth < MOST_DEPTH => match mount.option("upperdir=") {
            Some(upper) if upper.starts_with('/') => {
                let below = follow(host, &upper, depth + 1);
                (below.devices, below.gap)
            }
            _ => (Vec::new(), Some("its upper layer cannot be told from its options".to_owned())),
        },
        _ => match mount.device(host) {
            Some(name) => below(host, &name, depth),
            None => (Vec::new(), Some(format!("{filesystem} has no block device here"))),
        },
    };
    Way { filesystem, devices, gap }
}

/// A device and those below it.
fn below(host: &Host, name: &str, depth: u32) -> (Vec<Device>, Option<String>) {
    let Some(device) = device(host, name) else {
        return (Vec::new(), Some(format!("/sys/class/block has no {name}")));
    };
    if depth >= MOST_DEPTH {
        return (vec![device], Some(format!("{name} is made of too many others")));
    }
    if name.starts_with("zram") || name.starts_with("ram") {
        return (vec![device], Some(format!("{name} is memory")));
    }
    let image = host.text(&format!("/sys/class/block/{name}/loop/backing_file")).into_value();
    let (rest, gap) = match image {
        Some(image) => {
            let way = follow(host, image.trim_end(), depth + 1);
            (way.devices, way.gap)
        }
        None => parts(host, name, depth),
    };
    (std::iter::once(device).chain(rest).collect(), gap)
}

/// The one device that a mapped device is made of. Bytes spread over several cannot be told apart.
fn parts(host: &Host, name: &str, depth: u32) -> (Vec<Device>, Option<String>) {
    let parts = host.names(&format!("/sys/class/block/{name}/slaves")).into_value();
    match parts.as_deref().unwrap_or_default() {
        [only] => below(host, only, depth + 1),
        _ => (Vec::new(), None),
    }
}

fn device(host: &Host, name: &str) -> Option<Device> {
    let number = |path: String| host.text(&path).into_value().map(|text| text.trim().to_owned());
    let own = number(format!("/sys/class/block/{name}/dev"))?;
    let is_part = host.text(&format!("/sys/class/block/{name}/partition")).is_present();
    let whole = is_part.then(|| {
        let link = host.link(&format!("/sys/class/block/{name}")).into_value()?;
        let above = link.rsplit('/').nth(1)?.to_owned();
        number(format!("/sys/class/block/{above}/dev"))
    });
    let whole = whole.flatten().unwrap_or_else(|| own.clone());
    Some(Device { name: name.to_owned(), number: own, whole })
}

/// The mount that a path is on: the longest mount point above it, the latest of several at one place.
fn mount_of(host: &Host, path: &str) -> Option<Mount> {
    let text = host.text("/proc/self/mountinfo").into_value()?;
    let is_above = |mount: &Mount| {
        let rest = path.strip_prefix(mount.point.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    text.lines().filter_map(Mount::parse).filter(is_above).max_by_key(|mount| mount.point.len())
}

impl Mount {
    fn parse(line: &str) -> Option<Self> {
        let (left, right) = line.split_once(" - ")?;
        let mut left = left.split(' ');
        let number = left.nth(2)?.to_owned();
        let point = mountinfo::unescape(left.nth(1)?);
        let mut right = right.split(' ');
        let filesystem = right.next()?.to_owned();
        let source = mountinfo::unescape(right.next()?);
        let options = right.next().unwrap_or_default().to_owned();
        Some(Self { number, point, filesystem, source, options })
    }

    /// The name of its device. Filesystems of several devices have a number that is none of theirs, and a
    /// source such as `/dev/root` or `/dev/mapper/x` is no name of the kernel.
    fn device(&self, host: &Host) -> Option<String> {
        let last = |link: String| link.rsplit('/').next().map(str::to_owned);
        let by_number = host.link(&format!("/sys/dev/block/{}", self.number)).into_value();
        let by_source = || {
            let name = self.source.strip_prefix("/dev/")?;
            let link = host.link(&self.source).into_value();
            link.and_then(last).or_else(|| Some(name.to_owned()))
        };
        by_number.and_then(last).or_else(by_source)
    }

    fn option(&self, name: &str) -> Option<String> {
        let mut options = self.options.split(',');
        options.find_map(|option| option.strip_prefix(name)).map(mountinfo::unescape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_host::Record;

    const MOUNTS: &str = "\
27 1 254:1 / / rw - ext4 /dev/vda1 rw\n\
43 27 7:0 / /scratch\\040x rw,noatime - xfs /dev/loop0 rw\n\
44 27 0:41 / /scratch\\040x/layer rw - overlay overlay rw,lowerdir=/a,upperdir=/data/upper\\0401,workdir=/w\n\
50 27 0:46 / /many rw - btrfs /dev/mapper/secret rw\n\
45 27 0:42 / /mem rw - tmpfs tmpfs rw\n\
46 27 0:43 / /old rw - overlay overlay rw,lowerdir=a,upperdir=upper,workdir=w\n\
47 27 252:0 / /data rw - ext4 /dev/mapper/secret rw\n\
48 27 0:44 / /share rw - nfs4 server:/export rw\n\
49 27 0:45 / /mem rw - ramfs none rw\n";

    fn host() -> Host {
        let disk = "/sys/class/block";
        let record = Record::default()
            .with_file("/proc/self/mountinfo", MOUNTS)
            .with_file(&format!("{disk}/vda1/dev"), "254:1\n")
            .with_file(&format!("{disk}/vda1/partition"), "1\n")
            .with_file(&format!("{disk}/vda/dev"), "254:0\n")
            .with_link(&format!("{disk}/vda1"), "../../devices/virtio0/block/vda/vda1")
            .with_link("/sys/dev/block/254:1", "../../devices/virtio0/block/vda/vda1")
            .with_link("/sys/dev/block/7:0", "../../devices/virtual/block/loop0")
            .with_link("/sys/dev/block/252:0", "../../devices/virtual/block/dm-0")
            .with_file(&format!("{disk}/loop0/dev"), "7:0\n")
            .with_file(&format!("{disk}/loop0/loop/backing_file"), "/var/image\n")
            .with_link("/dev/mapper/secret", "../dm-0")
            .with_file(&format!("{disk}/dm-0/dev"), "252:0\n")
            .with_file(&format!("{disk}/dm-0/slaves/vda1/x"), "")
            .with_file("/sys/dev/block/7:0/stat", "  5 0 16 1 7 0 8 2 0 3 3 0 0 0 0 9 1\n");
        Host::from_record(record)
    }

    fn names(path: &str) -> Vec<String> {
        way(&host(), path).devices.into_iter().map(|device| device.name).collect()
    }

    #[test]
    fn a_loop_device_leads_on_to_the_disk_below_its_image() {
        let way = way(&host(), "/scratch x/data");
        assert_eq!(way.filesystem, "xfs");
        assert_eq!(names("/scratch x/data"), ["loop0", "vda1"]);
        assert_eq!(
            (way.devices[1].number.as_str(), way.devices[1].whole.as_str()),
            ("254:1", "254:0")
        );
        assert_eq!(way.gap, None);
    }

    #[test]
    fn an_overlay_leads_to_the_device_of_its_upper_layer() {
        assert_eq!(names("/scratch x/layer/file"), ["dm-0", "vda1"]);
        let unknown = way(&host(), "/old");
        assert!(unknown.devices.is_empty() && unknown.gap.unwrap().contains("upper layer"));
    }

    #[test]
    fn the_longest_mount_point_counts_and_the_latest_of_two() {
        assert_eq!(way(&host(), "/mem/x").filesystem, "ramfs");
        assert_eq!(way(&host(), "/memory").filesystem, "ext4", "another name that begins alike");
        assert_eq!(names("/home"), ["vda1"]);
        assert_eq!(names("/many/x"), ["dm-0", "vda1"], "by its source");
    }

    #[test]
    fn a_filesystem_without_a_block_device_says_so() {
        let way = way(&host(), "/share/pg");
        assert!(way.devices.is_empty() && way.gap.unwrap().contains("nfs4 has no block device"));
    }

    #[test]
    fn sectors_are_512_bytes() {
        let device = Device { name: "loop0".into(), number: "7:0".into(), whole: "7:0".into() };
        let moved = device.moved(&host()).unwrap();
        assert_eq!(moved, Moved { read: Bytes(16 * 512), written: Bytes(8 * 512) });
        let later = Moved { read: Bytes(9000), written: Bytes(0) };
        assert_eq!(later.since(moved), Moved { read: Bytes(9000 - 8192), written: Bytes(0) });
    }
}
