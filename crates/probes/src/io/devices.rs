//! Block devices: what they are, what is behind them, and what the kernel counted.

use std::collections::BTreeMap;
use untax_core::io::{Behind, Counted, Device, Mount};
use untax_core::{Bytes, Reading, Seconds};
use untax_host::Host;

/// `/proc/diskstats` by name of the device.
pub(super) type Counts = Reading<BTreeMap<String, Line>>;

/// The fields of one line of `/proc/diskstats` that are used (admin-guide/iostats).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    number: String,
    reads: u64,
    read_sectors: u64,
    reading_ms: u64,
    writes: u64,
    written_sectors: u64,
    writing_ms: u64,
    busy_ms: u64,
}

/// A sector of block statistics, whatever the device's own is.
const SECTOR: u64 = 512;

/// Reads the counters of all devices and partitions.
pub(super) fn count(host: &Host) -> Counts {
    host.text("/proc/diskstats").map(|text| text.lines().filter_map(parse).collect())
}

fn parse(line: &str) -> Option<(String, Line)> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    let line = Line {
        number: format!("{}:{}", number(0)?, number(1)?),
        reads: number(3)?,
        read_sectors: number(5)?,
        reading_ms: number(6)?,
        writes: number(7)?,
        written_sectors: number(9)?,
        writing_ms: number(10)?,
        busy_ms: number(12)?,
    };
    Some(((*fields.get(2)?).to_owned(), line))
}

/// Every whole device with what it did since `before`, over a window of that many seconds; after them
/// those that were removed meanwhile, and partitions of these.
pub(super) fn all(host: &Host, before: &Counts, window_s: f64) -> Vec<Device> {
    let now = count(host);
    let names = host.names("/sys/block").into_value().unwrap_or_default();
    let mounts = mounts(host);
    let there = names.iter().filter_map(|name| device(host, name, before, &now, &mounts, window_s));
    let lines = before.value().into_iter().flatten();
    let gone = lines.filter(|(name, _)| now.value().is_some_and(|now| !now.contains_key(*name)));
    there.chain(gone.map(|(name, line)| removed_device(name, line))).collect()
}

/// A device that is no more: requests that were seen have its number alone.
fn removed_device(name: &str, line: &Line) -> Device {
    let why = format!("{name} was removed during the window");
    let behind = network_of(name).map_or_else(|| kind(name), Behind::Network);
    Device { behind, ..Device::unknown(name, &line.number, &why) }
}

fn device(
    host: &Host,
    name: &str,
    before: &Counts,
    now: &Counts,
    mounts: &BTreeMap<String, Vec<Mount>>,
    window_s: f64,
) -> Option<Device> {
    let sys = format!("/sys/block/{name}");
    let text = |file: &str| host.text(&format!("{sys}/{file}")).map(|text| text.trim().to_owned());
    let number = text("dev").into_value()?;
    let scheduler = text("queue/scheduler");
    let partitions = host.names(&sys).into_value().unwrap_or_default();
    let parts = partitions.iter().filter(|part| part.starts_with(name));
    let numbers = parts.filter_map(|part| text(&format!("{part}/dev")).into_value());
    let mut here: Vec<Mount> =
        [number.clone()].into_iter().chain(numbers).fold(Vec::new(), |mut here, number| {
            here.extend(mounts.get(&number).into_iter().flatten().cloned());
            here
        });
    here.dedup();
    Some(Device {
        behind: behind(host, name),
        rotational: text("queue/rotational").map(|flag| flag == "1"),
        scheduler: scheduler.parse("scheduler", |text| chosen_word(text)),
        model: text("device/model"),
        mounts: here,
        counted: counts_between(name, before, now, window_s),
        name: name.to_owned(),
        number,
    })
}

/// The word in brackets; a device that offers none has the only word there is.
fn chosen_word(text: &str) -> Option<String> {
    let inside = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    Some(inside.map_or(text, |(word, _)| word).to_owned()).filter(|word| !word.is_empty())
}

fn counts_between(name: &str, before: &Counts, now: &Counts, window_s: f64) -> Reading<Counted> {
    let of = |counts: &Counts| {
        counts.as_ref().and_then(|lines| match lines.get(name) {
            Some(line) => Reading::Present(line.clone()),
            None => Reading::Absent(format!("/proc/diskstats has no {name}")),
        })
    };
    of(before).and_then(|before| {
        of(now).and_then(|now| match difference(&before, &now, window_s) {
            Some(counted) => Reading::Present(counted),
            None => Reading::Failed(format!("{name}: a counter went backwards")),
        })
    })
}

