//! Where the databases keep what: directories, their filesystems, and the inodes by which the
//! kernel side recognises their files.

use super::devices;
use rustix::fs::{major, minor};
use untax_core::io::{Behind, Filesystem, Place, Role};
use untax_core::{Database, Reading};
use untax_host::{Host, with_deadline};

/// A directory whose files, and those below it, belong to a database.
pub(crate) struct Known {
    /// The database's place in the list.
    pub database: u32,
    /// As the kernel numbers it: twelve bits of major, twenty of minor.
    pub device: u32,
    pub inode: u64,
    /// Only files of this user: others keep theirs in the same directory.
    pub owner: Option<u32>,
    pub role: Role,
}

/// A directory of a database, as the database sees it.
struct Directory {
    path: String,
    role: Role,
    /// Whether others keep their files there too.
    common: bool,
}

/// The places of all databases, and what the kernel side has to know.
pub(super) fn of_all(host: &Host, databases: &[Database]) -> (Vec<Place>, Vec<Known>) {
    let mut places: Vec<Place> = Vec::new();
    let mut known = Vec::new();
    for (index, database) in (0_u32..).zip(databases) {
        let mounts = mounts(host, database.pid);
        for directory in directories(host, database) {
            known.extend(known_of(host, database, index, &directory));
            let filesystem =
                mounts.as_ref().and_then(|mounts| filesystem(host, mounts, &directory.path));
            let (path, role) = (directory.path, directory.role);
            if role != Role::Other {
                let (database, directory) = (database.id.clone(), path);
                places.push(Place { database, role, directory, filesystem });
            }
        }
    }
    (places, known)
}

fn directories(host: &Host, database: &Database) -> Vec<Directory> {
    let Some(data) = database.data_directory.value() else { return Vec::new() };
    let data = data.trim_end_matches('/');
    let inside = |name: &str| resolve(host, database.pid, &format!("{data}/{name}"));
    let mut all = vec![Directory { path: data.to_owned(), role: Role::Data, common: false }];
    for place in &database.places {
        let at = |path: String| Directory { path, role: place.role, common: place.is_common };
        match place.path.strip_suffix("/*") {
            _ if place.path.starts_with('/') => all.push(at(place.path.clone())),
            Some(parent) => {
                let names = host.names(&format!("/proc/{}/root{data}/{parent}", database.pid));
                let names = names.into_value().unwrap_or_default();
                all.extend(names.iter().map(|name| at(inside(&format!("{parent}/{name}")))));
            }
            None => {
                let path = Some(inside(&place.path));
                all.extend(path.filter(|path| exists(host, database.pid, path)).map(at));
            }
        }
    }
    all
}

/// Where a path leads that may be a link, as the database sees it.
fn resolve(host: &Host, pid: u32, path: &str) -> String {
    match host.link(&format!("/proc/{pid}/root{path}")).into_value() {
        Some(target) if target.starts_with('/') => target,
        Some(target) => {
            let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
            plain(&format!("{parent}/{target}"))
        }
        None => path.to_owned(),
    }
}

/// The path without the steps that lead back.
fn plain(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    format!("/{}", parts.join("/"))
}

fn exists(host: &Host, pid: u32, path: &str) -> bool {
    number(host, pid, path).is_some()
}

fn known_of(host: &Host, database: &Database, index: u32, directory: &Directory) -> Option<Known> {
    let (device, inode) = number(host, database.pid, &directory.path)?;
    let owner = if directory.common { Some(*database.uid.value()?) } else { None };
    Some(Known { database: index, device, inode, owner, role: directory.role })
}

/// The device, as the kernel numbers it, and the inode of what is at a path.
fn number(host: &Host, pid: u32, path: &str) -> Option<(u32, u64)> {
    let path = format!("/proc/{pid}/root{path}");
    let look = |path: &str| match rustix::fs::stat(path) {
        Ok(stat) => Reading::Present((major(stat.st_dev) << 20 | minor(stat.st_dev), stat.st_ino)),
        Err(error) => Reading::Failed(format!("{path}: {error}")),
    };
    host.observe(&format!("stat:{path}"), || with_deadline(&path, look)).into_value()
}

/// The mounts that a process sees: number, mount, source.
type Mounts = Vec<(String, untax_core::io::Mount, String)>;

fn mounts(host: &Host, pid: u32) -> Reading<Mounts> {
    let text = host.text(&format!("/proc/{pid}/mountinfo"));
    text.map(|text| text.lines().filter_map(devices::mount).collect())
}

/// Filesystems whose data is elsewhere.
const NETWORKS: [&str; 12] = [
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "ceph",
    "glusterfs",
    "fuse.glusterfs",
    "lustre",
    "gpfs",
    "ocfs2",
    "beegfs",
    "fuse.ceph",
];

fn filesystem(host: &Host, mounts: &Mounts, path: &str) -> Reading<Filesystem> {
    let holds = |point: &str| {
        let point = point.trim_end_matches('/');
        path.strip_prefix(point).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    // The last of several at the same point is the one that is seen.
    let nearest = mounts.iter().filter(|(_, mount, _)| holds(&mount.point));
    let Some((number, mount, source)) = nearest.max_by_key(|(_, mount, _)| mount.point.len())
    else {
        return Reading::Absent(format!("no mount holds {path}"));
    };
    // btrfs has numbers of its own: its source names a device.
    let device = devices::whole(host, number).or_else(|| {
        let name = source.strip_prefix("/dev/")?;
        let number = host.text(&format!("/sys/class/block/{name}/dev")).into_value()?;
        devices::whole(host, number.trim())
    });
    let behind = device.as_deref().map(|name| devices::behind(host, name));
    let network = match behind {
        Some(Behind::Network(what)) => Some(what),
        _ => NETWORKS.contains(&mount.filesystem.as_str()).then(|| mount.filesystem.clone()),
    };
    Reading::Present(Filesystem {
        number: number.clone(),
        kind: mount.filesystem.clone(),
        point: mount.point.clone(),
        device,
        network,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_host::Record;

    const MOUNTS: &str = "22 1 254:1 / / rw - ext4 /dev/vda1 rw\n\
                          30 22 254:16 / /var/lib rw - xfs /dev/vdb rw\n\
                          31 22 0:50 / /var/libraries rw - nfs4 server:/x rw\n";

    fn host() -> Host {
        Host::from_record(
            Record::default()
                .with_file("/proc/7/mountinfo", MOUNTS)
                .with_link("/sys/dev/block/254:16", "../../devices/virtio1/block/vdb")
                .with_link("/proc/7/root/data/pg_wal", "../wal"),
        )
    }

    #[test]
    fn the_nearest_mount_holds_a_directory() {
        let host = host();
        let mounts = mounts(&host, 7).into_value().unwrap();
        let of = |path: &str| filesystem(&host, &mounts, path).into_value().unwrap();
        let data = of("/var/lib/postgresql");
        assert_eq!((data.kind.as_str(), data.device.as_deref()), ("xfs", Some("vdb")));
        assert_eq!(of("/var/libraries/x").network.as_deref(), Some("nfs4"));
        assert_eq!(of("/var/lib2").point, "/");
    }

    #[test]
    fn links_are_followed_within_what_the_database_sees() {
        assert_eq!(resolve(&host(), 7, "/data/pg_wal"), "/wal");
        assert_eq!(resolve(&host(), 7, "/data/base"), "/data/base");
    }
}
