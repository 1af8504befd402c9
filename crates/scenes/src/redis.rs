//! A scratch Redis or Valkey server.

use crate::load::{Benchmark, Load, RedisBenchmark, redis_rps};
use crate::program::{DIRECTORIES, words};
use crate::release::{REDIS, Release};
use crate::scratch::free_port_or;
use crate::server::{Kind, Server, lines};
use crate::setup::{Runtime, Settings, Setup};
use crate::work::{self, Database, Stop, Work};
use crate::{SceneError, program};

const KIND: Kind = Kind { user: "redis", signal: "TERM" };
const PACKAGE: &str = "redis-server";

/// Requests at a time, as in redis.io's own example of pipelining.
pub const PIPELINED: u32 = 16;

/// For data that may be lost.
const SCRATCH: Settings =
    &[("bind", "127.0.0.1"), ("daemonize", "no"), ("save", "\"\""), ("appendonly", "no")];

/// For clients elsewhere, which only a network of its own has.
const OPEN: Settings = &[("bind", "0.0.0.0"), ("protected-mode", "no")];

/// A running Redis or Valkey; stopped and removed when dropped.
pub struct Redis {
    server: Server,
    port: u16,
    password: String,
    release: Release,
}

impl Redis {
    /// Starts a server. The clients made here know a `requirepass` among the settings.
    pub fn start(runtime: Runtime, settings: Settings) -> Result<Self, SceneError> {
        Self::start_as(&Setup { runtime, settings, ..Setup::default() })
    }

    /// The same, set up in every way there is.
    pub fn start_as(setup: &Setup) -> Result<Self, SceneError> {
        let release = setup.release.unwrap_or(REDIS);
        let server = Server::new(setup, &KIND, &release)?;
        let mut redis =
            Self { server, port: free_port_or(setup.port)?, password: String::new(), release };
        redis.server.prepare(&words(["mkdir", &redis.data_directory()]))?;
        let open = if setup.port.is_some() { OPEN } else { &[] };
        redis.launch(&[open, setup.settings].concat())?;
        Ok(redis)
    }

    /// Stops the server and starts it, empty, with `settings` instead of the earlier ones.
    pub fn restart(&mut self, settings: Settings) -> Result<(), SceneError> {
        self.stop();
        self.launch(settings)
    }

    /// The same, in the runtime, the group, the network and on the CPUs of this setup.
    pub fn restart_as(&mut self, setup: &Setup) -> Result<(), SceneError> {
        self.stop();
        self.server.place(setup);
        self.launch(setup.settings)
    }

    /// Runs redis-benchmark with these options to its end, as a client, and gives what it printed.
    pub fn measure(&self, options: &[String]) -> Result<String, SceneError> {
        let command = [words([&find("redis-benchmark")?]), self.address_options()].concat();
        let command = [&self.server.client_command(&command), options].concat();
        self.server.scratch.run(&command)
    }

    /// Stops the server; its files stay until this value is dropped.
    pub fn stop(&mut self) {
        self.server.stop();
    }

    fn launch(&mut self, settings: Settings) -> Result<(), SceneError> {
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
        let name = if self.release.is_unpacked { "valkey-server" } else { "redis-server" };
        let program = self.server.program(&DIRECTORIES, name, PACKAGE)?;
        self.server.start(&words([&program, &configuration]), &ready)
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
        self.server.data_directory()
    }

    /// The id of its container, when it runs in one.
    pub fn container_id(&self) -> Option<&str> {
        self.server.container_id()
    }

    /// Runs one command, given word by word, and gives the answer.
    pub fn command<const N: usize>(&self, command: [&str; N]) -> Result<String, SceneError> {
        self.server.scratch.run(&[self.client()?, words(command)].concat())
    }

    /// Starts redis-benchmark.
    pub fn benchmark(&self, load: &RedisBenchmark) -> Result<Load, SceneError> {
        let mut command = words([&find("redis-benchmark")?, "--csv"]);
        command.extend(self.address_options());
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
        let command = self.server.client_command(&command);
        Load::start(&self.server.scratch, &command, 0, Benchmark::silent(redis_rps))
    }

    /// The words of redis-benchmark that are the same for every work.
    fn worker(&self, pipeline: u32, clients: u32) -> Result<Vec<String>, SceneError> {
        let mut command = words([&find("redis-benchmark")?, "-q", "-l", "-r", KEYS]);
        command.extend(self.address_options());
        command.extend(words(["-P", &pipeline.to_string(), "-c", &clients.to_string()]));
        Ok(command)
    }

    /// The words of a client that say where the server is.
    fn address_options(&self) -> Vec<String> {
        if self.server.is_tcp_only() {
            words(["-p", &self.port.to_string()])
        } else {
            self.by_socket()
        }
    }

    fn by_socket(&self) -> Vec<String> {
        words(["-s", &self.socket()])
    }

    /// The client that answers with a status: `-e` makes an error one.
    fn client(&self) -> Result<Vec<String>, SceneError> {
        let mut client = words([&find("redis-cli")?, "-e"]);
        // A server in a network of its own is looked after over its socket, where that can be seen.
        let by_socket = self.server.has_network() && !self.server.hides_sockets();
        if !by_socket {
            client = self.server.client_command(&client);
        }
        client.extend(if by_socket { self.by_socket() } else { self.address_options() });
        if !self.password.is_empty() {
            client.extend(words(["--no-auth-warning", "-a", &self.password]));
        }
        Ok(client)
    }
}

impl Stop for Redis {
    fn stop(&mut self) {
        Self::stop(self);
    }
}

