//! How many rules and elements nftables has, by `NETLINK_NETFILTER`, as `nft list` reads them: iptables of
//! today keeps its rules there too.
//!
//! Source of all numbers: `linux/netfilter/nfnetlink.h`, `linux/netfilter/nf_tables.h`.

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::os::fd::OwnedFd;
use std::time::Duration;
use untax_core::Reading::{self, Absent, Denied, Failed, Present};

/// The kernel answers at once.
const DEADLINE: Duration = Duration::from_secs(2);

/// The most that the kernel writes at a time.
const BUFFER: usize = 64 << 10;

/// More messages than this are not read: some 50,000 rules take a few tens of ms.
const MOST_MESSAGES: usize = 200_000;

/// `NFNL_SUBSYS_NFTABLES << 8` with `NFT_MSG_NEWRULE`, `NFT_MSG_GETRULE`, `NFT_MSG_NEWSETELEM` and
/// `NFT_MSG_GETSETELEM`.
const NEW_RULE: u16 = 0x0a06;
const GET_RULE: u16 = 0x0a07;
const NEW_ELEMENTS: u16 = 0x0a0c;
const GET_ELEMENTS: u16 = 0x0a0d;

/// `NLMSG_ERROR`, `NLMSG_DONE`.
const ERROR: u16 = 2;
const DONE: u16 = 3;

/// `NLM_F_REQUEST | NLM_F_DUMP`.
const DUMP: u16 = 0x301;

/// `NFPROTO_IPV4`.
const IPV4: u8 = 2;

/// `NFTA_RULE_TABLE`, `NFTA_RULE_CHAIN`; `NFTA_SET_ELEM_LIST_TABLE`, `NFTA_SET_ELEM_LIST_SET`: 1 and 2 of both.
const TABLE: u16 = 1;
const NAME: u16 = 2;

/// `NFTA_SET_ELEM_LIST_ELEMENTS`, and the bits of a kind that say how it is written.
const ELEMENTS: u16 = 3;
const KIND: u16 = 0x3fff;

/// Lengths of `nlmsghdr` and `nfgenmsg`.
const HEADER: usize = 16;
const GENERAL: usize = 4;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// Rules of a chain.
    Rules,
    /// Elements of a set or map.
    Elements,
}

/// How many rules a chain has, or elements a set, of a table of the family `ip` in this program's network
/// namespace. Like `nft list`, this may make the kernel load its module `nf_tables`.
pub fn count(what: Counted, table: &str, name: &str) -> Reading<u64> {
    match dump(what, table, name) {
        Ok(Some(count)) => Present(count),
        Ok(None) => Absent(format!("nftables has no {name} in a table {table}")),
        Err(Errno::PERM | Errno::ACCESS) => {
            Denied("the rules of nftables need root (CAP_NET_ADMIN)".to_owned())
        }
        Err(Errno::PROTONOSUPPORT | Errno::AFNOSUPPORT | Errno::OPNOTSUPP | Errno::INVAL) => {
            Absent("this kernel has no nftables".to_owned())
        }
        Err(errno) => Failed(format!("the rules of nftables: {errno}")),
    }
}

fn dump(what: Counted, table: &str, name: &str) -> Result<Option<u64>, Errno> {
    let socket = open()?;
    net::send(&socket, &request(what, table, name), SendFlags::empty())?;
    let (mut buffer, mut count, mut messages) = (vec![0; BUFFER], 0, 0);
    loop {
        let (_, length) = net::recv(&socket, &mut buffer[..], RecvFlags::empty())?;
        let part = parse(what, buffer.get(..length).unwrap_or(&buffer));
        count += part.count;
        messages += part.messages;
        match part.end {
            Some(Ok(())) => return Ok((messages > 0).then_some(count)),
            Some(Err(Errno::NOENT)) => return Ok(None),
            Some(Err(errno)) => return Err(errno),
            None if messages > MOST_MESSAGES => return Err(Errno::TOOBIG),
            None => {}
        }
    }
}

