//! Lists that the kernel writes over netlink: a request, messages, and one that ends the list.
//!
//! Source of all numbers: `linux/netlink.h`.

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{self, AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// The kernel answers at once.
const DEADLINE: Duration = Duration::from_secs(2);

/// The most that the kernel writes at a time.
const BUFFER: usize = 64 << 10;

/// `NLMSG_ERROR`, `NLMSG_DONE`.
const ERROR: u16 = 2;
const DONE: u16 = 3;

/// `NLM_F_REQUEST | NLM_F_DUMP`.
const DUMP: u16 = 0x301;

/// The length of `nlmsghdr`.
const HEADER: usize = 16;

/// The bits of an attribute's kind that do not say how it is written.
const KIND: u16 = 0x3fff;

/// The largest number of an error.
const MOST_ERROR: i32 = 4095;

/// Opens a socket in the network namespace of this thread.
pub(crate) fn open(protocol: Protocol) -> Result<OwnedFd, Errno> {
    let family = AddressFamily::NETLINK;
    let socket = net::socket_with(family, SocketType::RAW, SocketFlags::CLOEXEC, Some(protocol))?;
    set_socket_timeout(&socket, Timeout::Recv, Some(DEADLINE))?;
    Ok(socket)
}

/// Asks for a list: `take` is given the kind and the body of each message of it. An error of its own
/// ends the reading.
pub(crate) fn dump(
    socket: &OwnedFd,
    kind: u16,
    body: &[u8],
    mut take: impl FnMut(u16, &[u8]) -> Result<(), Errno>,
) -> Result<(), Errno> {
    net::send(socket, &message(kind, DUMP, body), SendFlags::empty())?;
    let mut buffer = vec![0; BUFFER];
    loop {
        let (_, length) = net::recv(socket, &mut buffer[..], RecvFlags::empty())?;
        if parse(buffer.get(..length).unwrap_or(&buffer), &mut take)? == Listed::All {
            return Ok(());
        }
    }
}

/// How far a list has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listed {
    Part,
    All,
}

/// Takes the messages apart that the kernel wrote at once. A refusal of the request is an error.
pub(crate) fn parse(
    mut bytes: &[u8],
    take: &mut impl FnMut(u16, &[u8]) -> Result<(), Errno>,
) -> Result<Listed, Errno> {
    while let Some(length) = u32_at(bytes, 0).map(|length| length as usize) {
        let Some(body) = bytes.get(HEADER..length) else { break };
        match u16_at(bytes, 4) {
            Some(DONE) => return Ok(Listed::All),
            Some(ERROR) => return refusal(body),
            Some(kind) => take(kind, body)?,
            None => {}
        }
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(Listed::Part)
}

/// The number in an `nlmsgerr`: none is a receipt.
fn refusal(body: &[u8]) -> Result<Listed, Errno> {
    match u32_at(body, 0).map_or(0, u32::cast_signed).saturating_neg() {
        0 => Ok(Listed::All),
        number @ 1..=MOST_ERROR => Err(Errno::from_raw_os_error(number)),
        _ => Err(Errno::IO),
    }
}

fn message(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.resize(HEADER, 0);
    bytes.extend(body);
    bytes
}

/// Attributes one behind the other: length, kind and value each.
pub(crate) struct Attributes<'a>(pub &'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let length = usize::from(u16_at(self.0, 0)?);
        let (kind, value) = (u16_at(self.0, 2)? & KIND, self.0.get(4..length)?);
        self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    }
}

/// One attribute, padded as the kernel wants it.
pub(crate) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = ((4 + value.len()) as u16).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Messages as the kernel writes them.
#[cfg(test)]
pub(crate) mod made {
    use super::*;

    /// One of this kind.
    pub fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = super::message(kind, 0, body);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    /// The end of a list.
    pub fn end() -> Vec<u8> {
        message(DONE, &[0; 4])
    }

    /// The refusal of a request.
    pub fn refusal(code: i32) -> Vec<u8> {
        message(ERROR, &code.to_ne_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kinds(bytes: &[u8]) -> (Result<Listed, Errno>, Vec<u16>) {
        let mut kinds = Vec::new();
        let listed = parse(bytes, &mut |kind, _| {
            kinds.push(kind);
            Ok(())
        });
        (listed, kinds)
    }

    #[test]
    fn messages_are_taken_until_the_list_ends() {
        let two = [made::message(20, &[0; 5]), made::message(21, &[0; 8])].concat();
        assert_eq!(kinds(&two), (Ok(Listed::Part), vec![20, 21]));
        let ended = [two.clone(), made::end(), two].concat();
        assert_eq!(kinds(&ended), (Ok(Listed::All), vec![20, 21]));
    }

    #[test]
    fn a_refusal_is_an_error_and_a_receipt_is_none() {
        let listed = [-1, 0, i32::MIN, 7].map(|code| kinds(&made::refusal(code)).0);
        assert_eq!(listed, [Err(Errno::PERM), Ok(Listed::All), Err(Errno::IO), Err(Errno::IO)]);
    }

    #[test]
    fn whoever_takes_messages_may_stop() {
        let two = [made::message(20, &[]), made::message(21, &[])].concat();
        assert_eq!(parse(&two, &mut |_, _| Err(Errno::TOOBIG)), Err(Errno::TOOBIG));
    }

    proptest! {
        #[test]
        fn anything_is_parsed_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = kinds(&bytes);
            let _ = Attributes(&bytes).count();
        }
    }
}
