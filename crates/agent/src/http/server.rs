//! Connections: each has a thread of its own, at most so many at once, and a deadline.

use super::answer::{Access, Answer, Request, answer};
use super::certificate::Tls;
use super::timed::Timed;
use crate::published::Published;
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Connections at once; one more ends the oldest of them, so that slow ones keep nobody out for long.
const MOST_CONNECTIONS: usize = 16;

/// A request must be there by then, and its answer read by as long after.
const PATIENCE: Duration = Duration::from_secs(5);

/// The longest request, bytes: scrapers send a few hundred.
const LONGEST_REQUEST: usize = 8192;

/// The most headers of a request.
const MOST_HEADERS: usize = 64;

/// A stack for a connection: it parses a few KiB, and signs what TLS wants to be signed.
const STACK_BYTES: usize = 256 << 10;

/// The first byte of what a client of TLS sends.
const HANDSHAKE: u8 = 0x16;

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// Another program listens there, or the address is not this host's.
    #[error("cannot listen on {address}: {source}; choose another with --listen, port 0 for any")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The kernel's error.
        source: std::io::Error,
    },
    /// The kernel gives no thread.
    #[error("cannot start a thread for connections: {0}")]
    Thread(std::io::Error),
}

/// A socket that listens already, so that a port that is taken is known before anything is traced.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<Tls>,
}

/// The connections that are open, the oldest first.
#[derive(Default)]
struct Open(Mutex<VecDeque<(u64, TcpStream)>>);

impl Server {
    /// Listens there.
    pub fn bind(address: SocketAddr) -> Result<Self, HttpError> {
        let failed = |source| HttpError::Listen { address, source };
        let listener = TcpListener::bind(address).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address, tls: None })
    }

    /// The same, which speaks TLS. From this host itself it is asked without, too: nobody else reads along there.
    #[must_use]
    pub fn with_tls(self, tls: Tls) -> Self {
        Self { tls: Some(tls), ..self }
    }

    /// How it speaks TLS, where it does.
    pub(crate) fn tls(&self) -> Option<&Tls> {
        self.tls.as_ref()
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers from now on, in threads of its own, until the process ends.
    pub(crate) fn start(
        self,
        published: Arc<Published>,
        access: Access,
        patience: Duration,
    ) -> Result<(), HttpError> {
        let accept = move || self.accept(&published, &access, patience);
        thread("listen").spawn(accept).map(drop).map_err(HttpError::Thread)
    }

    fn accept(self, published: &Arc<Published>, access: &Access, patience: Duration) {
        let (open, access) = (Arc::new(Open::default()), Arc::new(access.clone()));
        let tls = Arc::new(self.tls);
        for number in 0.. {
            let Ok((stream, peer)) = self.listener.accept() else {
                // Out of descriptors, most likely: those that are open end soon.
                std::thread::sleep(Duration::from_millis(100));
                continue;
            };
            let Ok(handle) = stream.try_clone() else { continue };
            open.add(number, handle);
            let (ours, published, access, tls) =
                (Arc::clone(&open), Arc::clone(published), Arc::clone(&access), Arc::clone(&tls));
            let serve = move || {
                let to = |request: Request| answer(&request, &published, &access, patience);
                serve(&stream, peer.ip(), (*tls).as_ref(), &to);
                ours.remove(number);
            };
            if thread("connection").spawn(serve).is_err() {
                open.remove(number);
            }
        }
    }
}

fn thread(name: &str) -> std::thread::Builder {
    std::thread::Builder::new().name(format!("untax-{name}")).stack_size(STACK_BYTES)
}

impl Open {
    /// Adds one, and ends the oldest where there are too many. Its thread removes it.
    fn add(&self, number: u64, stream: TcpStream) {
        let mut open = self.lock();
        if open.len() >= MOST_CONNECTIONS
            && let Some((_, oldest)) = open.pop_front()
        {
            let _ = oldest.shutdown(Shutdown::Both);
        }
        open.push_back((number, stream));
    }

