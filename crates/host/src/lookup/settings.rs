//! `/etc/resolv.conf`: which servers are asked, and in which domains a short name is searched.

use super::name::Name;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

/// The port of DNS.
const PORT: u16 = 53;

/// As many as the C library takes (resolv.h: MAXNS, MAXDNSRCH).
const MOST_SERVERS: usize = 3;
const MOST_DOMAINS: usize = 6;

/// The bounds and defaults of resolv.conf(5).
const DOTS: (usize, usize) = (1, 15);
const TIMEOUT_S: (u64, u64) = (5, 30);
const ATTEMPTS: (u32, u32) = (2, 5);

/// How names are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Settings {
    /// At least one.
    pub servers: Vec<SocketAddr>,
    /// Domains in which a short name is searched.
    search: Vec<Name>,
    /// A name with so many dots is asked for as it is first.
    dots: usize,
    /// How long a server may take.
    pub timeout: Duration,
    /// How often each is asked.
    pub attempts: u32,
    /// Whether servers are asked by TCP alone.
    pub by_tcp: bool,
}

impl Settings {
    /// Of the text of the file. A host without one asks itself, as resolv.conf(5) has it.
    pub fn of(text: &str) -> Self {
        let mut settings = Self {
            servers: Vec::new(),
            search: Vec::new(),
            dots: DOTS.0,
            timeout: Duration::from_secs(TIMEOUT_S.0),
            attempts: ATTEMPTS.0,
            by_tcp: false,
        };
        for line in text.lines().filter(|line| !line.starts_with(['#', ';'])) {
            let mut words = line.split_ascii_whitespace();
            match words.next() {
                Some("nameserver") => settings.servers.extend(words.next().and_then(server)),
                // The last of them holds.
                Some("search" | "domain") => {
                    settings.search = words.filter_map(Name::new).collect();
                }
                Some("options") => words.for_each(|option| settings.take(option)),
                _ => {}
            }
        }
        settings.servers.truncate(MOST_SERVERS);
        settings.search.truncate(MOST_DOMAINS);
        if settings.servers.is_empty() {
            settings.servers.push(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), PORT));
        }
        settings
    }

    fn take(&mut self, option: &str) {
        let (name, value) = option.split_once(':').unwrap_or((option, ""));
        match name {
            "ndots" => self.dots = bounded(value, 0, DOTS),
            "timeout" => self.timeout = Duration::from_secs(bounded(value, 1, TIMEOUT_S)),
            "attempts" => self.attempts = bounded(value, 1, ATTEMPTS),
            "use-vc" => self.by_tcp = true,
            _ => {}
        }
    }

    /// The names to ask for, one after the other.
    pub fn candidates(&self, name: &Name) -> Vec<Name> {
        let search = if name.is_whole { &[][..] } else { &self.search };
        let mut all: Vec<Name> = search.iter().filter_map(|domain| name.within(domain)).collect();
        let first = name.dots() >= self.dots;
        all.insert(if first { 0 } else { all.len() }, name.clone());
        all
    }
}

/// A server. One whose address is of one link alone (`fe80::1%eth0`) is left out.
fn server(word: &str) -> Option<SocketAddr> {
    let address: IpAddr = word.parse().ok()?;
    Some(SocketAddr::new(address, PORT))
}

/// A number of an option: its default where it is none, and no less or more than its bounds.
fn bounded<N: FromStr + Ord>(text: &str, least: N, (default, most): (N, N)) -> N {
    text.parse().map_or(default, |number: N| number.clamp(least, most))
}