fn difference(before: &Line, now: &Line, window_s: f64) -> Option<Counted> {
    let ms = |from: u64, to: u64| Some(Seconds(to.checked_sub(from)? as f64 / 1e3));
    let bytes = |from: u64, to: u64| Some(Bytes(to.checked_sub(from)?.saturating_mul(SECTOR)));
    Some(Counted {
        reads: now.reads.checked_sub(before.reads)?,
        writes: now.writes.checked_sub(before.writes)?,
        read_bytes: bytes(before.read_sectors, now.read_sectors)?,
        written_bytes: bytes(before.written_sectors, now.written_sectors)?,
        reading_s: ms(before.reading_ms, now.reading_ms)?,
        writing_s: ms(before.writing_ms, now.writing_ms)?,
        busy: (ms(before.busy_ms, now.busy_ms)?.0 / window_s).clamp(0.0, 1.0),
    })
}

/// Mounts of this process's namespace by device number. What is mounted twice counts once.
fn mounts(host: &Host) -> BTreeMap<String, Vec<Mount>> {
    let text = host.text("/proc/self/mountinfo").into_value().unwrap_or_default();
    let mut all: BTreeMap<String, Vec<Mount>> = BTreeMap::new();
    for (number, mount, _) in text.lines().filter_map(mount) {
        let here = all.entry(number).or_default();
        if !here.iter().any(|known| known.point.len() <= mount.point.len()) {
            here.insert(0, mount);
        }
    }
    all
}

/// `major:minor`, the mount, and its source, of one line of a `mountinfo` (proc(5)).
pub(super) fn mount(line: &str) -> Option<(String, Mount, String)> {
    let (left, right) = line.split_once(" - ")?;
    let mut left = left.split(' ');
    let (number, point) = (left.nth(2)?, left.nth(1)?);
    let mut right = right.split(' ');
    let (filesystem, source) = (right.next()?.to_owned(), right.next().unwrap_or_default());
    let point = untax_host::mountinfo::unescape(point);
    Some((number.to_owned(), Mount { point, filesystem }, source.to_owned()))
}

/// The whole device with that number, such as `vda` for its first partition.
pub(super) fn whole(host: &Host, number: &str) -> Option<String> {
    let link = host.link(&format!("/sys/dev/block/{number}")).into_value()?;
    whole_at(&link).map(str::to_owned)
}

/// The whole device that a link in `/sys` leads to, which a partition is a folder of and named after:
/// `block/sda/sda1`, `nvme/nvme0/nvme0n1/nvme0n1p1`.
fn whole_at(link: &str) -> Option<&str> {
    let mut parts = link.rsplit('/');
    let (device, above) = (parts.next()?, parts.next().unwrap_or_default());
    let number = device.strip_prefix(above).filter(|_| !above.is_empty());
    let number = number.map(|number| number.strip_prefix('p').unwrap_or(number));
    let is_part = number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    Some(if is_part { above } else { device })
}

/// How deep devices may be made of each other.
const MOST_DEPTH: u32 = 8;

/// What is behind a device.
pub(super) fn behind(host: &Host, name: &str) -> Behind {
    let kind = || if is_copied(host, name, 0) { Behind::Copied } else { kind(name) };
    network(host, name, 0).map_or_else(kind, Behind::Network)
}

/// Whether a device, or one that it is made of, is encrypted or has parity.
fn is_copied(host: &Host, name: &str, depth: u32) -> bool {
    let sys = format!("/sys/block/{name}");
    let begins = |file: &str, with: &[&str]| {
        let text = host.text(&format!("{sys}/{file}")).into_value();
        text.is_some_and(|text| with.iter().any(|word| text.starts_with(word)))
    };
    begins("dm/uuid", &["CRYPT-"])
        || begins("md/level", &["raid4", "raid5", "raid6"])
        || depth < MOST_DEPTH && parts(host, name).iter().any(|p| is_copied(host, p, depth + 1))
}