fn open() -> Result<OwnedFd, Errno> {
    let protocol = Some(net::netlink::NETFILTER);
    let family = AddressFamily::NETLINK;
    let socket = net::socket_with(family, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?;
    set_socket_timeout(&socket, Timeout::Recv, Some(DEADLINE))?;
    Ok(socket)
}

fn request(what: Counted, table: &str, name: &str) -> Vec<u8> {
    let kind = if what == Counted::Rules { GET_RULE } else { GET_ELEMENTS };
    let mut bytes = vec![0; HEADER];
    bytes.extend([IPV4, 0, 0, 0]);
    for (kind, text) in [(TABLE, table), (NAME, name)] {
        let length = (4 + text.len() + 1) as u16;
        bytes.extend(length.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(text.as_bytes());
        bytes.push(0);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    }
    let length = (bytes.len() as u32).to_ne_bytes();
    bytes[0..4].copy_from_slice(&length);
    bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
    bytes[6..8].copy_from_slice(&DUMP.to_ne_bytes());
    bytes
}

/// What one reading gave.
#[derive(Debug, Default, PartialEq, Eq)]
struct Part {
    count: u64,
    messages: usize,
    end: Option<Result<(), Errno>>,
}

fn parse(what: Counted, mut bytes: &[u8]) -> Part {
    let mut part = Part::default();
    while let Some(length) = u32_at(bytes, 0).map(|length| length as usize) {
        let Some(message) = bytes.get(HEADER..length) else { break };
        match (u16_at(bytes, 4), what) {
            (Some(DONE), _) => part.end = Some(Ok(())),
            (Some(ERROR), _) => {
                let code = u32_at(message, 0).map_or(0, u32::cast_signed);
                part.end = Some(Err(Errno::from_raw_os_error(code.saturating_neg())));
            }
            (Some(NEW_RULE), Counted::Rules) => {
                part.messages += 1;
                part.count += 1;
            }
            (Some(NEW_ELEMENTS), Counted::Elements) => {
                part.messages += 1;
                part.count += elements(message.get(GENERAL..).unwrap_or_default());
            }
            _ => {}
        }
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    part
}

/// Elements in the list of a message.
fn elements(attributes: &[u8]) -> u64 {
    let lists = Attributes(attributes).filter(|(kind, _)| *kind == ELEMENTS);
    lists.map(|(_, list)| Attributes(list).count() as u64).sum()
}

/// Attributes one behind the other: length, kind and value each.
struct Attributes<'a>(&'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let length = usize::from(u16_at(self.0, 0)?);
        let (kind, value) = (u16_at(self.0, 2)? & KIND, self.0.get(4..length)?);
        self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0; HEADER - 6]);
        bytes.extend(body);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = ((4 + value.len()) as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn rules_and_elements_are_counted_until_the_list_ends() {
        let rules = [message(NEW_RULE, &[0; 8]), message(NEW_RULE, &[0; 9])].concat();
        assert_eq!(parse(Counted::Rules, &rules), Part { count: 2, messages: 2, end: None });
        let list = [attribute(1, &[1, 2, 3]), attribute(1, &[]), attribute(1, &[9; 8])].concat();
        let body = [&[0; GENERAL][..], &attribute(1, b"t\0"), &attribute(ELEMENTS | 0x8000, &list)];
        let all = [message(NEW_ELEMENTS, &body.concat()), message(DONE, &[0; 4])].concat();
        let part = parse(Counted::Elements, &all);
        assert_eq!(part, Part { count: 3, messages: 1, end: Some(Ok(())) });
    }

    #[test]
    fn a_refusal_is_an_error() {
        let refused = message(ERROR, &(-1_i32).to_ne_bytes());
        assert_eq!(parse(Counted::Rules, &refused).end, Some(Err(Errno::PERM)));
    }

    proptest! {
        #[test]
        fn anything_is_parsed_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(Counted::Rules, &bytes);
            let _ = parse(Counted::Elements, &bytes);
        }
    }
}
