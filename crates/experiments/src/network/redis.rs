//! redis-benchmark over a path.

use crate::platform::{Cell, Measured, Running, Trouble};
use std::process::{Command, Stdio};
use std::rc::Rc;
use untax_scenes::{NetworkPath, PORT, Redis, Setup, find_program};
use untax_trials::Interrupt;

/// Connections: with 10 of them its rate varies by 2 % between trials.
const CONNECTIONS: &str = "10";

/// Requests of the first run, which warms up and shows how many a trial makes.
const FIRST: u64 = 5_000;

/// A path with a Redis at its end.
pub(super) struct RedisGet {
    _server: Redis,
    client: Vec<String>,
    requests: u64,
    _path: Rc<NetworkPath>,
}

impl RedisGet {
    pub(super) fn start(path: Rc<NetworkPath>, cell: &Cell) -> Result<Self, Trouble> {
        let before = cell.cpus.server_words();
        let (network, port) = (Some(&path.server), Some(PORT));
        let setup = Setup { network, port, before_server: &before, ..Setup::default() };
        let server = Redis::start_as(&setup).map_err(|error| Trouble::of(&error))?;
        let mut redis =
            Self { _server: server, client: client(&path, cell)?, requests: FIRST, _path: path };
        let rate = redis.rate()?;
        redis.requests = (rate * cell.workload.trial.as_secs_f64()).max(1000.0) as u64;
        Ok(redis)
    }

    fn rate(&self) -> Result<f64, Trouble> {
        let requests = self.requests.to_string();
        let output = output(&self.client, &["-n", &requests])?;
        let line = output.lines().filter_map(|line| line.split(',').nth(1)).next_back();
        let rate = line.and_then(|field| field.trim_matches('"').parse().ok());
        rate.ok_or_else(|| Trouble::Failed("redis-benchmark printed no rate".to_owned()))
    }
}

/// The words of redis-benchmark at the client's end.
fn client(path: &NetworkPath, cell: &Cell) -> Result<Vec<String>, Trouble> {
    let program = find_program("redis-benchmark", "redis-tools").map_err(|e| Trouble::of(&e))?;
    let program = program.to_string_lossy().into_owned();
    let (address, port) = (path.address.to_string(), PORT.to_string());
    let options = ["-h", &address, "-p", &port, "-t", "get", "-c", CONNECTIONS, "--csv"];
    Ok([at_client(path, cell), vec![program], options.map(str::to_owned).to_vec()].concat())
}

/// The words before a command that bring it to the client's end of a path. It dies with this program.
pub(super) fn at_client(path: &NetworkPath, cell: &Cell) -> Vec<String> {
    let die = ["setpriv", "--pdeathsig=KILL", "--"].map(str::to_owned).to_vec();
    [die, path.client.enter_command(), cell.cpus.client_words()].concat()
}

/// Runs a load to its end.
pub(super) fn output(words: &[String], more: &[&str]) -> Result<String, Trouble> {
    let [program, rest @ ..] = words else {
        return Err(Trouble::Failed("no load".to_owned()));
    };
    let mut command = Command::new(program);
    command.args(rest).args(more).env("LC_ALL", "C").stdin(Stdio::null());
    let output = command.output().map_err(|error| Trouble::of(&error))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    let errors = text(&output.stderr);
    let last = errors.lines().last().unwrap_or("nothing");
    Err(Trouble::Failed(format!("the load failed ({}), and said: {last}", output.status)))
}

impl Running for RedisGet {
    fn trial(&mut self, interrupt: &Interrupt) -> Result<Measured, Trouble> {
        let rate = self.rate()?;
        interrupt.check()?;
        Ok(Measured::of(rate).counting(self.requests as f64))
    }
}
