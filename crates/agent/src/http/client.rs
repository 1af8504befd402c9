//! Asks an HTTP server once: of an agent, or of Prometheus.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use untax_host::lookup::{self, LookupError};

/// The longest answer, bytes: pages of queries and the texts of agents are shorter.
const LONGEST_ANSWER: u64 = 64 << 20;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The address has another form.
    #[error("{0} is no address of the form http://HOST:PORT")]
    Address(String),
    /// The host's name has no address.
    #[error(transparent)]
    Name(#[from] LookupError),
    /// Nobody answers there.
    #[error("{0} does not answer: {1}")]
    Unreachable(String, std::io::Error),
    /// The answer is none of HTTP.
    #[error("{0} does not speak HTTP")]
    NotHttp(String),
    /// The server refuses.
    #[error("{0} answers {1}: {2}")]
    Status(String, u16, String),
}

/// Asks `http://HOST:PORT` for a path, and gives what a server answers with success.
pub fn ask(
    base: &str,
    path: &str,
    token: Option<&str>,
    patience: Duration,
) -> Result<String, AskError> {
    let wrong = || AskError::Address(base.to_owned());
    let rest = base.strip_prefix("http://").ok_or_else(wrong)?.trim_end_matches('/');
    let (authority, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let prefix = if prefix.is_empty() { String::new() } else { format!("/{prefix}") };
    let is_plain = |text: &str| text.chars().all(|c| c.is_ascii_graphic());
    let (host, port) = host_and_port(authority).ok_or_else(wrong)?;
    if !is_plain(rest) || !is_plain(path) {
        return Err(wrong());
    }
    let token = token.map(|token| format!("Authorization: Bearer {token}\r\n"));
    // Version 1.0, so that the answer comes in one piece.
    let request = format!(
        "GET {prefix}{path} HTTP/1.0\r\nHost: {authority}\r\nAccept: */*\r\n{}\r\n",
        token.unwrap_or_default()
    );
    let until = Instant::now() + patience;
    let addresses = lookup::addresses(host, patience)?;
    let addresses = addresses.into_iter().map(|address| SocketAddr::new(address, port));
    let bytes = exchange(addresses, &request, until)
        .map_err(|error| AskError::Unreachable(base.to_owned(), error))?;
    body(&bytes, base)
}

/// The name and the port, 80 where there is none. An address of IPv6 has brackets.
fn host_and_port(authority: &str) -> Option<(&str, u16)> {
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !authority.ends_with(']') => (host, port.parse().ok()?),
        _ => (authority, 80),
    };
    let is_bare = host.contains(':') && !host.starts_with('[');
    (!host.is_empty() && !is_bare).then_some((host, port))
}

/// Asks at the first of these addresses to which there is a connection.
fn exchange(
    addresses: impl Iterator<Item = SocketAddr>,
    request: &str,
    until: Instant,
) -> std::io::Result<Vec<u8>> {
    let mut last = std::io::ErrorKind::NotFound.into();
    for address in addresses {
        match TcpStream::connect_timeout(&address, left(until)?) {
            Ok(mut stream) => {
                stream.set_write_timeout(Some(left(until)?))?;
                stream.write_all(request.as_bytes())?;
                return read(&stream, until);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The time that is left; an error where there is none.
fn left(until: Instant) -> std::io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(std::io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

fn read(mut stream: &TcpStream, until: Instant) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut piece = vec![0; 64 << 10];
    loop {
        stream.set_read_timeout(Some(left(until)?))?;
        match stream.read(&mut piece)? {
            0 => return Ok(bytes),
            count => bytes.extend(&piece[..count]),
        }
        if bytes.len() as u64 > LONGEST_ANSWER {
            return Err(std::io::Error::other("the answer is longer than 64 MiB"));
        }
    }
}

fn body(bytes: &[u8], base: &str) -> Result<String, AskError> {
    let no_http = || AskError::NotHttp(base.to_owned());
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut headers);
    let Ok(httparse::Status::Complete(length)) = response.parse(bytes) else {
        return Err(no_http());
    };
    let body = String::from_utf8_lossy(&bytes[length..]).into_owned();
    match response.code.ok_or_else(no_http)? {
        200..300 => Ok(body),
        code => {
            let line = body.lines().next().unwrap_or_default().chars().take(200).collect();
            Err(AskError::Status(base.to_owned(), code, line))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(bytes: &[u8]) -> String {
        body(bytes, "http://x").unwrap_err().to_string()
    }

    #[test]
    fn an_answer_is_a_body_or_an_error_that_says_what_came() {
        assert_eq!(body(b"HTTP/1.1 200 OK\r\nX: y\r\n\r\nyes", "http://x").unwrap(), "yes");
        assert_eq!(error(b"HTTP/1.1 503 no\r\n\r\nlater\nnot this"), "http://x answers 503: later");
        assert_eq!(error(b"SSH-2.0-x\r\n"), "http://x does not speak HTTP");
        assert_eq!(error(b""), "http://x does not speak HTTP");
    }

    #[test]
    fn addresses_of_other_forms_are_refused_before_anything_is_sent() {
        let refused = |base: &str| {
            let asked = ask(base, "/", None, Duration::from_secs(1));
            matches!(asked, Err(AskError::Address(_)))
        };
        assert!(refused("https://x") && refused("x:80") && refused("http://"));
        assert!(refused("http://x y") && refused("http://x\r\nX: y"));
        assert!(refused("http://x:y") && refused("http://x:65536") && refused("http://::1"));
    }

    #[test]
    fn a_host_has_a_port_and_an_address_of_ipv6_has_brackets() {
        assert_eq!(host_and_port("db:9871"), Some(("db", 9871)));
        assert_eq!(host_and_port("db"), Some(("db", 80)));
        assert_eq!(host_and_port("[::1]:9"), Some(("[::1]", 9)));
        assert_eq!(host_and_port("[::1]"), Some(("[::1]", 80)));
        assert_eq!((host_and_port(""), host_and_port(":9")), (None, None));
    }

    #[test]
    fn a_name_without_an_address_says_what_to_do() {
        let error = ask("http://a..b", "/", None, Duration::from_secs(1)).unwrap_err();
        assert!(error.to_string().contains("Name another host"), "{error}");
    }
}
