//! A scratch Redis server.

use crate::load::{Load, RedisBenchmark, redis_rps};
use crate::scratch::free_port;
use crate::server::{Kind, Place, Server, lines, words};
use crate::{LabError, Settings, program};

const KIND: Kind = Kind { user: "redis", abrupt: "TERM", orderly: "TERM" };
const PACKAGE: &str = "redis-server";

/// For data that nobody will miss.
const SCRATCH: Settings =
    &[("bind", "127.0.0.1"), ("daemonize", "no"), ("save", "\"\""), ("appendonly", "no")];

/// A running Redis; stopped and removed when dropped.
pub struct Redis {
    server: Server,
    port: u16,
    password: String,
}

impl Redis {
    /// Starts a server. The clients made here know a `requirepass` among the settings.
    pub fn start(place: Place, settings: Settings) -> Result<Self, LabError> {
        let server = Server::new(place, &KIND)?;
        let mut redis = Self { server, port: free_port()?, password: String::new() };
        redis.launch(settings)?;
        Ok(redis)
    }

    /// Stops the server and starts it, empty, with `settings` instead of the earlier ones.
    pub fn restart(&mut self, settings: Settings) -> Result<(), LabError> {
        self.stop();
        self.launch(settings)
    }

    /// Stops the server; its files stay until this value is dropped.
    pub fn stop(&mut self) {
        self.server.stop();
    }

    fn launch(&mut self, settings: Settings) -> Result<(), LabError> {
        let password = settings.iter().rev().find(|(name, _)| *name == "requirepass");
        self.password = password.map(|(_, value)| (*value).to_owned()).unwrap_or_default();
        let (socket, directory) = (self.socket(), self.data_directory());
        let port = self.port.to_string();
        let own = [("port", port.as_str()), ("unixsocket", &socket), ("dir", &directory)];
        let line = |name: &str, value: &str| format!("{name} {value}");
        let text = lines(&[SCRATCH, &own, settings].concat(), line);
        self.server.scratch.write("redis.conf", &text, &self.server.account)?;
        let configuration = self.server.scratch.word("redis.conf");
        let ready = [self.client()?, words(["ping"])].concat();
        self.server.start(&words([&find("redis-server")?, &configuration]), &ready)
    }

    /// The server's process; `None` when it was stopped.
    pub fn pid(&self) -> Option<u32> {
        self.server.pid()
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The socket.
    pub fn socket(&self) -> String {
        self.server.scratch.word("socket")
    }

    /// The working directory, where a dump would go.
    pub fn data_directory(&self) -> String {
        self.server.scratch.word("")
    }

    /// The id of its container, when it runs in one.
    pub fn container_id(&self) -> Option<&str> {
        self.server.container_id()
    }

    /// Runs one command, given word by word, and gives the answer.
    pub fn command<const N: usize>(&self, command: [&str; N]) -> Result<String, LabError> {
        self.server.scratch.run(&[self.client()?, words(command)].concat())
    }

    /// Starts redis-benchmark.
    pub fn benchmark(&self, load: &RedisBenchmark) -> Result<Load, LabError> {
        let socket = self.socket();
        let mut command = words([&find("redis-benchmark")?, "-s", &socket, "--csv"]);
        if !self.password.is_empty() {
            command.extend(words(["-a", &self.password]));
        }
        let options = [
            ("-t", if load.writes { "set" } else { "get" }.to_owned()),
            ("-c", load.clients.to_string()),
            ("-n", load.requests.to_string()),
            ("-r", load.keys.to_string()),
            ("-d", load.value_bytes.to_string()),
            ("-P", "16".to_owned()),
        ];
        command.extend(options.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value]));
        Load::start(&self.server.scratch, &command, 0, redis_rps)
    }

    /// The client that answers with a status: `-e` makes an error one.
    fn client(&self) -> Result<Vec<String>, LabError> {
        let mut client = words([&find("redis-cli")?, "-e", "-s", &self.socket()]);
        if !self.password.is_empty() {
            client.extend(words(["--no-auth-warning", "-a", &self.password]));
        }
        Ok(client)
    }
}

fn find(name: &str) -> Result<String, LabError> {
    program::find(name, PACKAGE).map(|path| path.to_string_lossy().into_owned())
}
