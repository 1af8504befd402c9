//! The server: answers until its standard input closes. For each line that it reads there it says what it
//! has done so far.

use super::shared::{CHUNK, Kind, Place, cpu_s};
use crate::child::HiddenCommand;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

/// The server as a part of this program.
pub(crate) const SERVER: HiddenCommand =
    HiddenCommand { name: "__network-server", thread: c"untax-netserver", run };

/// What the server is to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServerSpec {
    pub kind: Kind,
    pub place: Place,
    pub port: u16,
    /// Whether it ends with its standard input; else it runs until it is killed.
    pub asked: bool,
}

/// What it has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Served {
    /// Transactions that it answered; of a stream bytes.
    pub transactions: u64,
    /// Its CPU time, seconds.
    pub cpu_s: f64,
}

static TRANSACTIONS: AtomicU64 = AtomicU64::new(0);

fn run(spec: &str) -> io::Result<()> {
    let spec: ServerSpec = serde_json::from_str(spec)?;
    spec.place.enter()?;
    let at = (Ipv4Addr::UNSPECIFIED, spec.port);
    match spec.kind {
        Kind::Udp => {
            let socket = UdpSocket::bind(at)?;
            thread::spawn(move || answer_datagrams(&socket));
        }
        kind => {
            let listener = TcpListener::bind(at)?;
            thread::spawn(move || accept(&listener, kind));
        }
    }
    let mut output = io::stdout();
    let mut say = || {
        let served = Served { transactions: TRANSACTIONS.load(Relaxed), cpu_s: cpu_s() };
        writeln!(output, "{}", serde_json::to_string(&served)?)?;
        output.flush()
    };
    // The first line says that it listens.
    say()?;
    if !spec.asked {
        // Parking may end for no reason.
        loop {
            thread::park();
        }
    }
    for line in io::stdin().lines() {
        line?;
        say()?;
    }
    Ok(())
}

fn answer_datagrams(socket: &UdpSocket) {
    let mut byte = [0];
    loop {
        // An error of an earlier client's closed port is none of this one's.
        if let Ok((length, client)) = socket.recv_from(&mut byte)
            && socket.send_to(&byte[..length], client).is_ok()
        {
            TRANSACTIONS.fetch_add(1, Relaxed);
        }
    }
}

fn accept(listener: &TcpListener, kind: Kind) {
    for stream in listener.incoming().flatten() {
        match kind {
            // Without a thread of its own, as a server would be dear that starts one each time.
            Kind::TcpConnect => drop(answer(stream)),
            Kind::Stream => drop(thread::spawn(move || take(stream))),
            Kind::Tcp | Kind::Udp => drop(thread::spawn(move || answer(stream))),
        }
    }
}

/// One byte for each byte, until the client closes.
fn answer(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut byte = [0];
    while stream.read(&mut byte)? == 1 {
        stream.write_all(&byte)?;
        TRANSACTIONS.fetch_add(1, Relaxed);
    }
    Ok(())
}

/// Takes all that comes, and says so with one byte.
fn take(mut stream: TcpStream) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    loop {
        match stream.read(&mut buffer)? {
            0 => break,
            bytes => TRANSACTIONS.fetch_add(bytes as u64, Relaxed),
        };
    }
    stream.write_all(&[1])
}
