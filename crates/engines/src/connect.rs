//! How the child process comes to a server's socket: through the server's own root directory or
//! network namespace, as the server's OS user.
//!
//! A container's files are not to be trusted: the socket is opened inside the server's root
//! directory, so that no link in it leads to a socket of the host, and the program gives up being
//! root before it speaks.

use crate::endpoint::{Endpoint, Entry, Hints, Listening};
use crate::engine::{Asking, Identity};
use crate::listeners::{self, Listener};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::process::{Gid, Uid};
use rustix::thread::{self, LinkNameSpaceType};
use std::os::fd::AsFd;
use untax_core::Reading::{self, Absent, Denied, Failed, Present};
use untax_host::Host;
use untax_host::process::{self, Status};

/// Opens the way to the server whose main process is `pid`, and becomes its user.
pub(crate) fn open(
    asking: &Asking,
    pid: u32,
    identity: Identity,
    mut hints: Hints,
) -> Reading<Endpoint> {
    let host = Host::live();
    let status = match process::status(&host, pid) {
        Present(status) => status,
        gap => return gap.and_then(|_| Absent(format!("process {pid} ended"))),
    };
    let user = user(&host, pid, &status, identity);
    listeners::of(&host, pid, asking, hints.listening.as_ref())
        .and_then(|listeners| entry(&host, pid, asking, &listeners, &mut hints))
        .and_then(|entry| match become_server(&status, identity) {
            Ok(()) => Present(Endpoint { user, entry, timing: false, hints }),
            Err(errno) => Failed(format!("becoming the server's user: {errno}")),
        })
}

fn entry(
    host: &Host,
    pid: u32,
    asking: &Asking,
    listeners: &[Listener],
    hints: &mut Hints,
) -> Reading<Entry> {
    let unix = listeners.iter().find_map(|listener| match listener {
        // An abstract name starts with `@`.
        Listener::Unix(path) if !path.starts_with('@') => Some(path),
        _ => None,
    });
    if let Some(path) = unix {
        return absolute(host, pid, path).and_then(|path| open_socket(pid, &path));
    }
    let tcp = listeners.iter().find_map(|listener| match listener {
        Listener::Tcp(listening) if asking.over_tcp => Some(listening),
        _ => None,
    });
    hints.listening = tcp.cloned();
    match tcp {
        Some(Listening { address, .. }) => {
            enter_network(host, pid).map(|()| Entry::Tcp(listeners::reachable(*address)))
        }
        None => listeners::no_socket(),
    }
}

fn absolute(host: &Host, pid: u32, path: &str) -> Reading<String> {
    if path.starts_with('/') {
        return Present(path.to_owned());
    }
    host.link(&format!("/proc/{pid}/cwd")).map(|directory| format!("{directory}/{path}"))
}

fn open_socket(pid: u32, path: &str) -> Reading<Entry> {
    let root = format!("/proc/{pid}/root");
    let open = || {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let root = rustix::fs::open(root.as_str(), flags | OFlags::DIRECTORY, Mode::empty())?;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        rustix::fs::openat2(root, path, flags, Mode::empty(), resolve)
    };
    match open() {
        Ok(socket) => Present(Entry::Unix(socket)),
        Err(rustix::io::Errno::NOENT) => Absent(format!("{path} does not exist any more")),
        Err(rustix::io::Errno::PERM | rustix::io::Errno::ACCESS) => Denied(format!("{root}{path}")),
        Err(errno) => Failed(format!("{root}{path}: {errno}")),
    }
}

/// Enters the server's network namespace, if it is another one.
fn enter_network(host: &Host, pid: u32) -> Reading<()> {
    let path = format!("/proc/{pid}/ns/net");
    let (own, its) = (host.link("/proc/self/ns/net"), host.link(&path));
    if own.is_present() && own == its {
        return Present(());
    }
    let enter = || {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let namespace = rustix::fs::open(path.as_str(), flags, Mode::empty())?;
        thread::move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
    };
    match enter() {
        Ok(()) => Present(()),
        Err(_) => Denied(format!("{path}, the server's network namespace")),
    }
}

/// Whether this process may become the server's user.
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn become_server(status: &Status, identity: Identity) -> rustix::io::Result<()> {
    let (Some(uid), Some(gid)) = (status.uid, status.gid) else {
        return Err(rustix::io::Errno::INVAL);
    };
    if identity == Identity::Root || !is_root() {
        return Ok(());
    }
    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
    // The system calls change this thread alone: it is the only one.
    thread::set_thread_groups(&[])?;
    thread::set_thread_res_gid(gid, gid, gid)?;
    thread::set_thread_res_uid(uid, uid, uid)
}

/// The name that the server knows the asking user by.
fn user(host: &Host, pid: u32, status: &Status, identity: Identity) -> String {
    let own = rustix::process::geteuid().as_raw();
    let uid = status.uid.unwrap_or(own);
    let named = match identity {
        Identity::Root if is_root() => Present("root".to_owned()),
        Identity::Server if is_root() || own == uid => {
            let inside = inside(host, pid, uid);
            host.filter_lines_inside(pid, "/etc/passwd", |line| name_of(line, inside))
                .map(|text| first_line(&text))
        }
        _ => host
            .filter_lines("/etc/passwd", |line| name_of(line, own))
            .map(|text| first_line(&text)),
    };
    named.into_value().filter(|name| !name.is_empty()).unwrap_or_else(|| uid.to_string())
}

fn name_of(line: &str, uid: u32) -> Option<String> {
    let mut fields = line.split(':');
    let name = fields.next()?;
    (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// A user's number inside the server's user namespace.
fn inside(host: &Host, pid: u32, uid: u32) -> u32 {
    let map = host.text(&format!("/proc/{pid}/uid_map")).into_value().unwrap_or_default();
    map.lines().find_map(|line| map_uid(line, uid)).unwrap_or(uid)
}

/// `inside outside count`.
fn map_uid(line: &str, uid: u32) -> Option<u32> {
    let mut numbers = line.split_ascii_whitespace().map(|n| n.parse::<u32>().ok());
    let (inside, outside, count) = (numbers.next()??, numbers.next()??, numbers.next()??);
    let offset = uid.checked_sub(outside).filter(|offset| *offset < count)?;
    inside.checked_add(offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_named_as_the_server_knows_them() {
        assert_eq!(name_of("postgres:x:105:113::/var/lib:/bin/sh", 105), Some("postgres".into()));
        assert_eq!(name_of("postgres:x:105:113::/var/lib:/bin/sh", 113), None);
        assert_eq!(name_of("garbage", 0), None);
        assert_eq!(map_uid("         0     100000      65536", 100_999), Some(999));
        assert_eq!(map_uid("         0     100000      65536", 99_999), None);
        assert_eq!(map_uid("0 0 4294967295", 105), Some(105));
    }
}
