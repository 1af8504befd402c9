//! Digests of ids that must not be shown: machine-id(5) says that applications are to hash it.

use crate::Host;
use sha2::{Digest, Sha256};
use untax_core::Reading::{self, Absent, Failed, Present};

/// Makes the digest another than that of whoever else hashes the same id.
const APPLICATION: &str = "untax:";

/// How many hexadecimal digits are kept: enough to tell the machines of a fleet apart, and much
/// too few to have the id from them.
const DIGITS: usize = 12;

/// An id has so many hexadecimal digits, written as one word or as a UUID.
const ID_DIGITS: usize = 32;

/// The digest of an id on a line of its own; of anything else, such as `uninitialized`, nothing.
pub(crate) fn digest_line(text: &str) -> String {
    let id = text.trim().replace('-', "").to_lowercase();
    if id.len() != ID_DIGITS || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return String::new();
    }
    let hash = Sha256::digest(format!("{APPLICATION}{id}"));
    let digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    digits[..DIGITS].to_owned() + "\n"
}

/// A digest that was read, in place of the file at `path`.
pub(crate) fn parse(path: &str, text: Reading<String>) -> Reading<String> {
    text.and_then(|text| match text.trim() {
        "" => Absent(format!("{path} holds no id")),
        digest if digest.len() == DIGITS && digest.bytes().all(|b| b.is_ascii_hexdigit()) => {
            Present(digest.to_owned())
        }
        _ => Failed(format!("{path} in the capture is no digest")),
    })
}

/// The digest of `/etc/machine-id` as a process sees it.
pub fn machine_id_of(host: &Host, pid: u32) -> Reading<String> {
    let path = "/etc/machine-id";
    let keep =
        |line: &str| Some(digest_line(line).trim().to_owned()).filter(|digest| !digest.is_empty());
    parse(&format!("/proc/{pid}/root{path}"), host.filter_lines_inside(pid, path, keep))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_id_has_the_same_digest_however_it_is_written() {
        let digest = digest_line("0123456789abcdef0123456789abcdef\n");
        assert_eq!(digest.trim().len(), DIGITS);
        assert_eq!(digest_line("01234567-89AB-CDEF-0123-456789abcdef"), digest);
        assert_ne!(digest_line("0123456789abcdef0123456789abcdee\n"), digest);
        assert!(!digest.contains("0123456"), "{digest}");
    }

    #[test]
    fn what_is_no_id_is_not_kept() {
        for text in ["", "\n", "uninitialized\n", "0123", "é123456789abcdef0123456789abcde"] {
            assert_eq!(digest_line(text), "", "{text:?}");
        }
        assert!(matches!(parse("x", Present("\n".into())), Absent(_)));
        assert!(matches!(parse("x", Present("0123456789abcdef".into())), Failed(_)));
    }
}
