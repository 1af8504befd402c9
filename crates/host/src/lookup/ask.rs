//! Asks the servers: by UDP, and by TCP where an answer does not fit into a packet.

use super::message::{Answer, Kind, Question};
use super::name::Name;
use super::settings::Settings;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

/// The longest packet that is read, bytes: nobody is told that more than 512 would be taken.
const LONGEST_PACKET: usize = 4096;

/// A try is no shorter than this: the next router answers sooner.
const SHORTEST_TRY: Duration = Duration::from_millis(50);

/// What the servers say of one name.
#[derive(Debug)]
pub(super) enum Outcome {
    /// At least one address, those of IPv4 first.
    Addresses(Vec<IpAddr>),
    /// There is no such name, or it has no address, says this server.
    Unknown(SocketAddr),
    /// No server gave an answer. Of the last one:
    Failure {
        server: SocketAddr,
        why: String,
        /// Whether it said nothing at all.
        is_silent: bool,
    },
}

/// Asks for the addresses of a name. The time that is left is shared among all tries, so that the second
/// server has its turn when the first is down.
pub(super) fn ask(name: &Name, settings: &Settings, until: Instant) -> Outcome {
    let attempts = (0..settings.attempts).flat_map(|_| &settings.servers);
    let tries = settings.attempts * settings.servers.len() as u32;
    let mut failure = (settings.servers[0], "was not asked: no time is left".to_owned(), true);
    for (number, server) in (0..).zip(attempts) {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        let share = (left / (tries - number)).max(SHORTEST_TRY);
        let deadline = Instant::now() + share.min(settings.timeout).min(left);
        match addresses(name, *server, settings.by_tcp, deadline) {
            Ok(Ok(addresses)) if addresses.is_empty() => return Outcome::Unknown(*server),
            Ok(Ok(addresses)) => return Outcome::Addresses(addresses),
            Ok(Err(code)) => failure = (*server, words(code), false),
            Err(error) => failure = (*server, reason(&error), true),
        }
    }
    let (server, why, is_silent) = failure;
    Outcome::Failure { server, why, is_silent }
}

/// As RFC 1035, 4.1.1 names the codes.
fn words(code: u8) -> String {
    match code {
        2 => "failed to look it up".to_owned(),
        5 => "refuses to answer this host".to_owned(),
        code => format!("answers with error {code}"),
    }
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => "does not answer".to_owned(),
        _ => format!("cannot be asked ({error})"),
    }
}

/// The addresses that one server knows, or the code with which it refuses.
fn addresses(
    name: &Name,
    server: SocketAddr,
    by_tcp: bool,
    until: Instant,
) -> io::Result<Result<Vec<IpAddr>, u8>> {
    let questions =
        [Kind::A, Kind::Aaaa].map(|kind| Question { id: id(), name: name.clone(), kind });
    let mut answers = if by_tcp { [None, None] } else { by_udp(server, &questions, until)? };
    for (question, answer) in questions.iter().zip(&mut answers) {
        if matches!(answer, Some(Answer::Truncated)) || by_tcp {
            *answer = Some(over_tcp(server, question, until)?);
        }
    }
    let mut all = Vec::new();
    let mut refusal = None;
    for answer in answers.into_iter().flatten() {
        match answer {
            Answer::Addresses(addresses) => all.extend(addresses),
            Answer::Refusal(code) => refusal = Some(code),
            Answer::NoSuchName | Answer::Truncated => {}
        }
    }
    Ok(refusal.filter(|_| all.is_empty()).map_or(Ok(all), Err))
}

/// A number that nobody else can guess: the standard library seeds its hashers from the kernel.
fn id() -> u16 {
    RandomState::new().hash_one(0) as u16
}

/// Asks both questions at once. One that stays without an answer is nothing, if the other one has an address.
fn by_udp(
    server: SocketAddr,
    questions: &[Question; 2],
    until: Instant,
) -> io::Result<[Option<Answer>; 2]> {
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    // The kernel then drops what others send.
    socket.connect(server)?;
    for question in questions {
        socket.send(&question.message())?;
    }
    let mut answers = [None, None];
    let mut packet = [0; LONGEST_PACKET];
    while answers.iter().any(Option::is_none) {
        let received = left(until).and_then(|left| {
            socket.set_read_timeout(Some(left))?;
            socket.recv(&mut packet)
        });
        let length = match received {
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) if answers.iter().any(|answer| has_address(answer.as_ref())) => break,
            Err(error) => return Err(error),
        };
        for (question, answer) in questions.iter().zip(&mut answers) {
            if answer.is_none() {
                *answer = question.answer(&packet[..length]);
            }
        }
    }
    Ok(answers)
}

fn has_address(answer: Option<&Answer>) -> bool {
    matches!(answer, Some(Answer::Addresses(addresses)) if !addresses.is_empty())
}

fn over_tcp(server: SocketAddr, question: &Question, until: Instant) -> io::Result<Answer> {
    let mut stream = TcpStream::connect_timeout(&server, left(until)?)?;
    stream.set_write_timeout(Some(left(until)?))?;
    let message = question.message();
    // A name has at most 253 bytes.
    let length = (message.len() as u16).to_be_bytes();
    stream.write_all(&[&length[..], &message].concat())?;
    let mut length = [0; 2];
    read(&mut stream, &mut length, until)?;
    let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
    read(&mut stream, &mut message, until)?;
    let answer = question.answer(&message).filter(|answer| *answer != Answer::Truncated);
    answer.ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "its answer is malformed"))
}

fn read(stream: &mut TcpStream, mut bytes: &mut [u8], until: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.set_read_timeout(Some(left(until)?))?;
        match stream.read(bytes) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => bytes = &mut bytes[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The time that is left; an error where there is none.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}
