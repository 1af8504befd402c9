//! The machine's name, and what tells it from its clones, as digests: the ids themselves are confidential.

use super::Fact;
use crate::{Host, digest};
use untax_core::Reading;
use untax_core::host::HostFacts;

pub(super) const FACT: Fact = Fact {
    id: "identity",
    summary: "the machine's name, and digests of its ids, to see whether two machines or containers share one",
    source: "/proc/sys/kernel/hostname, /etc/machine-id, /sys/class/dmi/id/product_uuid",
    privilege: "none; root for the last",
    minimum_kernel: "any",
    cost: "three small files",
    read,
};

fn read(host: &Host, facts: &mut HostFacts) {
    let digest =
        |path: &str| digest::parse(path, host.map_text(path, |text| digest::digest_line(&text)));
    // A capture is sent to others, who need not know it.
    facts.hostname = if host.is_live() && !host.is_recording() {
        host.text("/proc/sys/kernel/hostname").map(|name| name.trim().to_owned())
    } else {
        Reading::not_captured()
    };
    facts.machine_id = digest("/etc/machine-id");
    facts.product_uuid = digest("/sys/class/dmi/id/product_uuid");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;

    #[test]
    fn a_capture_holds_the_digest() {
        let digest = digest::digest_line("0123456789abcdef0123456789abcdef\n");
        let record = Record::default().with_file("/etc/machine-id", &digest);
        let facts = super::super::read_all(&Host::from_record(record));
        assert!(!facts.hostname.is_present());
        assert_eq!(facts.machine_id.into_value().unwrap(), digest.trim());
        assert!(!facts.product_uuid.is_present());
    }
}
