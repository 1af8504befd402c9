//! The hypervisor or container that the host itself is.

use super::cpuid::{self, FEATURES, HYPERVISOR, Leaves, SECOND_HYPERVISOR};
use super::{Fact, formats};
use crate::Host;
use untax_core::Reading::{self, Absent, Present};
use untax_core::host::HostFacts;

pub(super) const FACT: Fact = Fact {
    id: "virtualization",
    summary: "the hypervisor below this host, and the container around it",
    source: "CPUID leaves 1, 0x40000000 and 0x40000100, /sys/hypervisor/type, /sys/class/dmi/id, \
             /proc/device-tree, /proc/self/ns/pid, /run/systemd/container, /run/.containerenv, \
             /.dockerenv",
    privilege: "none",
    minimum_kernel: "3.8",
    cost: "the CPUID leaves of the TLB, and at most eight small files",
    read,
};

/// Names of hypervisors at [`HYPERVISOR`].
const SIGNATURES: [(&str, &str); 10] = [
    ("KVMKVMKVM", "kvm"),
    ("Linux KVM Hv", "kvm"),
    ("TCGTCGTCGTCG", "qemu"),
    ("Microsoft Hv", "hyper-v"),
    ("VMwareVMware", "vmware"),
    ("XenVMMXenVMM", "xen"),
    ("VBoxVBoxVBox", "virtualbox"),
    ("bhyve bhyve", "bhyve"),
    ("ACRNACRNACRN", "acrn"),
    ("prl hyperv", "parallels"),
];

/// Beginnings of what firmware calls the machine or its vendor.
const FIRMWARE: [(&str, &str); 9] = [
    ("KVM", "kvm"),
    ("OpenStack", "kvm"),
    ("KubeVirt", "kvm"),
    ("Amazon EC2", "kvm"),
    ("Google", "kvm"),
    ("QEMU", "qemu"),
    ("Microsoft Corporation", "hyper-v"),
    ("VMware", "vmware"),
    ("Xen", "xen"),
];

/// The initial pid namespace has a fixed number (`PROC_PID_INIT_INO` in `linux/proc_ns.h`). The kernel
/// counts processes as they are numbered there.
pub const INITIAL_PID_NAMESPACE: &str = "pid:[4026531836]";

fn read(host: &Host, facts: &mut HostFacts) {
    let machine = machine(host);
    facts.virtualization = match container(host) {
        Some(container) => match machine.value().map(String::as_str) {
            None | Some("none") => Present(container),
            Some(machine) => Present(format!("{container} on {machine}")),
        },
        None => machine,
    };
}

fn machine(host: &Host) -> Reading<String> {
    let kind = || formats::line(host, "/sys/hypervisor/type");
    match cpuid::read(host) {
        Present(leaves) => match leaves.get(FEATURES) {
            // A Xen guest of the oldest kind has no such bit.
            Some(features) if !cpuid::is_guest(features) => {
                Present(kind().into_value().unwrap_or_else(|| "none".to_owned()))
            }
            Some(_) => Present(
                hypervisor(&leaves)
                    .or_else(|| kind().into_value())
                    .or_else(|| firmware(host).into_value().filter(|name| name != "none"))
                    .unwrap_or_else(|| "unknown".to_owned()),
            ),
            None => Absent("CPUID has no features leaf".to_owned()),
        },
        _ => kind().or_else(|| device_tree(host)).or_else(|| firmware(host)),
    }
}

fn hypervisor(leaves: &Leaves) -> Option<String> {
    let name = |leaf| {
        let signature = leaves.signature(leaf, |leaf| [leaf.ebx, leaf.ecx, leaf.edx])?;
        let known = SIGNATURES.iter().find(|(known, _)| signature == *known);
        known.map(|(_, name)| (*name).to_owned())
    };
    name(SECOND_HYPERVISOR).or_else(|| name(HYPERVISOR))
}

/// Guests that boot from a device tree are told there.
fn device_tree(host: &Host) -> Reading<String> {
    formats::line(host, "/proc/device-tree/hypervisor/compatible").map(
        |compatible| match compatible.as_str() {
            "linux,kvm" => "kvm".to_owned(),
            other if other.contains("xen") => "xen".to_owned(),
            other => other.to_owned(),
        },
    )
}

/// What firmware says, for processors without CPUID. A known cloud also rents whole machines.
fn firmware(host: &Host) -> Reading<String> {
    let dmi = |file: &str| formats::line(host, &format!("/sys/class/dmi/id/{file}"));
    let product = dmi("product_name");
    if product.value().is_some_and(|product| product.contains("metal")) {
        return Present("none".to_owned());
    }
    let named = |text: &String| {
        let known = FIRMWARE.iter().find(|(known, _)| text.starts_with(known));
        known.map(|(_, name)| (*name).to_owned())
    };
    let vendor = dmi("sys_vendor");
    let name = product.value().and_then(named).or_else(|| vendor.value().and_then(named));
    product.map(|_| name.unwrap_or_else(|| "none".to_owned()))
}

