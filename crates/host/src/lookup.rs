//! Addresses of a host's name, by `/etc/hosts` and DNS.
//!
//! The C library does this by modules that it loads while it runs, which a static program must not do
//! (rust-lang/rust#100711). Here the two usual ways are enough: the file, then the servers of
//! `/etc/resolv.conf`. Other ways of `/etc/nsswitch.conf` (mDNS, LDAP) are not gone.

mod ask;
mod hosts;
mod message;
mod name;
mod settings;

use crate::Host;
use ask::{Outcome, ask};
use name::Name;
use settings::Settings;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

/// A look-up takes no longer, however patient the caller is: two tries of two servers, a second each.
const LONGEST: Duration = Duration::from_secs(5);

/// Why a name has no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    /// The text cannot be a name.
    #[error(
        "{0:?} is no name of a host; names have letters, digits, dots, hyphens and underscores. \
         Name another host, or an IP address"
    )]
    NotAName(String),
    /// Nobody knows the name.
    #[error(
        "no host has the name {name}, say /etc/hosts and the DNS server {server}; see how it is spelled"
    )]
    Unknown {
        /// The name.
        name: String,
        /// The server that said so.
        server: SocketAddr,
    },
    /// No server answers, or the last one answers that it cannot.
    #[error(
        "the address of {name} is not known: the DNS server {server} {why}. See nameserver in \
             /etc/resolv.conf, or name an IP address"
    )]
    NoAnswer {
        /// The name.
        name: String,
        /// The last server that was asked.
        server: SocketAddr,
        /// What it did.
        why: String,
    },
}

/// The addresses of a name, or of an address written down. There is at least one, those of IPv4 first. Takes as
/// long as `patience`, and never more than five seconds.
pub fn addresses(name: &str, patience: Duration) -> Result<Vec<IpAddr>, LookupError> {
    let host = Host::live();
    let text = |path: &str| host.text(path).into_value().unwrap_or_default();
    let settings = || Settings::of(&text("/etc/resolv.conf"));
    look_up(name, || text("/etc/hosts"), settings, Instant::now() + patience.min(LONGEST))
}

fn look_up(
    text: &str,
    hosts: impl FnOnce() -> String,
    settings: impl FnOnce() -> Settings,
    until: Instant,
) -> Result<Vec<IpAddr>, LookupError> {
    if let Ok(address) = text.trim_start_matches('[').trim_end_matches(']').parse() {
        return Ok(vec![address]);
    }
    let name = Name::new(text).ok_or_else(|| LookupError::NotAName(text.to_owned()))?;
    let listed = hosts::addresses(&hosts(), &name);
    if !listed.is_empty() {
        return Ok(listed);
    }
    if name.is_of_this_host() {
        return Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
    }
    by_dns(&name, &settings(), until)
}

/// Asks for the name, and for it within the domains that are searched.
fn by_dns(name: &Name, settings: &Settings, until: Instant) -> Result<Vec<IpAddr>, LookupError> {
    let mut failure = None;
    let mut unknown_to = settings.servers[0];
    for candidate in settings.candidates(name) {
        match ask(&candidate, settings, until) {
            Outcome::Addresses(addresses) => return Ok(addresses),
            Outcome::Unknown(server) => unknown_to = server,
            Outcome::Failure { server, why, is_silent } => {
                let name = name.to_string();
                failure = Some(LookupError::NoAnswer { name, server, why });
                // A server that says nothing of one name says nothing of the next.
                if is_silent {
                    break;
                }
            }
        }
    }
    let unknown = || LookupError::Unknown { name: name.to_string(), server: unknown_to };
    Err(failure.unwrap_or_else(unknown))
}

#[cfg(test)]
mod tests;