/// The whole devices that a device is made of.
fn parts(host: &Host, name: &str) -> Vec<String> {
    let parts = host.names(&format!("/sys/block/{name}/slaves")).into_value().unwrap_or_default();
    let whole = |part: String| {
        let link = host.link(&format!("/sys/class/block/{part}")).into_value();
        link.as_deref().and_then(whole_at).map_or(part.clone(), str::to_owned)
    };
    parts.into_iter().map(whole).collect()
}

fn kind(name: &str) -> Behind {
    if name.starts_with("loop") {
        Behind::Loop
    } else if name.starts_with("dm-") || name.starts_with("md") {
        Behind::Mapped
    } else if name.starts_with("ram") || name.starts_with("zram") {
        Behind::Memory
    } else {
        Behind::Local
    }
}

/// The network that a device is reached over, as its name tells.
fn network_of(name: &str) -> Option<String> {
    let known = [("nbd", "nbd"), ("rbd", "Ceph rbd"), ("drbd", "DRBD")];
    known.iter().find(|(prefix, _)| name.starts_with(prefix)).map(|(_, what)| (*what).to_owned())
}

/// A disk that a cloud attaches over its network, by the model that it shows. Their local disks show
/// others: `Amazon EC2 NVMe Instance Storage`, `Microsoft NVMe Direct Disk`, `nvme_card`.
///
/// Sources: docs.aws.amazon.com, "Identify EBS volumes and instance store"; Azure/azure-vm-utils, README;
/// cloud.google.com, "Local SSD".
fn cloud_disk(model: &str) -> Option<&'static str> {
    const DISKS: [(&str, &str); 4] = [
        ("Amazon Elastic Block Store", "Amazon Elastic Block Store"),
        ("MSFT NVMe Accelerator", "Azure managed disk"),
        ("PersistentDisk", "Google Persistent Disk"),
        ("nvme_card-pd", "Google Persistent Disk"),
    ];
    DISKS.iter().find(|(shown, _)| model.contains(shown)).map(|(_, name)| *name)
}

