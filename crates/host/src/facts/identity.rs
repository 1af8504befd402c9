//! What tells this machine from its clones, as digests: the ids themselves are confidential.

use super::Fact;
use crate::{Host, digest};
use untax_core::host::HostFacts;

pub(super) const FACT: Fact = Fact {
    id: "identity",
    summary: "digests of the machine's ids, to see whether two machines or containers share one",
    source: "/etc/machine-id, /sys/class/dmi/id/product_uuid",
    privilege: "none for the first; root for the second",
    minimum_kernel: "any",
    cost: "two small files",
    read,
};

fn read(host: &Host, facts: &mut HostFacts) {
    let digest =
        |path: &str| digest::parse(path, host.map_text(path, |text| digest::digest_line(&text)));
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
        assert_eq!(facts.machine_id.into_value().unwrap(), digest.trim());
        assert!(!facts.product_uuid.is_present());
    }
}
