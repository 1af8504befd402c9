//! `/etc/hosts`: an address a line, and its names.

use super::name::Name;
use std::net::IpAddr;

/// So many addresses of one name are enough to find one that answers.
const MOST: usize = 16;

/// The addresses of a name, those of IPv4 first.
pub(super) fn addresses(text: &str, name: &Name) -> Vec<IpAddr> {
    let address = |line: &str| {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_ascii_whitespace();
        let address: IpAddr = words.next()?.parse().ok()?;
        let is_it =
            |word: &str| word.strip_suffix('.').unwrap_or(word).eq_ignore_ascii_case(name.text());
        words.any(is_it).then_some(address)
    };
    let mut all: Vec<IpAddr> = text.lines().filter_map(address).take(MOST).collect();
    all.sort_by_key(IpAddr::is_ipv6);
    all
}
