//! A connection that has only so long, whatever the other end does: each read and each write has the time that is
//! left. One byte a second does not make it longer.

use std::cell::Cell;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// A connection with a deadline.
#[derive(Debug)]
pub(super) struct Timed<'a> {
    stream: &'a TcpStream,
    until: Cell<Instant>,
}

impl<'a> Timed<'a> {
    /// One that has until then.
    pub fn new(stream: &'a TcpStream, until: Instant) -> Self {
        Self { stream, until: Cell::new(until) }
    }

    /// Sets another deadline, so long from now.
    pub fn extend(&self, patience: Duration) {
        self.until.set(Instant::now() + patience);
    }

    /// The first byte that the other end sends, which stays to be read.
    pub fn first_byte(&self) -> Result<u8> {
        let mut byte = [0];
        loop {
            self.stream.set_read_timeout(Some(self.left()?))?;
            match self.stream.peek(&mut byte) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(_) => return Ok(byte[0]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(late(error)),
            }
        }
    }

    /// The time that is left; an error where there is none.
    fn left(&self) -> Result<Duration> {
        let left = self.until.get().saturating_duration_since(Instant::now());
        if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

impl Read for &Timed<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> Result<usize> {
        self.stream.set_read_timeout(Some(self.left()?))?;
        let mut stream = self.stream;
        stream.read(bytes).map_err(late)
    }
}

impl Write for &Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.stream.set_write_timeout(Some(self.left()?))?;
        let mut stream = self.stream;
        stream.write(bytes).map_err(late)
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

/// The kernel says of a read that took too long that it would have to wait on.
fn late(error: Error) -> Error {
    if error.kind() == ErrorKind::WouldBlock { ErrorKind::TimedOut.into() } else { error }
}