/// The network that a device, or one that it is made of, is reached over.
fn network(host: &Host, name: &str, depth: u32) -> Option<String> {
    if let Some(what) = network_of(name) {
        return Some(what);
    }
    let sys = format!("/sys/block/{name}");
    let text = |file: &str| host.text(&format!("{sys}/{file}")).into_value();
    let transport = text("device/transport");
    let fabric = transport.as_deref().map(str::trim).filter(|t| ["tcp", "rdma", "fc"].contains(t));
    if let Some(fabric) = fabric {
        return Some(format!("NVMe over {fabric}"));
    }
    let model = text("device/model").unwrap_or_default();
    if let Some(cloud) = cloud_disk(&model) {
        return Some(cloud.to_owned());
    }
    let path = host.link(&sys).into_value().unwrap_or_default();
    if path.contains("/session") {
        return Some("iSCSI".to_owned());
    }
    if path.contains("/rport-") {
        return Some("Fibre Channel".to_owned());
    }
    if depth >= MOST_DEPTH {
        return None;
    }
    parts(host, name).iter().find_map(|part| network(host, part, depth + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_host::Record;

    #[test]
    fn a_line_of_diskstats_and_its_difference() {
        let line = |r: u64, w: u64| format!(" 254 0 vda {r} 1 80 6 {w} 2 160 9 0 500 15 0 0 0 0");
        let (name, before) = parse(&line(10, 20)).unwrap();
        let (_, now) = parse(&line(15, 40)).unwrap();
        assert_eq!((name.as_str(), before.number.as_str()), ("vda", "254:0"));
        let counted = difference(&before, &now, 10.0).unwrap();
        assert_eq!((counted.reads, counted.writes), (5, 20));
        assert!(difference(&now, &before, 10.0).is_none());
        assert!(parse(" 254 0 vda 1 2").is_none());
    }

    #[test]
    fn a_device_that_was_removed_keeps_its_name() {
        let line = |number: u32| format!(" 7 {number} loop{number} 1 1 80 6 2 2 160 9 0 500 15\n");
        let host = |lines: &str| {
            let record = Record::default().with_file("/proc/diskstats", lines);
            Host::from_record(record.with_file("/sys/block/loop0/dev", "7:0\n"))
        };
        let before = count(&host(&(line(0) + &line(1))));
        let all = all(&host(&line(0)), &before, 10.0);
        let told = |device: &Device| (device.name.clone(), device.number.clone());
        let expected = [("loop0", "7:0"), ("loop1", "7:1")];
        assert_eq!(
            all.iter().map(told).collect::<Vec<_>>(),
            expected.map(|(n, m)| (n.into(), m.into()))
        );
        assert!(all[0].counted.is_present());
        assert!(all[1].counted.why().is_some_and(|why| why.contains("loop1 was removed")));
    }

    #[test]
    fn networks_are_seen_through_what_a_device_is_made_of() {
        let host = Record::default()
            .with_file("/sys/block/dm-0/slaves/nvme1n1/x", "")
            .with_file("/sys/block/nvme1n1/device/transport", "tcp\n")
            .with_link("/sys/block/sdb", "../devices/platform/host2/session1/target2/block/sdb")
            .with_link("/sys/dev/block/8:17", "../../devices/pci0/host0/block/sdb/sdb1")
            .with_link("/sys/class/block/sdb1", "../../devices/pci0/host0/block/sdb/sdb1")
            .with_file("/sys/block/dm-1/slaves/sdb1/x", "")
            .with_file("/sys/block/dm-2/dm/uuid", "LVM-abc\n")
            .with_file("/sys/block/dm-2/slaves/dm-3/x", "")
            .with_file("/sys/block/dm-3/dm/uuid", "CRYPT-LUKS2-abc\n")
            .with_file("/sys/block/dm-4/dm/uuid", "LVM-def\n")
            .with_file("/sys/block/md0/md/level", "raid5\n");
        let host = Host::from_record(host);
        assert_eq!(behind(&host, "dm-0"), Behind::Network("NVMe over tcp".to_owned()));
        assert_eq!(behind(&host, "sdb"), Behind::Network("iSCSI".to_owned()));
        assert_eq!(behind(&host, "loop3"), Behind::Loop);
        assert_eq!(behind(&host, "vda"), Behind::Local);
        assert_eq!(behind(&host, "dm-1"), Behind::Network("iSCSI".to_owned()), "on a partition");
        let kinds = ["dm-2", "dm-3", "dm-4", "md0"].map(|name| behind(&host, name));
        assert_eq!(kinds, [Behind::Copied, Behind::Copied, Behind::Mapped, Behind::Copied]);
        assert_eq!(whole(&host, "8:17"), Some("sdb".to_owned()));
        let nvme = "../../devices/pci0000:00/0000:00:04.0/nvme/nvme0/nvme0n1";
        assert_eq!(whole_at(nvme), Some("nvme0n1"));
        assert_eq!(whole_at(&format!("{nvme}/nvme0n1p14")), Some("nvme0n1"));
        assert_eq!(whole_at("../../devices/virtual/block/dm-10"), Some("dm-10"));
    }

    #[test]
    fn disks_of_clouds_are_told_from_their_local_ones_by_model() {
        let model = |model: &str| {
            let padded = format!("{model:<40}\n");
            let host = Record::default().with_file("/sys/block/nvme0n1/device/model", &padded);
            let of_volume = host.with_file("/sys/block/dm-0/slaves/nvme0n1/x", "");
            behind(&Host::from_record(of_volume), "dm-0")
        };
        let far = |name: &str| Behind::Network(name.to_owned());
        assert_eq!(model("Amazon Elastic Block Store"), far("Amazon Elastic Block Store"));
        assert_eq!(model("MSFT NVMe Accelerator v1.0"), far("Azure managed disk"));
        assert_eq!(model("nvme_card-pd"), far("Google Persistent Disk"));
        for local in [
            "Amazon EC2 NVMe Instance Storage",
            "Microsoft NVMe Direct Disk v2",
            "nvme_card",
            "INTEL SSDPE2KX010T8",
        ] {
            assert_eq!(model(local), Behind::Mapped, "{local}");
        }
    }

    #[test]
    fn mounts_and_schedulers() {
        let line = "36 35 98:0 /mnt1 /a\\040b rw,noatime master:1 - ext3 /dev/root rw";
        let (number, mount, source) = mount(line).unwrap();
        assert_eq!((number.as_str(), source.as_str()), ("98:0", "/dev/root"));
        assert_eq!((mount.point.as_str(), mount.filesystem.as_str()), ("/a b", "ext3"));
        assert_eq!(chosen_word("none [mq-deadline]").unwrap(), "mq-deadline");
        assert_eq!(chosen_word("none").unwrap(), "none");
    }
}
