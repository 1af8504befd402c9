//! The sandbox that this program itself is in: one with a kernel of its own.

use super::Fact;
use crate::Host;
use untax_core::host::HostFacts;

pub(super) const FACT: Fact = Fact {
    id: "sandbox",
    summary: "whether this is gVisor or a guest of Kata Containers, rather than a kernel on a machine",
    source: "/proc/version, the boot parameter systemd.unit",
    privilege: "none",
    minimum_kernel: "any",
    cost: "one small file",
    read,
};

/// What older gVisor says of its kernel: a release that was never built at that moment. Newer ones
/// call theirs `4.19.0-gvisor`.
const SENTRY: &str = "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016";

/// What the guest of Kata Containers is told to start.
const KATA: &str = "systemd.unit=kata-containers.target";

fn read(host: &Host, facts: &mut HostFacts) {
    let parameters = facts.kernel.value().and_then(|kernel| kernel.parameters.value());
    let kata = parameters.is_some_and(|all| all.iter().any(|parameter| parameter == KATA));
    facts.sandbox = host.text("/proc/version").parse("/proc/version", |text| {
        let version = text.trim();
        if !version.starts_with("Linux version ") {
            return None;
        }
        let gvisor = version == SENTRY || version.contains("-gvisor");
        Some(
            if gvisor {
                "gvisor"
            } else if kata {
                "kata"
            } else {
                "none"
            }
            .to_owned(),
        )
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;
    use untax_core::Reading::{self, Present};

    fn sandbox(version: &str, parameters: &str) -> Reading<String> {
        let record = Record::default()
            .with_file("/proc/version", version)
            .with_file("/proc/sys/kernel/osrelease", "6.1.0\n")
            .with_file("/proc/cmdline", parameters)
            .with_answer("machine_architecture", &Present("x86_64"));
        super::super::read_all(&Host::from_record(record)).sandbox
    }

    #[test]
    fn sandboxes_are_told_from_kernels() {
        let is = |name: &str| Present(name.to_owned());
        assert_eq!(sandbox(&format!("{SENTRY}\n"), "\n"), is("gvisor"));
        assert_eq!(sandbox("Linux version 4.19.0-gvisor #1 SMP\n", "\n"), is("gvisor"));
        let kernel = "Linux version 6.1.0 (gcc) #1 SMP\n";
        assert_eq!(sandbox(kernel, "quiet systemd.unit=kata-containers.target\n"), is("kata"));
        assert_eq!(sandbox(kernel, "quiet systemd.unit=multi-user.target\n"), is("none"));
        assert!(!sandbox("\n", "\n").is_present());
    }
}
