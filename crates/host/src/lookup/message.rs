//! Messages of DNS (RFC 1035, 4): a question is written, and an answer to it is read. Answers come from the
//! network: each byte is taken for hostile.

use super::name::Name;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The length of a header, bytes.
const HEADER: usize = 12;

/// Class of the internet.
const INTERNET: u16 = 1;

/// The type of a record that gives another name.
const ALIAS: u16 = 5;

/// The longest name on the wire, bytes.
const LONGEST_NAME: usize = 255;

/// As many names may lead from one to the next.
const MOST_ALIASES: usize = 16;

/// As many addresses are kept: enough to find one that answers.
const MOST_ADDRESSES: usize = 16;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Addresses of IPv4.
    A = 1,
    /// Addresses of IPv6.
    Aaaa = 28,
}

/// A question.
#[derive(Debug, Clone)]
pub(super) struct Question {
    pub id: u16,
    pub name: Name,
    pub kind: Kind,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// The addresses; none where the name has none of this kind.
    Addresses(Vec<IpAddr>),
    /// There is no such name.
    NoSuchName,
    /// It does not fit into a packet.
    Truncated,
    /// The server cannot or will not answer; its code.
    Refusal(u8),
}

impl Question {
    /// The message that asks it.
    pub fn message(&self) -> Vec<u8> {
        let mut bytes = self.id.to_be_bytes().to_vec();
        // Recursion is desired; one question, no records.
        bytes.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
        for label in self.name.labels() {
            // A label of a Name is at most 63 bytes long.
            bytes.push(label.len() as u8);
            bytes.extend(label.as_bytes());
        }
        bytes.push(0);
        bytes.extend((self.kind as u16).to_be_bytes());
        bytes.extend(INTERNET.to_be_bytes());
        bytes
    }

    /// Reads the answer to it; `None` where the message is none, or is malformed.
    pub fn answer(&self, message: &[u8]) -> Option<Answer> {
        let number =
            |at: usize| Some(u16::from_be_bytes(message.get(at..at + 2)?.try_into().ok()?));
        let (id, flags, questions, records) = (number(0)?, number(2)?, number(4)?, number(6)?);
        let (is_answer, opcode, code) = (flags >> 15 == 1, flags >> 11 & 15, (flags & 15) as u8);
        if id != self.id || !is_answer || opcode != 0 {
            return None;
        }
        let mut reader = Reader { message, at: HEADER };
        // A server that did not understand the question may leave it out.
        if questions != 0 || code == 0 {
            let asked = (reader.name()?, reader.number()?, reader.number()?);
            let own = (self.name.text().to_owned(), self.kind as u16, INTERNET);
            if questions != 1 || asked != own {
                return None;
            }
        }
        match code {
            _ if flags >> 9 & 1 == 1 => Some(Answer::Truncated),
            0 => Records::read(&mut reader, records, self.kind)
                .map(|records| Answer::Addresses(records.addresses(self.name.text()))),
            3 => Some(Answer::NoSuchName),
            code => Some(Answer::Refusal(code)),
        }
    }
}

/// The records of an answer that matter.
#[derive(Default)]
struct Records {
    addresses: Vec<(String, IpAddr)>,
    aliases: HashMap<String, String>,
}

impl Records {
    fn read(reader: &mut Reader, count: u16, kind: Kind) -> Option<Self> {
        let mut records = Self::default();
        for _ in 0..count {
            let (name, record, class) = (reader.name()?, reader.number()?, reader.number()?);
            reader.bytes(4)?; // for how long it holds
            let length = usize::from(reader.number()?);
            let end = reader.at.checked_add(length)?;
            if class == INTERNET && record == ALIAS {
                let alias = reader.name()?;
                records.aliases.entry(name).or_insert(alias);
            } else if class == INTERNET && record == kind as u16 {
                records.addresses.push((name, address(kind, reader.bytes(length)?)?));
            } else {
                reader.bytes(length)?;
            }
            if reader.at != end {
                return None;
            }
        }
        Some(records)
    }

    /// The addresses of a name, or of the one that it leads to.
    fn addresses(&self, name: &str) -> Vec<IpAddr> {
        let mut name = name;
        for _ in 0..=MOST_ALIASES {
            let own = self.addresses.iter().filter(|(of, _)| of == name);
            let own: Vec<IpAddr> = own.map(|(_, address)| *address).take(MOST_ADDRESSES).collect();
            match self.aliases.get(name) {
                Some(alias) if own.is_empty() => name = alias,
                _ => return own,
            }
        }
        Vec::new()
    }
}

fn address(kind: Kind, bytes: &[u8]) -> Option<IpAddr> {
    match kind {
        Kind::A => Some(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?).into()),
        Kind::Aaaa => Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).into()),
    }
}

struct Reader<'a> {
    message: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(count)?;
        let bytes = self.message.get(self.at..end)?;
        self.at = end;
        Some(bytes)
    }

    fn number(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.bytes(2)?.try_into().ok()?))
    }

    /// A name in lower case. A part of it may stand earlier in the message; each such pointer leads further
    /// back, so that it ends.
    fn name(&mut self) -> Option<String> {
        let mut name = String::new();
        let mut begin = self.at;
        let mut after = None;
        let mut used = 0;
        loop {
            let length = *self.bytes(1)?.first()?;
            match length {
                0 => break,
                1..=63 => {
                    let label = self.bytes(usize::from(length))?;
                    used += label.len() + 1;
                    if used >= LONGEST_NAME {
                        return None;
                    }
                    if !name.is_empty() {
                        name.push('.');
                    }
                    // What is no name of a host equals none that is asked for.
                    let plain = |byte: &u8| {
                        if byte.is_ascii_graphic() && *byte != b'.' { *byte } else { b'?' }
                    };
                    name.extend(
                        label.iter().map(|byte| char::from(plain(byte).to_ascii_lowercase())),
                    );
                }
                192.. => {
                    let low = *self.bytes(1)?.first()?;
                    let there = usize::from(length & 63) << 8 | usize::from(low);
                    after.get_or_insert(self.at);
                    if there >= begin {
                        return None;
                    }
                    (self.at, begin) = (there, there);
                }
                _ => return None,
            }
        }
        if let Some(after) = after {
            self.at = after;
        }
        Some(name)
    }
}
