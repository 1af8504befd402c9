//! Asks an HTTP server once: of an agent, or of Prometheus.

use super::incoming::{self, Ended};
use super::timed::Timed;
use super::trust;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use std::io::{Error, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use untax_host::lookup::{self, LookupError};

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The address has another form.
    #[error("{0} is no address of the form http://HOST:PORT or https://HOST:PORT")]
    Address(String),
    /// The host's name has no address.
    #[error(transparent)]
    Name(#[from] LookupError),
    /// Nobody answers there.
    #[error("{0} does not answer: {1}")]
    Unreachable(String, Error),
    /// The answer does not end in time.
    #[error("{0} gave no whole answer in {1} s; it is overloaded, or another server listens there")]
    Late(String, u64),
    /// The answer does not end.
    #[error("{0} answers more than {1} MiB; see that the address is right")]
    Long(String, usize),
    /// The answer ended before its end.
    #[error("{0} ended its answer after {1} bytes, and more were to come; ask again")]
    Cut(String, usize),
    /// The answer is none of HTTP.
    #[error("{0} does not speak HTTP")]
    NotHttp(String),
    /// The answer is in pieces, which HTTP/1.0 does not have.
    #[error("{0} answers in pieces, as HTTP/1.1 does, though it was asked for HTTP/1.0")]
    Pieces(String),
    /// No connection that can be trusted.
    #[error("{0}: {1}")]
    Tls(String, String),
    /// The server refuses.
    #[error("{0} answers {1}: {2}")]
    Status(String, u16, String),
}

/// Limits of an answer: its time and its size.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    patience: Duration,
    most_mib: usize,
}

impl Bounds {
    /// So long, and 64 MiB: pages of queries are shorter.
    pub const fn within(patience: Duration) -> Self {
        Self { patience, most_mib: 64 }
    }

    /// The same, with fewer MiB.
    #[must_use]
    pub const fn at_most_mib(self, most_mib: usize) -> Self {
        Self { most_mib, ..self }
    }
}

/// How servers are asked: with which token, and by whose certificates they are known.
#[derive(Clone, Default)]
pub struct Client {
    token: Option<String>,
    server_name: Option<ServerName<'static>>,
    /// Made when a server is first asked by https, unless a file of CAs was named.
    tls: Arc<OnceLock<Result<Arc<ClientConfig>, String>>>,
}

impl Client {
    /// One that shows this token to every server.
    pub fn new(token: Option<String>) -> Self {
        Self { token, ..Self::default() }
    }

    /// The same, which trusts the CAs in this PEM file and no others.
    pub fn trusting(self, ca: &Path) -> Result<Self, String> {
        Ok(Self { tls: Arc::new(OnceLock::from(Ok(trust::config(Some(ca))?))), ..self })
    }

    /// The same, which wants this name in certificates, whatever the address is.
    pub fn expecting(self, name: &str) -> Result<Self, String> {
        let name = ServerName::try_from(name.to_owned());
        let name = name.map_err(|_| "a name in a certificate is a host's".to_owned())?;
        Ok(Self { server_name: Some(name), ..self })
    }

    /// Asks `http://HOST:PORT` or `https://HOST:PORT` for a path, and gives what a server answers with success.
    pub fn ask(&self, base: &str, path: &str, bounds: Bounds) -> Result<String, AskError> {
        let wrong = || AskError::Address(base.to_owned());
        let address = Address::parse(base).ok_or_else(wrong)?;
        if !is_plain(path) {
            return Err(wrong());
        }
        let until = Instant::now() + bounds.patience;
        let asked = Asked { base, address, until, bounds };
        let ips = lookup::addresses(asked.address.host, bounds.patience)?;
        let stream = asked.connect(ips.into_iter())?;
        let timed = Timed::new(&stream, until);
        let request = self.request(&asked.address, path);
        let bytes = if asked.address.is_tls {
            let mut connection = self.connection(&asked)?;
            let mut socket = &timed;
            asked.exchange(rustls::Stream::new(&mut connection, &mut socket), &request)?
        } else {
            asked.exchange(&timed, &request)?
        };
        asked.body(&bytes)
    }

    /// In version 1.0, so that the answer comes in one piece.
    fn request(&self, address: &Address, path: &str) -> String {
        let token = self.token.as_ref().map(|token| format!("Authorization: Bearer {token}\r\n"));
        let Address { authority, prefix, .. } = address;
        format!(
            "GET {prefix}{path} HTTP/1.0\r\nHost: {authority}\r\nAccept: */*\r\n{}\r\n",
            token.unwrap_or_default()
        )
    }