    fn remove(&self, number: u64) {
        self.lock().retain(|(known, _)| *known != number);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<(u64, TcpStream)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads one request and answers it, by TLS where it is to be. A client that goes away gets no answer, and nobody is
/// told.
pub(super) fn serve(
    stream: &TcpStream,
    peer: IpAddr,
    tls: Option<&Tls>,
    to: &dyn Fn(Request) -> Answer,
) {
    let is_local = peer.to_canonical().is_loopback();
    let timed = Timed::new(stream, Instant::now() + PATIENCE);
    match tls.map(|tls| (tls, timed.first_byte())) {
        None => exchange(&timed, &timed, is_local, to),
        Some((tls, Ok(HANDSHAKE))) => {
            let Ok(mut connection) = tls.connection() else { return };
            let mut socket = &timed;
            exchange(rustls::Stream::new(&mut connection, &mut socket), &timed, is_local, to);
            // Says that the answer is whole.
            connection.send_close_notify();
            let _ = connection.write_tls(&mut &timed);
        }
        Some((_, Ok(_))) if is_local => exchange(&timed, &timed, is_local, to),
        Some((_, Ok(_))) => {
            let refusal = |_: Request| Answer::text(400, "this agent speaks TLS; ask https://");
            exchange(&timed, &timed, is_local, &refusal);
        }
        Some((_, Err(_))) => return,
    }
    // Unread bytes would make the kernel reset the connection and cut the answer off.
    let mut rest = stream;
    let _ = rest.shutdown(Shutdown::Write);
    let _ = rest.set_read_timeout(Some(Duration::from_millis(200)));
    let _ = rest.read(&mut [0; 1024]);
}

/// Reads one request and answers it.
fn exchange(
    mut stream: impl Read + Write,
    timed: &Timed,
    is_local: bool,
    to: &dyn Fn(Request) -> Answer,
) {
    let (answer, with_body) = match read(&mut stream) {
        Ok(bytes) => {
            let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
            let mut parsed = httparse::Request::new(&mut headers);
            let whole = parsed.parse(&bytes).is_ok_and(|status| status.is_complete());
            match (whole, parsed.method, parsed.path) {
                (true, Some(method), Some(path)) => {
                    let is_it = |header: &&httparse::Header| {
                        header.name.eq_ignore_ascii_case("authorization")
                    };
                    let authorization =
                        parsed.headers.iter().find(is_it).map(|header| header.value);
                    (to(Request { method, path, authorization, is_local }), method != "HEAD")
                }
                _ => (Answer::text(400, "this is no HTTP request"), true),
            }
        }
        Err(Some(refusal)) => (refusal, true),
        Err(None) => return,
    };
    timed.extend(PATIENCE);
    let _ = write(&mut stream, &answer, with_body);
}

/// Reads until the end of a request's head; gives what to answer where that does not come, or nothing
/// where the client went away.
fn read(stream: &mut impl Read) -> Result<Vec<u8>, Option<Answer>> {
    let mut bytes = Vec::new();
    let mut piece = [0; 1024];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => return if bytes.is_empty() { Err(None) } else { Ok(bytes) },
            Ok(count) => bytes.extend(&piece[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::TimedOut => {
                return Err(Some(Answer::text(408, "the request took too long")));
            }
            Err(_) => return Err(None),
        }
        // A malformed request is refused at once, not after the time-out.
        if bytes.len() > LONGEST_REQUEST {
            return Err(Some(Answer::text(431, "the request is too long")));
        }
        if bytes.windows(4).any(|end| end == b"\r\n\r\n") || is_garbage(&bytes) {
            return Ok(bytes);
        }
    }
}

fn is_garbage(bytes: &[u8]) -> bool {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    httparse::Request::new(&mut headers).parse(bytes).is_err()
}

/// Writes an answer, by the deadline or not at all.
fn write(stream: &mut impl Write, answer: &Answer, with_body: bool) -> std::io::Result<()> {
    let head = format!(
        "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        answer.status,
        answer.reason(),
        answer.content_type,
        answer.body.len()
    );
    stream.write_all(head.as_bytes())?;
    if with_body {
        stream.write_all(answer.body.as_bytes())?;
    }
    stream.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> SocketAddr {
        let server = Server::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = server.address();
        let published = Arc::new(Published::new("metrics\n".to_owned()));
        server.start(published, Access::default(), Duration::from_secs(60)).unwrap();
        address
    }

    fn ask(address: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request).unwrap();
        let mut text = String::new();
        let _ = stream.read_to_string(&mut text);
        text
    }

    #[test]
    fn requests_are_answered_and_garbage_is_refused() {
        let address = server();
        let told = ask(address, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(told.starts_with("HTTP/1.1 200 OK\r\n") && told.ends_with("\r\n\r\nmetrics\n"));
        let head = ask(address, b"HEAD /metrics HTTP/1.1\r\n\r\n");
        assert!(head.contains("Content-Length: 8") && head.ends_with("\r\n\r\n"), "{head}");
        assert!(ask(address, b"\x16\x03\x01\x02\x00\x01").starts_with("HTTP/1.1 400 "));
        let long = [b"GET / HTTP/1.1\r\nX: ".as_slice(), &[b'a'; 10_000]].concat();
        assert!(ask(address, &long).starts_with("HTTP/1.1 431 "));
    }

    #[test]
    fn slow_clients_do_not_keep_others_out() {
        let address = server();
        let slow: Vec<TcpStream> = (0..3 * MOST_CONNECTIONS)
            .map(|_| {
                let mut stream = TcpStream::connect(address).unwrap();
                stream.write_all(b"GET /met").unwrap();
                stream
            })
            .collect();
        let told = ask(address, b"GET /metrics HTTP/1.1\r\n\r\n");
        assert!(told.starts_with("HTTP/1.1 200 OK\r\n"), "{told}");
        drop(slow);
    }

    #[test]
    fn a_port_that_is_taken_is_named_with_what_to_do() {
        let address = server();
        let error = Server::bind(address).unwrap_err().to_string();
        assert!(error.contains(&address.to_string()) && error.contains("--listen"), "{error}");
    }
}
