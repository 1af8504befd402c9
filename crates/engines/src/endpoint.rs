//! The open way to a server's socket, and what makes the next connection cheaper.

use serde::{Deserialize, Serialize};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

/// The way to one server, open.
pub(crate) struct Endpoint {
    /// The OS user's name, which servers take for a login name.
    pub user: String,
    /// Where to connect.
    pub entry: Entry,
    /// Whether the server is to be asked for what takes long.
    pub timing: bool,
    /// What is known of the way from the last time, or from now on.
    pub hints: Hints,
}

/// What an answer tells for the next question to the same process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hints {
    /// Where in the server most was asked: a name that somebody chose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busiest: Option<String>,
    /// The TCP socket to which its clients connect, where that was the way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listening: Option<Listening>,
}

/// An open connection.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// Where to connect.
pub(crate) enum Entry {
    /// A Unix socket, opened without connecting.
    Unix(OwnedFd),
    /// An address in the network namespace that was entered.
    Tcp(SocketAddr),
}

impl Entry {
    /// Connects.
    pub async fn connect(&self) -> io::Result<Box<dyn Stream>> {
        Ok(match self {
            Self::Unix(_) => {
                Box::new(UnixStream::connect(self.unix_path().unwrap_or_default()).await?)
            }
            Self::Tcp(address) => Box::new(TcpStream::connect(address).await?),
        })
    }

    /// The path of a Unix socket for `connect`: the descriptor itself, whatever the socket's own
    /// path and whoever may look into its directory.
    pub fn unix_path(&self) -> Option<String> {
        match self {
            Self::Unix(socket) => Some(format!("/proc/self/fd/{}", socket.as_raw_fd())),
            Self::Tcp(_) => None,
        }
    }
}

/// A TCP socket that a process listens on, for as long as it is among its descriptors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Listening {
    /// Its number, which no other socket has.
    pub inode: String,
    /// Where clients connect.
    pub address: SocketAddr,
}
