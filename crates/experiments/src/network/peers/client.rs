//! The client: makes transactions for a while and prints how long they took.

use super::shared::{CHUNK, Kind, Place, cpu_s};
use crate::child::HiddenCommand;
use serde::{Deserialize, Serialize};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};
use untax_core::stats::quantiles;
use untax_host::{Host, sock_diag};

/// The client as a part of this program.
pub(crate) const CLIENT: HiddenCommand =
    HiddenCommand { name: "__network-client", thread: c"untax-netclient", run };

/// A path on which nothing came back for so long is broken.
const DEADLINE: Duration = Duration::from_secs(5);

/// A datagram without an answer for so long is lost, and sent again.
const LOST: Duration = Duration::from_millis(200);

/// Datagrams in a row that may be lost.
const MOST_LOST: u32 = 10;

/// The share of a trial that is measured before it, and thrown away.
const WARM_UP: f64 = 0.2;

/// What the client is to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ClientSpec {
    pub kind: Kind,
    pub place: Place,
    pub address: Ipv4Addr,
    pub port: u16,
    /// Connections, each with a thread.
    pub connections: u32,
    /// How long to measure, seconds.
    pub seconds: f64,
}

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Exchanged {
    /// Transactions that were measured; of a stream bytes.
    pub transactions: u64,
    /// How long that took, seconds.
    pub elapsed_s: f64,
    /// The quantiles 0.5, 0.9, 0.99 and 0.999 of the time of one, µs.
    pub latency_us: Option<[f64; 4]>,
    /// All transactions, with those before the measured ones.
    pub all_transactions: u64,
    /// CPU time of all of them, seconds.
    pub cpu_s: f64,
    /// Datagrams without an answer.
    pub lost: u64,
    /// Of a stream: what left the client's link.
    pub sent: Option<Sent>,
}

/// What a stream became on its way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sent {
    /// Packets that the link counted: with segmentation offload each may be many segments.
    pub packets: u64,
    /// Segments that TCP counted, and the data in them.
    pub segments: Option<(u64, u64)>,
}

fn run(spec: &str) -> io::Result<()> {
    let spec: ClientSpec = serde_json::from_str(spec)?;
    spec.place.enter()?;
    let before = cpu_s();
    let mut exchanged = match spec.kind {
        Kind::Stream => stream(&spec)?,
        _ => transactions(&spec)?,
    };
    exchanged.cpu_s = cpu_s() - before;
    writeln!(io::stdout(), "{}", serde_json::to_string(&exchanged)?)
}

/// What one connection did.
#[derive(Default)]
struct Times {
    /// The time of each measured transaction, ns.
    each_ns: Vec<u32>,
    all: u64,
    lost: u64,
}

fn transactions(spec: &ClientSpec) -> io::Result<Exchanged> {
    let start = Barrier::new(spec.connections as usize);
    let measured = Duration::from_secs_f64(spec.seconds);
    let one = || -> io::Result<Times> {
        let peer = Peer::connect(spec);
        // All wait for each other even if one could not connect: it would be waited for without end.
        start.wait();
        repeat(peer?, measured)
    };
    let all: Vec<io::Result<Times>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..spec.connections).map(|_| scope.spawn(one)).collect();
        let failed = || Err(io::Error::other("a thread of the client failed"));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| failed())).collect()
    });
    let all = all.into_iter().collect::<io::Result<Vec<Times>>>()?;
    let each_us: Vec<f64> =
        all.iter().flat_map(|times| &times.each_ns).map(|ns| f64::from(*ns) / 1e3).collect();
    Ok(Exchanged {
        transactions: each_us.len() as u64,
        elapsed_s: spec.seconds,
        latency_us: quantiles(&each_us, [0.5, 0.9, 0.99, 0.999]),
        all_transactions: all.iter().map(|times| times.all).sum(),
        lost: all.iter().map(|times| times.lost).sum(),
        ..Exchanged::default()
    })
}