impl Database for Redis {
    fn pid(&self) -> Option<u32> {
        Self::pid(self)
    }

    fn restart(&mut self, runtime: Runtime, settings: Settings) -> Result<(), SceneError> {
        self.server.runtime = runtime;
        Self::restart(self, settings)
    }

    fn fill(&self, mebibytes: u64) -> Result<(), SceneError> {
        let load = RedisBenchmark {
            clients: 16,
            requests: 300_000,
            keys: 100_000,
            value_bytes: value_bytes(mebibytes),
            writes: true,
        };
        self.benchmark(&load)?.finish().map(drop)
    }

    fn work(&self, work: Work, mebibytes: u64, seconds: u32) -> Result<Load, SceneError> {
        let pipeline = match work.kind {
            work::Kind::Pipelined(requests) => requests,
            work::Kind::Batches | work::Kind::Sessions => PIPELINED,
            _ => 1,
        };
        let mut command = self.worker(pipeline, work.clients)?;
        let size = value_bytes(mebibytes).to_string();
        match work.kind {
            work::Kind::Writes | work::Kind::WithThinkTime | work::Kind::HotRow => {
                command.extend(words(["-t", "set", "-d", &size]));
            }
            // As many keys as there can be, so that nearly every request makes a new one.
            work::Kind::Grows => command.extend(words(["-t", "set", "-r", "1000000000"])),
            work::Kind::Fetches => {
                self.command(["eval", LIST, "0", "600"])?;
                command.extend(words(["lrange", "list", "0", "-1"]));
            }
            work::Kind::Sorts => {
                self.command(["eval", LIST, "0", "1800"])?;
                command.extend(words(["sort", "list", "alpha", "limit", "0", "1"]));
            }
            work::Kind::Reconnect | work::Kind::Sessions => {
                command.extend(words(["-t", "get", "-k", "0"]));
            }
            _ => command.extend(words(["-t", "get"])),
        }
        let asking = [self.client()?, words(["info", "stats"])].concat();
        let mut counted = words(["/bin/sh", "-c", COUNT, "redis-benchmark", &seconds.to_string()]);
        counted.push(asking.len().to_string());
        counted.extend(asking);
        counted.extend(command);
        let counted = self.server.client_command(&counted);
        Load::start(&self.server.scratch, &counted, seconds, Benchmark::silent(counted_rps))
    }
}

/// Makes a list of so many values of 200 bytes.
const LIST: &str = "redis.call('del', 'list')
    for i = 1, ARGV[1] do redis.call('rpush', 'list', string.rep('x', 195) .. i * 7919 % 9973) end";

/// From how many keys one is drawn.
const KEYS: &str = "100000";

/// redis-benchmark knows no duration, so the server's own counter says how much was done: `$1`
/// seconds, the number of words that ask the server, those words, and the load. That is to be there
/// until it is killed (then its status is 128 and the signal): or less was asked of the server.
const COUNT: &str = r#"
seconds=$1 words=$2
shift 2
asking= early=
while [ "$words" -gt 0 ]; do asking="$asking $1"; shift; words=$((words - 1)); done
setpriv --pdeathsig=KILL -- "$@" >/dev/null 2>&1 &
load=$!
count() { $asking | tr -d '\r' | sed -n 's/^total_commands_processed://p'; }
sleep 0.3
before=$(count) began=$(date +%s%N)
# In short sleeps: when this shell is killed, the one that goes on is the machine's for as long.
while [ "$seconds" -gt 0 ]; do sleep 1; seconds=$((seconds - 1)); done
after=$(count) ended=$(date +%s%N)
kill -s KILL "$load" 2>/dev/null || early=yes
wait "$load" 2>/dev/null
status=$?
if [ -n "$early" ] || [ "$status" -ne 137 ]; then
    echo "redis-benchmark ended too early, with status $status"
    exit 1
fi
echo "$((after - before)) commands in $((ended - began)) ns"
"#;

/// `12345 commands in 1000000000 ns`.
fn counted_rps(output: &str) -> Option<f64> {
    let line = output.lines().find(|line| line.ends_with(" ns"))?;
    let mut numbers = line.split(' ').filter_map(|word| word.parse::<f64>().ok());
    let (commands, nanoseconds) = (numbers.next()?, numbers.next()?);
    (nanoseconds > 0.0).then(|| commands / nanoseconds * 1e9)
}

/// How long the values must be.
fn value_bytes(mebibytes: u64) -> u32 {
    u32::try_from((mebibytes << 20) / 100_000).unwrap_or(u32::MAX)
}

fn find(name: &str) -> Result<String, SceneError> {
    program::find(name, PACKAGE).map(|path| path.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// What comes of counting for a second beside a load, with `echo` in place of the server.
    fn counted(load: &[&str]) -> (bool, String) {
        let asking = ["2", "echo", "total_commands_processed:5"];
        let mut command = Command::new("/bin/sh");
        command.args(["-c", COUNT, "redis-benchmark", "1"]).args(asking).args(load);
        let output = command.output().unwrap();
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    }

    #[test]
    fn a_load_that_ended_early_has_no_rate() {
        let (done, said) = counted(&["sleep", "60"]);
        assert!(done, "{said}");
        assert_eq!(counted_rps(&said), Some(0.0), "{said}");
        for early in ["true", "exit 3", "kill -s KILL $$"] {
            let (done, said) = counted(&["/bin/sh", "-c", early]);
            assert!(!done && said.contains("too early"), "{early}: {said}");
            assert_eq!(counted_rps(&said), None, "{early}");
        }
    }
}
