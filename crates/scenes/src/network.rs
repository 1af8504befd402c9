//! A network namespace with a loopback interface that can be made slow.

use crate::program::words;
use crate::setting::Setting;
use crate::shell::Shell;
use crate::{SceneError, program};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// The MTU is that of a real network: a packet of the default loopback MTU is longer than any queue
/// made here.
const MAKE: &str =
    r#"ip netns add "$1" && ip -n "$1" link set lo mtu 1500 up && echo made || echo"#;
const REMOVE: &str = r#"ip netns delete "$1" 2>/dev/null"#;

/// A short queue drops packets of a burst, and TCP retransmits them.
const SHORTEN_QUEUE: &str = r#"tc -n "$1" qdisc replace dev lo root tbf rate "$2" burst 16kb limit "$3" && echo made || echo"#;
const LENGTHEN_QUEUE: &str =
    r#"tc -n "$1" qdisc replace dev lo root tbf rate "$2" burst 16kb limit "$4" 2>/dev/null"#;

/// More than all clients request at once.
const LONG_QUEUE_BYTES: u64 = 16 << 20;

/// A firewall rule that asks for the state of connections, which makes the kernel remember each; for a
/// second after its end rather than two minutes. Those that are over still count until the kernel
/// sweeps the table, a minute apart at worst, or somebody lists it.
const TRACK: &str = r#"
waits=/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_time_wait
ip netns exec "$1" sh -c "echo 1 >$waits" && ip netns exec "$1" nft '
    add table inet untax
    add chain inet untax input { type filter hook input priority 0; }
    add rule inet untax input ct state new accept' && echo made || echo"#;
/// Lists the table each second, as a monitor may.
const LIST: &str = "while :; do cat /proc/net/nf_conntrack >/dev/null; sleep 1; done";
const FORGET: &str = r#"ip netns exec "$1" nft delete table inet untax 2>/dev/null"#;

const MOST_CONNECTIONS: &str = "/proc/sys/net/netfilter/nf_conntrack_max";
const CONNECTIONS: &str = "/proc/sys/net/netfilter/nf_conntrack_count";

/// A network namespace; removed when dropped.
pub struct Network {
    _guard: Shell,
    name: String,
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
        static COUNT: AtomicU32 = AtomicU32::new(0);
        if !crate::account::is_root() {
            return Err(SceneError::NeedsRoot { what: "a network of its own" });
        }
        program::find("ip", "iproute2")?;
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("untax-lab-{}-{number}", std::process::id());
        let guard = Shell::guard(MAKE, REMOVE, &[&name])?;
        if guard.first_line != "made" {
            return Err(SceneError::Host { why: "no network namespace could be made".to_owned() });
        }
        Ok(Self { _guard: guard, name })
    }

    /// The words that go before a command so that it runs in this network.
    pub(crate) fn enter_command(&self) -> Vec<String> {
        let namespace = format!("--net=/run/netns/{}", self.name);
        ["nsenter", &namespace, "--"].map(str::to_owned).to_vec()
    }

    /// Has the kernel remember the connections of this network, so many at most. The limit is one
    /// for all networks of the machine: refused where the machine itself has connections to lose.
    pub fn track(&self, most: u32) -> Result<ConnectionTracking, SceneError> {
        program::find("nft", "nftables")?;
        if program::host_text(CONNECTIONS)?.trim() != "0" {
            let why = "this machine tracks connections of its own, which a low limit would break";
            return Err(SceneError::Host { why: why.to_owned() });
        }
        let guard = Shell::guard(TRACK, FORGET, &[&self.name])?;
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
        let arguments = [self.name.clone(), format!("{bits_per_s}bit"), short, long];
        let guard = Shell::guard(SHORTEN_QUEUE, LENGTHEN_QUEUE, &arguments)?;
        if guard.first_line != "made" {
            let why = "tc could not limit the interface; has this kernel the tbf queue?";
            return Err(SceneError::Host { why: why.to_owned() });
        }
        Ok(SlowLink { _guard: guard })
    }
}
