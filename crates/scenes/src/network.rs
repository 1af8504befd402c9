//! A network namespace with a loopback interface that can be made slow.

use crate::group::Group;
use crate::namespace::Namespace;
use crate::program::words;
use crate::setting::Setting;
use crate::shell::Shell;
use crate::{SceneError, program};
use std::path::Path;

/// The MTU is that of a real network: a packet of the default loopback MTU is longer than any queue
/// made here.
const MTU: &str = "link set lo mtu 1500\n";

/// A short queue drops packets of a burst, and TCP retransmits them.
const SHORTEN_QUEUE: &str = r#"nsenter --net="$1" -- tc qdisc replace dev lo root tbf rate "$2" burst 16kb limit "$3" && echo made || echo"#;
const LENGTHEN_QUEUE: &str = r#"nsenter --net="$1" -- tc qdisc replace dev lo root tbf rate "$2" burst 16kb limit "$4" 2>/dev/null"#;

/// More than all clients request at once.
const LONG_QUEUE_BYTES: u64 = 16 << 20;

/// A firewall rule that asks for the state of connections, which makes the kernel remember each; for a
/// second after its end rather than two minutes. Those that are over still count until the kernel
/// sweeps the table, a minute apart at worst, or somebody lists it.
const TRACK: &str = r#"
waits=/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_time_wait
nsenter --net="$1" -- sh -c "echo 1 >$waits" && nsenter --net="$1" -- nft '
    add table inet untax
    add chain inet untax input { type filter hook input priority 0; }
    add rule inet untax input ct state new accept' && echo made || echo"#;
/// Lists the table each second, as a monitor may.
const LIST: &str = "while :; do cat /proc/net/nf_conntrack >/dev/null; sleep 1; done";
const FORGET: &str = r#"nsenter --net="$1" -- nft delete table inet untax 2>/dev/null"#;

const MOST_CONNECTIONS: &str = "/proc/sys/net/netfilter/nf_conntrack_max";
const CONNECTIONS: &str = "/proc/sys/net/netfilter/nf_conntrack_count";

/// A network namespace; gone when this is dropped and the last process in it has ended.
pub struct Network {
    namespace: Namespace,
    /// The control group of what runs here, where programs of the kernel belong to one.
    group: Option<Group>,
}

/// A table of connections, until this is dropped.
pub struct ConnectionTracking {
    _monitor: Shell,
    _most: Setting,
    _guard: Shell,
}

/// An interface whose queue is short until this is dropped.
pub struct SlowLink {
    _guard: Shell,
}

impl Network {
    /// Makes one.
    pub fn make() -> Result<Self, SceneError> {
        let namespace = Namespace::make()?;
        namespace.ip(MTU)?;
        Ok(Self { namespace, group: None })
    }

    /// One end of a path.
    pub(crate) fn of(namespace: Namespace, group: Option<Group>) -> Self {
        Self { namespace, group }
    }

    /// The words that go before a command so that it runs in this network.
    pub fn enter_command(&self) -> Vec<String> {
        let group = self.group.as_ref().map(Group::enter_command).unwrap_or_default();
        [group, self.namespace.enter_command()].concat()
    }

    /// The file of its namespace, for `setns(2)`: there while this value is.
    pub fn namespace_path(&self) -> String {
        self.namespace.path()
    }

    /// The directory of the control group (version 2) that clients belong to, if any.
    pub fn group_directory(&self) -> Option<&str> {
        self.group.as_ref().and_then(|group| group.unified().ok())
    }

    /// Calls a function in it, on a thread of its own.
    #[cfg(test)]
    pub(crate) fn within<T: Send>(&self, call: impl FnOnce() -> T + Send) -> Result<T, SceneError> {
        self.namespace.within(call)
    }

    /// Has the kernel remember the connections of this network, so many at most. The limit is one
    /// for all networks of the machine: refused where the machine itself has connections to lose.
    pub fn track(&self, most: u32) -> Result<ConnectionTracking, SceneError> {
        program::find("nft", "nftables")?;
        if program::host_text(CONNECTIONS)?.trim() != "0" {
            let why = "this machine tracks connections of its own, which a low limit would break";
            return Err(SceneError::Host { why: why.to_owned() });
        }
        let guard = Shell::guard(TRACK, FORGET, &[self.namespace.path()])?;
        if guard.first_line != "made" {
            let why =
                "nft could not make a rule; has this kernel nf_tables and connection tracking?";
            return Err(SceneError::Host { why: why.to_owned() });
        }
        let prior = program::host_text(MOST_CONNECTIONS)?;
        let setting = Setting::set(MOST_CONNECTIONS, prior.trim(), &most.to_string())?;
        let list = words(["/bin/sh", "-c", LIST, "untax-lab-list"]);
        let line = [self.enter_command(), list].concat();
        let monitor = Shell::run(&line, "KILL", Path::new("/dev/null"), Path::new("/"))?;
        Ok(ConnectionTracking { _monitor: monitor, _most: setting, _guard: guard })
    }

    /// Lets so many bits a second through, and drops nothing.
    pub fn slow_link(&self, bits_per_s: u64) -> Result<SlowLink, SceneError> {
        self.lossy_link(bits_per_s, LONG_QUEUE_BYTES)
    }

    /// Lets so many bits a second through, and queues at most `queued_bytes`: it drops the rest.
    pub fn lossy_link(&self, bits_per_s: u64, queued_bytes: u64) -> Result<SlowLink, SceneError> {
        program::find("tc", "iproute2")?;
        let queues = [queued_bytes, LONG_QUEUE_BYTES].map(|bytes| bytes.to_string());
        let [short, long] = queues;
        let arguments = [self.namespace.path(), format!("{bits_per_s}bit"), short, long];
        let guard = Shell::guard(SHORTEN_QUEUE, LENGTHEN_QUEUE, &arguments)?;
        if guard.first_line != "made" {
            let why = "tc could not limit the interface; has this kernel the tbf queue?";
            return Err(SceneError::Host { why: why.to_owned() });
        }
        Ok(SlowLink { _guard: guard })
    }
}
