//! The answer of an HTTP server as it comes in: within bounds, and whole or not at all.

use std::io::{Error, ErrorKind, Read};

/// The longest head of an answer, bytes. One that is longer does not end.
const LONGEST_HEAD: usize = 64 << 10;

/// The first byte of what a server of TLS says to one that does not speak it.
pub(super) const ALERT: u8 = 0x15;

/// A whole answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
}

/// Why there is none.
#[derive(Debug)]
pub(super) enum Ended {
    /// The connection failed, or the time was over.
    Failed(Error),
    /// There are more bytes than may be.
    Long,
    /// It ended after so many bytes of the body, and said that it has more.
    Cut(usize),
    /// It comes in pieces.
    Pieces,
    /// It is none of HTTP; its first byte.
    NotHttp(Option<u8>),
}

/// The head of an answer.
#[derive(Clone, Copy)]
struct Head {
    status: u16,
    /// Its own length: the body begins there.
    length: usize,
    /// The length of the body, where it says so.
    body: Option<usize>,
}

/// Reads an answer to its end, of so many bytes at most.
pub(super) fn read(mut stream: impl Read, most: usize) -> Result<Answer, Ended> {
    let (mut bytes, mut piece) = (Vec::new(), vec![0; 64 << 10]);
    let mut known: Option<Head> = None;
    loop {
        let is_over = match stream.read(&mut piece) {
            Ok(0) => Ok(true),
            Ok(count) => {
                bytes.extend(&piece[..count]);
                Ok(false)
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        if known.is_none() {
            known = head(&bytes)?;
        }
        let Some(Head { status, length, body }) = known else {
            match is_over {
                Err(error) => return Err(Ended::Failed(error)),
                Ok(true) => return Err(Ended::NotHttp(bytes.first().copied())),
                Ok(false) => continue,
            }
        };
        let come = bytes.len() - length;
        match (is_over, body) {
            (_, Some(body)) if come >= body => {
                return Ok(Answer { status, body: bytes[length..length + body].to_vec() });
            }
            (Ok(true), None) => return Ok(Answer { status, body: bytes.split_off(length) }),
            (Ok(true), Some(_)) => return Err(Ended::Cut(come)),
            // How TLS says that the other end went away in the middle.
            (Err(error), _) if error.kind() == ErrorKind::UnexpectedEof => {
                return Err(Ended::Cut(come));
            }
            (Err(error), _) => return Err(Ended::Failed(error)),
            (Ok(false), _) if bytes.len() > most => return Err(Ended::Long),
            (Ok(false), _) => {}
        }
    }
}

/// The head, once it is whole.
fn head(bytes: &[u8]) -> Result<Option<Head>, Ended> {
    let no_http = || Ended::NotHttp(bytes.first().copied());
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut headers);
    let length = match response.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if bytes.len() <= LONGEST_HEAD => return Ok(None),
        _ => return Err(no_http()),
    };
    let status = response.code.ok_or_else(no_http)?;
    let value = |name: &str| {
        let found = response.headers.iter().find(|of| of.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(found.value).ok()
    };
    if value("transfer-encoding").is_some_and(|how| !how.eq_ignore_ascii_case("identity")) {
        return Err(Ended::Pieces);
    }
    let body = value("content-length").map(|length| length.trim().parse::<usize>());
    let body = body.transpose().map_err(|_| no_http())?;
    Ok(Some(Head { status, length, body }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    const MOST: usize = 100;

    fn words(bytes: &[u8]) -> String {
        match read(Cursor::new(bytes), MOST) {
            Ok(Answer { status, body }) => format!("{status} {}", String::from_utf8_lossy(&body)),
            Err(ended) => format!("{ended:?}"),
        }
    }

    #[test]
    fn an_answer_is_whole_or_none() {
        assert_eq!(words(b"HTTP/1.1 200 OK\r\n\r\nyes"), "200 yes");
        assert_eq!(words(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nyes"), "200 ye");
        assert_eq!(words(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nyes"), "Cut(3)");
        assert_eq!(words(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"), "NotHttp(Some(72))");
        assert_eq!(words(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0"), "Pieces");
        assert_eq!(words(b"HTTP/1.1 200"), "NotHttp(Some(72))");
        assert_eq!(words(b""), "NotHttp(None)");
    }

    #[test]
    fn nothing_is_read_without_end() {
        let endless = std::io::repeat(b'a');
        assert!(matches!(read(endless, MOST), Err(Ended::NotHttp(_))), "at once");
        let head = Cursor::new(b"HTTP/1.1 200 OK\r\nX: ").chain(std::io::repeat(b'a'));
        assert!(matches!(read(head, MOST), Err(Ended::NotHttp(_))), "after 64 KiB");
        let body = Cursor::new(b"HTTP/1.1 200 OK\r\n\r\n").chain(std::io::repeat(b'a'));
        assert!(matches!(read(body, MOST), Err(Ended::Long)));
        let length = Cursor::new(b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n");
        assert!(matches!(read(length.chain(std::io::repeat(b'a')), MOST), Err(Ended::Long)));
    }
}
