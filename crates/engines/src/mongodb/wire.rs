//! MongoDB's wire protocol, as far as one command and one answer need it: `OP_MSG` with one document.
//!
//! Sources: mongodb.com, "Wire Protocol"; bsonspec.org.

/// The length of a message's header: its length, two ids, and the kind of operation.
pub(super) const HEADER: usize = 16;

/// What stands before the document: flags, and the kind of section.
pub(super) const BEFORE_DOCUMENT: usize = 5;

/// The kind of operation that all versions since 3.6 know.
const OP_MSG: i32 = 2013;

/// The longest answer that is read: `hello` has about 500 bytes, `buildInfo` 3 KiB.
const MOST_BYTES: usize = 1 << 20;

const DOUBLE: u8 = 0x01;
const TEXT: u8 = 0x02;
const INT32: u8 = 0x10;
const INT64: u8 = 0x12;

/// The message of a command without arguments.
pub(super) fn command(name: &str) -> Vec<u8> {
    message(&document(&[number_element(name, 1), text_element("$db", "admin")].concat()))
}

/// A message with one document.
pub(super) fn message(document: &[u8]) -> Vec<u8> {
    let length = length_of(HEADER + BEFORE_DOCUMENT + document.len());
    let header = [length, 1_i32.to_le_bytes(), [0; 4], OP_MSG.to_le_bytes()].concat();
    [header.as_slice(), &[0; BEFORE_DOCUMENT], document].concat()
}

/// How many bytes follow a header; `None` where it is no such message's, or of one that is too long.
pub(super) fn body_length(header: &[u8; HEADER]) -> Option<usize> {
    let operation = int32(&header[12..])?;
    let length = usize::try_from(int32(header)?).ok()?.checked_sub(HEADER)?;
    (operation == OP_MSG && (BEFORE_DOCUMENT..=MOST_BYTES).contains(&length)).then_some(length)
}

/// A document with these elements.
pub(super) fn document(elements: &[u8]) -> Vec<u8> {
    [&length_of(elements.len() + 5), elements, &[0]].concat()
}

/// A length as the protocol writes it. None that is sent comes near the largest one.
fn length_of(bytes: usize) -> [u8; 4] {
    i32::try_from(bytes).unwrap_or(i32::MAX).to_le_bytes()
}

pub(super) fn number_element(name: &str, value: i32) -> Vec<u8> {
    [&[INT32], name.as_bytes(), &[0], &value.to_le_bytes()].concat()
}

pub(super) fn text_element(name: &str, value: &str) -> Vec<u8> {
    let start = [&[TEXT], name.as_bytes(), &[0], &length_of(value.len() + 1)].concat();
    [start.as_slice(), value.as_bytes(), &[0]].concat()
}

/// A whole number among the elements of a document.
pub(super) fn number(document: &[u8], name: &str) -> Option<i64> {
    match element(document, name)? {
        (INT32, value) => int32(value).map(i64::from),
        (INT64, value) => Some(i64::from_le_bytes(value.try_into().ok()?)),
        (DOUBLE, value) => Some(f64::from_le_bytes(value.try_into().ok()?) as i64),
        _ => None,
    }
}

/// A text among the elements of a document.
pub(super) fn text<'a>(document: &'a [u8], name: &str) -> Option<&'a str> {
    match element(document, name)? {
        (TEXT, value) => std::str::from_utf8(value.get(4..value.len().checked_sub(1)?)?).ok(),
        _ => None,
    }
}

/// The kind and the value of one of a document's own elements.
fn element<'a>(document: &'a [u8], name: &str) -> Option<(u8, &'a [u8])> {
    let mut rest = document.get(4..)?;
    loop {
        let (kind, after) = rest.split_first().filter(|(kind, _)| **kind != 0)?;
        let end = after.iter().position(|byte| *byte == 0)?;
        let (found, value) = (&after[..end], &after[end + 1..]);
        let value = value.get(..value_length(*kind, value)?)?;
        if found == name.as_bytes() {
            return Some((*kind, value));
        }
        rest = after.get(end + 1 + value.len()..)?;
    }
}

/// How long a value of this kind is that stands at the beginning of these bytes.
fn value_length(kind: u8, bytes: &[u8]) -> Option<usize> {
    let length = || usize::try_from(int32(bytes)?).ok();
    match kind {
        0x06 | 0x0A | 0x7F | 0xFF => Some(0),
        0x08 => Some(1),
        INT32 => Some(4),
        DOUBLE | 0x09 | 0x11 | INT64 => Some(8),
        0x07 => Some(12),
        0x13 => Some(16),
        TEXT | 0x0D | 0x0E => length()?.checked_add(4),
        0x03 | 0x04 | 0x0F => length(),
        0x05 => length()?.checked_add(5),
        _ => None,
    }
}

fn int32(bytes: &[u8]) -> Option<i32> {
    Some(i32::from_le_bytes(bytes.get(..4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A document with an element of each kind that is stepped over.
    fn mixed() -> Vec<u8> {
        let inner = document(&number_element("maxWireVersion", 99));
        let element = |kind: u8, value: &[u8]| [&[kind], &b"x\0"[..], value].concat();
        let binary = [&3_i32.to_le_bytes()[..], &[0, 1, 2, 3]].concat();
        document(
            &[
                element(0x03, &inner),
                element(0x05, &binary),
                element(0x08, &[1]),
                element(0x09, &[0; 8]),
                element(0x0A, &[]),
                element(0x07, &[0; 12]),
                text_element("version", "8.0.4"),
                number_element("maxWireVersion", 25),
            ]
            .concat(),
        )
    }

    #[test]
    fn its_own_elements_are_found_behind_all_others() {
        assert_eq!(number(&mixed(), "maxWireVersion"), Some(25), "not that of the inner document");
        assert_eq!(text(&mixed(), "version"), Some("8.0.4"));
        assert_eq!(text(&mixed(), "maxWireVersion"), None);
        assert_eq!(number(&mixed(), "missing"), None);
    }

    #[test]
    fn a_command_as_the_protocol_has_it() {
        let hello = command("hello");
        let header: [u8; HEADER] = hello[..HEADER].try_into().unwrap();
        assert_eq!(body_length(&header), Some(hello.len() - HEADER));
        assert_eq!(text(&hello[HEADER + BEFORE_DOCUMENT..], "$db"), Some("admin"));
        let reply = [40, 1, 0, 1].map(i32::to_le_bytes).concat();
        assert_eq!(body_length(reply.as_slice().try_into().unwrap()), None, "another operation");
    }

    proptest! {
        #[test]
        fn bytes_of_anyone_are_read_without_harm(bytes: Vec<u8>) {
            let _ = (number(&bytes, "a"), text(&bytes, "a"));
            let of_document = document(&bytes);
            let _ = (number(&of_document, "a"), text(&of_document, "a"));
        }

        #[test]
        fn whatever_is_cut_off_is_no_value(end in 0_usize..mixed().len() - 6) {
            prop_assert_eq!(number(&mixed()[..end], "maxWireVersion"), None);
        }
    }
}