    fn connection(&self, asked: &Asked) -> Result<ClientConnection, AskError> {
        let config = self.tls.get_or_init(|| trust::config(None)).clone();
        let config = config.map_err(|why| asked.tls(why))?;
        let own = || ServerName::try_from(bare(asked.address.host).to_owned());
        let name = self.server_name.clone().map_or_else(own, Ok);
        let name = name.map_err(|_| AskError::Address(asked.base.to_owned()))?;
        ClientConnection::new(config, name).map_err(|error| asked.tls(error.to_string()))
    }
}

/// A server's address.
struct Address<'a> {
    is_tls: bool,
    authority: &'a str,
    host: &'a str,
    port: u16,
    /// The beginning of every path.
    prefix: &'a str,
}

impl<'a> Address<'a> {
    fn parse(base: &'a str) -> Option<Self> {
        let (is_tls, rest) = match base.strip_prefix("https://") {
            Some(rest) => (true, rest),
            None => (false, base.strip_prefix("http://")?),
        };
        let rest = rest.trim_end_matches('/');
        let (authority, prefix) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = host_and_port(authority, if is_tls { 443 } else { 80 })?;
        is_plain(rest).then_some(Self { is_tls, authority, host, port, prefix })
    }
}

/// Whether a text may stand in a request as it is.
fn is_plain(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_graphic())
}

/// The name and the port, the usual one where there is none. An address of IPv6 has brackets.
fn host_and_port(authority: &str, usual: u16) -> Option<(&str, u16)> {
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !authority.ends_with(']') => (host, port.parse().ok()?),
        _ => (authority, usual),
    };
    let is_bare = host.contains(':') && !host.starts_with('[');
    (!host.is_empty() && !is_bare).then_some((host, port))
}

/// A host without the brackets of an address of IPv6.
fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

/// One question.
struct Asked<'a> {
    base: &'a str,
    address: Address<'a>,
    until: Instant,
    bounds: Bounds,
}

