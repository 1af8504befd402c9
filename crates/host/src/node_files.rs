//! Files of the machine, where this program is in a container that sees the machine's processes: its own
//! files and its own network are the image's and the pod's. The machine's are below process 1.

use std::borrow::Cow;
use std::sync::LazyLock;
use untax_core::reading::Gap;

/// Where process 1 has its files.
pub(crate) const ROOT: &str = "/proc/1/root";

/// Where trials of untax say that they run.
pub(crate) const TRIALS: &str = "/run/untax-trials";

/// Files that an image may have too, and that describe the machine in its own tree alone.
const FILES: [&str; 10] = [
    "/etc/machine-id",
    "/etc/os-release",
    "/usr/lib/os-release",
    "/usr/sbin/transactional-update",
    "/etc/default/grub",
    "/etc/cni/net.d",
    "/boot/",
    "/efi/",
    "/run/ostree-booted",
    TRIALS,
];

/// Files that describe a network namespace: that of whoever reads them, or of process 1.
const NETWORK: [(&str, &str); 3] = [
    ("/proc/self/net/", "/proc/1/net/"),
    ("/proc/net/", "/proc/1/net/"),
    ("/sys/class/net", "/proc/1/root/sys/class/net"),
];

/// Whose files this program sees at their usual places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sees {
    /// The machine's.
    Machine,
    /// Those of a container; the machine's are below process 1.
    Container,
    /// Those of a container, and those of process 1 are closed to it.
    Closed,
}

#[derive(Debug, Clone, Copy)]
struct View {
    files: Sees,
    network: Sees,
}

static VIEW: LazyLock<View> = LazyLock::new(|| {
    let of = |namespace| sees(&link, namespace, is_root_without_tracing());
    View { files: of("mnt"), network: of("net") }
});

/// Where the machine's own file of this path is.
pub(crate) fn of_machine(path: &str) -> Result<Cow<'_, str>, Gap> {
    placed(path, *VIEW)
}

/// Whether this program is in the network namespace of the machine.
pub(crate) fn is_in_its_network() -> bool {
    VIEW.network == Sees::Machine
}

fn placed(path: &str, view: View) -> Result<Cow<'_, str>, Gap> {
    let files = FILES.iter().find(|file| path.starts_with(**file));
    let network = NETWORK.iter().find(|(own, _)| path.starts_with(own));
    let (sees, there) = match (files, network) {
        (Some(_), _) => (view.files, format!("{ROOT}{path}")),
        (_, Some((own, there))) => (view.network, path.replacen(own, there, 1)),
        (None, None) => return Ok(path.into()),
    };
    match sees {
        Sees::Machine => Ok(path.into()),
        Sees::Container => Ok(there.into()),
        Sees::Closed => Err(Gap::Denied(format!("{there}: needs CAP_SYS_PTRACE"))),
    }
}

/// Compares a namespace with that of process 1, which the kernel tells to whoever may trace it. Root who may
/// not trace is most likely in a container.
fn sees(
    link: &impl Fn(&str) -> Result<String, bool>,
    namespace: &str,
    is_root_without_tracing: bool,
) -> Sees {
    let of = |pid: &str| link(&format!("/proc/{pid}/ns/{namespace}"));
    match (of("self"), of("1")) {
        (Ok(own), Ok(first)) if own != first => Sees::Container,
        (Ok(_), Err(true)) if is_root_without_tracing => Sees::Closed,
        _ => Sees::Machine,
    }
}

/// Whether this process is root's and has no `CAP_SYS_PTRACE`.
fn is_root_without_tracing() -> bool {
    let has_it = |sets: rustix::thread::CapabilitySets| {
        sets.effective.contains(rustix::thread::CapabilitySet::SYS_PTRACE)
    };
    let sets = rustix::thread::capabilities(None);
    rustix::process::geteuid().is_root() && sets.is_ok_and(|sets| !has_it(sets))
}

/// Where a link points, or whether that is denied.
fn link(path: &str) -> Result<String, bool> {
    let target = rustix::fs::readlink(path, Vec::new());
    let denied = |errno| matches!(errno, rustix::io::Errno::ACCESS | rustix::io::Errno::PERM);
    target.map(|target| target.to_string_lossy().into_owned()).map_err(denied)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(path: &str, sees: Sees) -> Result<Cow<'_, str>, Gap> {
        placed(path, View { files: sees, network: sees })
    }

    #[test]
    fn a_container_reads_the_machines_files_below_process_one() {
        let there = |path| place(path, Sees::Container).unwrap().into_owned();
        assert_eq!(there("/etc/machine-id"), "/proc/1/root/etc/machine-id");
        assert_eq!(there("/boot/grub/grub.cfg"), "/proc/1/root/boot/grub/grub.cfg");
        assert_eq!(there("/run/untax-trials/7"), "/proc/1/root/run/untax-trials/7");
        assert_eq!(there("/proc/self/net/stat/nf_conntrack"), "/proc/1/net/stat/nf_conntrack");
        assert_eq!(there("/sys/class/net/eth0/type"), "/proc/1/root/sys/class/net/eth0/type");
        assert_eq!(there("/proc/7/net/stat/nf_conntrack"), "/proc/7/net/stat/nf_conntrack");
        assert_eq!(there("/etc/redis/redis.conf"), "/etc/redis/redis.conf", "not the machine's");
    }

    #[test]
    fn files_that_are_closed_are_no_files_of_the_image() {
        let closed = place("/etc/machine-id", Sees::Closed).unwrap_err();
        assert!(matches!(closed, Gap::Denied(why) if why.contains("CAP_SYS_PTRACE")));
        assert_eq!(place("/etc/machine-id", Sees::Machine).unwrap(), "/etc/machine-id");
        assert_eq!(place("/proc/stat", Sees::Closed).unwrap(), "/proc/stat");
    }

    #[test]
    fn another_mount_namespace_than_that_of_process_one_is_a_container() {
        let links = |first: Result<&str, bool>, without_tracing| {
            let first = first.map(str::to_owned);
            let link =
                |path: &str| if path.contains("/1/") { first.clone() } else { Ok("a".to_owned()) };
            sees(&link, "mnt", without_tracing)
        };
        assert_eq!(links(Ok("a"), false), Sees::Machine);
        assert_eq!(links(Ok("b"), true), Sees::Container);
        assert_eq!(links(Err(true), true), Sees::Closed);
        assert_eq!(links(Err(true), false), Sees::Machine, "a user who may not look");
        assert_eq!(links(Err(false), true), Sees::Machine, "there is no such file");
    }
}