/// The container that this host is, if it is one. A machine whose root was once a container's
/// still has the marker file: it counts only outside of the initial pid namespace.
fn container(host: &Host) -> Option<String> {
    let namespace = host.link("/proc/self/ns/pid").into_value()?;
    if namespace == INITIAL_PID_NAMESPACE {
        return None;
    }
    let named = ["/run/host/container-manager", "/run/systemd/container"]
        .into_iter()
        .find_map(|path| formats::line(host, path).into_value());
    let marked = || {
        let markers = [("/run/.containerenv", "podman"), ("/.dockerenv", "docker")];
        let found = markers.into_iter().find(|(path, _)| host.exists(path));
        found.map(|(_, name)| name.to_owned())
    };
    named.or_else(marked).or_else(|| Some("container".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::super::cpuid::Leaf;
    use super::*;
    use crate::Record;

    fn cpuid(guest: bool, signatures: &[(u32, &str)]) -> Record {
        let mut leaves =
            vec![Leaf { number: FEATURES, eax: 1, ecx: u32::from(guest) << 31, ..Leaf::default() }];
        for (leaf, text) in signatures {
            let mut letters = text.as_bytes().to_vec();
            letters.resize(12, 0);
            let register = |n: usize| u32::from_le_bytes(letters[n..n + 4].try_into().unwrap());
            let (ebx, ecx, edx) = (register(0), register(4), register(8));
            leaves.push(Leaf { number: *leaf, eax: 1, ebx, ecx, edx, ..Leaf::default() });
        }
        Record::default().with_answer("cpuid", &Present(Leaves(leaves)))
    }

    fn read_from(record: Record) -> Reading<String> {
        super::super::read_all(&Host::from_record(record)).virtualization
    }

    fn found(record: Record) -> String {
        read_from(record).into_value().unwrap()
    }

    fn arm64() -> Record {
        let absent: Reading<Leaves> = Absent("no CPUID".to_owned());
        Record::default().with_answer("cpuid", &absent)
    }

    #[test]
    fn hypervisors_name_themselves() {
        assert_eq!(found(cpuid(true, &[(HYPERVISOR, "KVMKVMKVM")])), "kvm");
        assert_eq!(found(cpuid(true, &[(HYPERVISOR, "VMwareVMware")])), "vmware");
        let enlightened = [(HYPERVISOR, "Microsoft Hv"), (SECOND_HYPERVISOR, "KVMKVMKVM")];
        assert_eq!(found(cpuid(true, &enlightened)), "kvm", "shows itself as Hyper-V");
        assert_eq!(found(cpuid(true, &[(HYPERVISOR, "Microsoft Hv")])), "hyper-v");
        assert_eq!(found(cpuid(true, &[(HYPERVISOR, "something")])), "unknown");
    }

    #[test]
    fn firmware_helps_where_the_name_is_hidden() {
        let hidden = || cpuid(true, &[]);
        let vendor = "/sys/class/dmi/id/sys_vendor";
        let product = "/sys/class/dmi/id/product_name";
        assert_eq!(found(hidden().with_file("/sys/hypervisor/type", "xen\n")), "xen");
        let qemu = hidden().with_file(product, "Standard PC\n").with_file(vendor, "QEMU\n");
        assert_eq!(found(qemu), "qemu");
        let odd = hidden().with_file(product, "X\n").with_file(vendor, "Y\n");
        assert_eq!(found(odd), "unknown", "it is a guest all the same");
    }

    #[test]
    fn bare_metal_is_none_only_when_that_is_known() {
        assert_eq!(found(cpuid(false, &[])), "none");
        assert!(matches!(read_from(arm64()), Absent(_)), "no source at all");
        let server = arm64().with_file("/sys/class/dmi/id/product_name", "Mt.Jade\n");
        assert_eq!(found(server), "none");
    }

    #[test]
    fn arm64_asks_the_firmware() {
        let product = "/sys/class/dmi/id/product_name";
        let vendor = "/sys/class/dmi/id/sys_vendor";
        let guest = arm64().with_file(product, "c7g.large\n").with_file(vendor, "Amazon EC2\n");
        assert_eq!(found(guest), "kvm");
        let whole = arm64().with_file(product, "c7g.metal\n").with_file(vendor, "Amazon EC2\n");
        assert_eq!(found(whole), "none");
        let tree = arm64().with_file("/proc/device-tree/hypervisor/compatible", "linux,kvm\0");
        assert_eq!(found(tree), "kvm");
    }

    #[test]
    fn a_marker_file_makes_no_container_of_a_machine() {
        let kvm = || cpuid(true, &[(HYPERVISOR, "KVMKVMKVM")]).with_file("/.dockerenv", "");
        let namespace = "/proc/self/ns/pid";
        assert_eq!(found(kvm().with_link(namespace, INITIAL_PID_NAMESPACE)), "kvm");
        assert_eq!(found(kvm().with_link(namespace, "pid:[4026532201]")), "docker on kvm");
        let metal = cpuid(false, &[]).with_link(namespace, "pid:[4026532201]");
        assert_eq!(found(metal), "container");
        let nspawn = cpuid(false, &[])
            .with_link(namespace, "pid:[4026532201]")
            .with_file("/run/systemd/container", "systemd-nspawn\n");
        assert_eq!(found(nspawn), "systemd-nspawn");
    }
}