impl Asked<'_> {
    fn tls(&self, why: String) -> AskError {
        AskError::Tls(self.base.to_owned(), why)
    }

    /// A connection to the first of these addresses to which there is one.
    fn connect(&self, ips: impl Iterator<Item = std::net::IpAddr>) -> Result<TcpStream, AskError> {
        let mut last: Error = ErrorKind::NotFound.into();
        for ip in ips {
            let left = self.until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                last = ErrorKind::TimedOut.into();
                break;
            }
            match TcpStream::connect_timeout(&SocketAddr::new(ip, self.address.port), left) {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(AskError::Unreachable(self.base.to_owned(), last))
    }

    fn exchange(
        &self,
        mut stream: impl Read + Write,
        request: &str,
    ) -> Result<incoming::Answer, AskError> {
        let base = || self.base.to_owned();
        let of_tls = |error: &Error| {
            let inner = error.get_ref()?.downcast_ref::<rustls::Error>()?;
            Some(self.tls(trust::words(inner, self.address.host)))
        };
        let failed = |error: Error| match of_tls(&error) {
            Some(error) => error,
            None if error.kind() == ErrorKind::TimedOut => {
                AskError::Late(base(), self.bounds.patience.as_secs())
            }
            None => AskError::Unreachable(base(), error),
        };
        let written = stream.write_all(request.as_bytes()).and_then(|()| stream.flush());
        written.map_err(failed)?;
        let most_mib = self.bounds.most_mib;
        incoming::read(stream, most_mib << 20).map_err(|ended| match ended {
            Ended::Failed(error) => failed(error),
            Ended::Long => AskError::Long(base(), most_mib),
            Ended::Cut(bytes) => AskError::Cut(base(), bytes),
            Ended::Pieces => AskError::Pieces(base()),
            Ended::NotHttp(first) if first == Some(incoming::ALERT) => {
                self.tls("it speaks TLS there; ask https://".to_owned())
            }
            Ended::NotHttp(_) => AskError::NotHttp(base()),
        })
    }

    fn body(&self, answer: &incoming::Answer) -> Result<String, AskError> {
        let body = String::from_utf8_lossy(&answer.body);
        if (200..300).contains(&answer.status) {
            return Ok(body.into_owned());
        }
        let line = body.lines().next().unwrap_or_default().chars().take(200).collect();
        Err(AskError::Status(self.base.to_owned(), answer.status, line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    const SECOND: Bounds = Bounds::within(Duration::from_secs(1)).at_most_mib(1);

    /// The body, or the error, that a client gives for a server that answers its first request by `serve`.
    fn asked(serve: impl Fn(TcpStream) -> Option<()> + Send + 'static) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            // A request that is left unread would reset the connection.
            let _ = stream.read(&mut [0; 1024]);
            serve(stream)
        });
        let told = Client::default().ask(&base, "/", SECOND);
        let told = told.unwrap_or_else(|error| error.to_string()).replace(&base, "it");
        server.join().unwrap();
        told
    }

    #[test]
    fn an_answer_is_a_body_or_an_error_that_says_what_came() {
        let told = |answer: &'static [u8]| asked(move |mut stream| stream.write_all(answer).ok());
        assert_eq!(told(b"HTTP/1.1 200 OK\r\nX: y\r\n\r\nyes"), "yes");
        assert_eq!(told(b"HTTP/1.1 503 no\r\n\r\nlater\nnot this"), "it answers 503: later");
        assert_eq!(told(b"SSH-2.0-x\r\n"), "it does not speak HTTP");
        assert_eq!(told(b""), "it does not speak HTTP");
        assert_eq!(told(b"\x15\x03\x03\x00\x02\x02\x46"), "it: it speaks TLS there; ask https://");
    }

    #[test]
    fn an_answer_without_an_end_is_an_error_within_bounds() {
        let endless = asked(|mut stream| {
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").ok()?;
            while stream.write_all(&[b'a'; 8 << 10]).is_ok() {}
            None
        });
        assert_eq!(endless, "it answers more than 1 MiB; see that the address is right");
        let dripping = asked(|mut stream| {
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").ok()?;
            while stream.write_all(b"a").is_ok() {
                std::thread::sleep(Duration::from_millis(100));
            }
            None
        });
        assert!(dripping.starts_with("it gave no whole answer in 1 s;"), "{dripping}");
        let silent = asked(|mut stream| {
            while stream.read(&mut [0; 1024]).ok()? > 0 {}
            None
        });
        assert!(silent.starts_with("it gave no whole answer in 1 s;"), "{silent}");
    }

    #[test]
    fn a_server_that_does_not_speak_tls_is_named_with_what_to_ask() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("https://{}", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 2048]);
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\nno")
        });
        let folder = tempfile::tempdir().unwrap();
        let ca = folder.path().join("ca.pem");
        std::fs::write(
            &ca,
            rcgen::generate_simple_self_signed(["db".to_owned()]).unwrap().cert.pem(),
        )
        .unwrap();
        let client = Client::default().trusting(&ca).unwrap();
        let error = client.ask(&base, "/", SECOND).unwrap_err().to_string();
        assert!(error.contains("does not speak TLS") && error.contains("http://"), "{error}");
        server.join().unwrap().unwrap();
    }

    #[test]
    fn addresses_of_other_forms_are_refused_before_anything_is_sent() {
        let refused = |base: &str| {
            matches!(Client::default().ask(base, "/", SECOND), Err(AskError::Address(_)))
        };
        assert!(refused("ftp://x") && refused("x:80") && refused("http://") && refused("https://"));
        assert!(refused("http://x y") && refused("https://x\r\nX: y"));
        assert!(refused("http://x:y") && refused("http://x:65536") && refused("http://::1"));
    }

    #[test]
    fn a_host_has_a_port_and_an_address_of_ipv6_has_brackets() {
        let of = |base| Address::parse(base).map(|a| (a.is_tls, a.host, a.port, a.prefix));
        assert_eq!(of("http://db:9871"), Some((false, "db", 9871, "")));
        assert_eq!(of("https://db/prom/"), Some((true, "db", 443, "/prom")));
        assert_eq!(of("http://[::1]:9"), Some((false, "[::1]", 9, "")));
        assert_eq!(of("https://[::1]"), Some((true, "[::1]", 443, "")));
        assert_eq!((bare("[::1]"), bare("db")), ("::1", "db"));
        assert_eq!(of("http://:9"), None);
    }

    #[test]
    fn a_name_without_an_address_says_what_to_do() {
        let error = Client::default().ask("http://a..b", "/", SECOND).unwrap_err();
        assert!(error.to_string().contains("Name another host"), "{error}");
    }
}
