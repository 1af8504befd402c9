//! How many rules and elements nftables has, by `NETLINK_NETFILTER`, as `nft list` reads them: iptables of
//! today keeps its rules there too.
//!
//! Source of all numbers: `linux/netfilter/nfnetlink.h`, `linux/netfilter/nf_tables.h`.

use crate::netlink::{self, Attributes, attribute};
use rustix::io::Errno;
use rustix::net::netlink::NETFILTER;
use untax_core::Reading::{self, Absent, Denied, Failed, Present};

/// More messages than this are not read: some 50,000 rules take a few tens of ms.
const MOST_MESSAGES: usize = 200_000;

/// `NFNL_SUBSYS_NFTABLES << 8` with `NFT_MSG_NEWRULE`, `NFT_MSG_GETRULE`, `NFT_MSG_NEWSETELEM` and
/// `NFT_MSG_GETSETELEM`.
const NEW_RULE: u16 = 0x0a06;
const GET_RULE: u16 = 0x0a07;
const NEW_ELEMENTS: u16 = 0x0a0c;
const GET_ELEMENTS: u16 = 0x0a0d;

/// `NFPROTO_IPV4`.
const IPV4: u8 = 2;

/// `NFTA_RULE_TABLE`, `NFTA_RULE_CHAIN`; `NFTA_SET_ELEM_LIST_TABLE`, `NFTA_SET_ELEM_LIST_SET`: 1 and 2 of both.
const TABLE: u16 = 1;
const NAME: u16 = 2;

/// `NFTA_SET_ELEM_LIST_ELEMENTS`.
const ELEMENTS: u16 = 3;

/// The length of `nfgenmsg`.
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
    let socket = netlink::open(NETFILTER)?;
    let kind = if what == Counted::Rules { GET_RULE } else { GET_ELEMENTS };
    let mut list = List { what, count: 0, messages: 0 };
    match netlink::dump(&socket, kind, &wanted(table, name), |kind, body| list.take(kind, body)) {
        Ok(()) => Ok((list.messages > 0).then_some(list.count)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

fn wanted(table: &str, name: &str) -> Vec<u8> {
    let text = |kind, text: &str| attribute(kind, &[text.as_bytes(), &[0]].concat());
    [&[IPV4, 0, 0, 0][..], &text(TABLE, table), &text(NAME, name)].concat()
}

/// What was counted of a list so far.
struct List {
    what: Counted,
    count: u64,
    messages: usize,
}

impl List {
    fn take(&mut self, kind: u16, body: &[u8]) -> Result<(), Errno> {
        self.count += match (kind, self.what) {
            (NEW_RULE, Counted::Rules) => 1,
            (NEW_ELEMENTS, Counted::Elements) => elements(body.get(GENERAL..).unwrap_or_default()),
            _ => return Ok(()),
        };
        self.messages += 1;
        if self.messages > MOST_MESSAGES { Err(Errno::TOOBIG) } else { Ok(()) }
    }
}

/// Elements in the list of a message.
fn elements(attributes: &[u8]) -> u64 {
    let lists = Attributes(attributes).filter(|(kind, _)| *kind == ELEMENTS);
    lists.map(|(_, list)| Attributes(list).count() as u64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::made::{end, message};
    use crate::netlink::{Listed, parse};

    fn counted(what: Counted, bytes: &[u8]) -> (Result<Listed, Errno>, u64, usize) {
        let mut list = List { what, count: 0, messages: 0 };
        let listed = parse(bytes, &mut |kind, body| list.take(kind, body));
        (listed, list.count, list.messages)
    }

    #[test]
    fn rules_and_elements_are_counted_until_the_list_ends() {
        let rules = [message(NEW_RULE, &[0; 8]), message(NEW_RULE, &[0; 9])].concat();
        assert_eq!(counted(Counted::Rules, &rules), (Ok(Listed::Part), 2, 2));
        let list = [attribute(1, &[1, 2, 3]), attribute(1, &[]), attribute(1, &[9; 8])].concat();
        let body = [&[0; GENERAL][..], &attribute(1, b"t\0"), &attribute(ELEMENTS | 0x8000, &list)];
        let all = [message(NEW_ELEMENTS, &body.concat()), end()].concat();
        assert_eq!(counted(Counted::Elements, &all), (Ok(Listed::All), 3, 1));
        assert_eq!(counted(Counted::Rules, &all), (Ok(Listed::All), 0, 0), "none is of that kind");
    }
}