fn repeat(mut peer: Peer, measured: Duration) -> io::Result<Times> {
    let (mut times, begun) = (Times::default(), Instant::now());
    times.each_ns.reserve(1 << 16);
    let (from, until) =
        (begun + measured.mul_f64(WARM_UP), begun + measured.mul_f64(1.0 + WARM_UP));
    let mut last = begun;
    loop {
        times.lost += peer.transact()?;
        times.all += 1;
        let now = Instant::now();
        if now > until {
            return Ok(times);
        }
        if last >= from {
            let took = now.duration_since(last).as_nanos();
            times.each_ns.push(u32::try_from(took).unwrap_or(u32::MAX));
        }
        last = now;
    }
}

/// The server, for one connection.
enum Peer {
    Stays(TcpStream),
    Anew(SocketAddr),
    Datagrams(UdpSocket),
}

impl Peer {
    fn connect(spec: &ClientSpec) -> io::Result<Self> {
        let at = SocketAddr::from((spec.address, spec.port));
        match spec.kind {
            Kind::TcpConnect => Ok(Self::Anew(at)),
            Kind::Udp => {
                let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
                socket.connect(at)?;
                socket.set_read_timeout(Some(LOST))?;
                Ok(Self::Datagrams(socket))
            }
            Kind::Tcp | Kind::Stream => open(at).map(Self::Stays),
        }
    }

    /// One transaction. Gives how often something was lost meanwhile.
    fn transact(&mut self) -> io::Result<u64> {
        match self {
            Self::Stays(stream) => exchange(stream).map(|()| 0),
            Self::Anew(at) => exchange(&mut open(*at)?).map(|()| 0),
            Self::Datagrams(socket) => exchange_datagrams(socket),
        }
    }
}

fn open(at: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&at, DEADLINE)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(DEADLINE))?;
    stream.set_write_timeout(Some(DEADLINE))?;
    Ok(stream)
}

fn exchange(stream: &mut TcpStream) -> io::Result<()> {
    stream.write_all(&[1])?;
    stream.read_exact(&mut [0])
}

fn exchange_datagrams(socket: &UdpSocket) -> io::Result<u64> {
    for lost in 0..MOST_LOST {
        socket.send(&[1])?;
        match socket.recv(&mut [0]) {
            Ok(_) => return Ok(lost.into()),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(ErrorKind::TimedOut, "no datagram came back"))
}

fn stream(spec: &ClientSpec) -> io::Result<Exchanged> {
    let mut stream = open(SocketAddr::from((spec.address, spec.port)))?;
    let chunk = vec![1; CHUNK];
    let (before, begun) = (packets(), Instant::now());
    let mut bytes = 0_u64;
    while begun.elapsed().as_secs_f64() < spec.seconds {
        stream.write_all(&chunk)?;
        bytes += chunk.len() as u64;
    }
    let segments = segments(&stream);
    stream.shutdown(std::net::Shutdown::Write)?;
    // What is still on its way belongs to the measured time.
    stream.read_exact(&mut [0])?;
    let elapsed_s = begun.elapsed().as_secs_f64();
    let packets = packets().saturating_sub(before);
    let sent = Some(Sent { packets, segments });
    let (transactions, all_transactions) = (bytes, bytes);
    Ok(Exchanged { transactions, elapsed_s, all_transactions, sent, ..Exchanged::default() })
}

/// Packets that the links of this namespace sent so far. Each line holds eight counters of what came in,
/// then bytes and packets of what went out.
fn packets() -> u64 {
    let text = Host::live().text("/proc/thread-self/net/dev").into_value().unwrap_or_default();
    let sent = |line: &str| line.split_once(':')?.1.split_whitespace().nth(9)?.parse::<u64>().ok();
    text.lines().filter_map(sent).sum()
}

/// Segments with data that TCP sent over a connection, and the data.
fn segments(stream: &TcpStream) -> Option<(u64, u64)> {
    let port = stream.local_addr().ok()?.port();
    let connections = sock_diag::connections(std::process::id(), &[port]).into_value()?;
    let sent = connections.first()?.sent?;
    Some((sent.count.into(), sent.bytes))
}
