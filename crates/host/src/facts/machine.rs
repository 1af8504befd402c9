//! Who this machine is.

use super::Fact;
use crate::Host;
use sha2::{Digest, Sha256};
use untax_core::Reading::{Absent, Present};
use untax_core::host::HostFacts;

pub(super) const FACT: Fact = Fact {
    id: "machine",
    summary: "a digest of the machine-id: tells one machine from another, and not who it is",
    source: "/etc/machine-id",
    privilege: "none",
    minimum_kernel: "any; the file is systemd's",
    cost: "one small file",
    read,
};

/// Hashed with the id, so that the digest is of no use to other programs: machine-id(5).
const APPLICATION: &str = "untax machine ";

fn read(host: &Host, facts: &mut HostFacts) {
    let digest = host.filtered("/etc/machine-id", |text| digest(&text));
    facts.machine = digest.and_then(|digest| match digest.trim() {
        "" => Absent("this machine has no machine-id: the file is empty".to_owned()),
        digest => Present(digest.to_owned()),
    });
}

/// Sixteen digits, which is plenty to tell machines apart.
fn digest(id: &str) -> String {
    if id.trim().is_empty() {
        return String::new();
    }
    let digest = Sha256::digest(format!("{APPLICATION}{}", id.trim()));
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_tells_machines_apart_and_hides_the_id() {
        let (one, other) = (digest("3d1219c7\n"), digest("3d1219c8\n"));
        assert_ne!(one, other);
        assert_eq!(one, digest("3d1219c7"));
        assert_eq!(one.len(), 16);
        assert_eq!(digest("\n"), "");
    }
}
