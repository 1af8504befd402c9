//! Starting our own server and client at the ends of a path, and reading what they did.

use super::peers::{CLIENT, ClientSpec, Exchanged, Kind, SERVER, Served, ServerSpec};
use crate::child::HiddenCommand;
use crate::platform::{Measured, Running, Trouble};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::rc::Rc;
use untax_changes::Program;
use untax_scenes::NetworkPath;
use untax_trials::Interrupt;

/// Of a thousand datagrams, so many may be lost before the times of the others tell little.
const MOST_LOST: f64 = 0.001;

/// The extra of a trial that says what the server's CPU took for a transaction, µs.
pub(crate) const SERVER_CPU: &str = "server-cpu";

/// CPU time over the time of a trial from which on a side is at its limit.
const SATURATED: f64 = 0.9;

/// A path with a server at its end, for one cell.
pub(super) struct Exchange {
    server: Server,
    client: ClientSpec,
    program: Program,
    /// Dropped last: a namespace lives as long as the server in it.
    _path: Rc<NetworkPath>,
}

/// A running server; killed when dropped.
struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Exchange {
    /// Starts the server.
    pub(super) fn start(
        program: Program,
        path: Rc<NetworkPath>,
        server: &ServerSpec,
        client: ClientSpec,
    ) -> Result<Self, Trouble> {
        let server = Server::start(&program, server)?;
        Ok(Self { server, client, program, _path: path })
    }
}

impl Running for Exchange {
    fn trial(&mut self, interrupt: &Interrupt) -> Result<Measured, Trouble> {
        let before = self.server.ask()?;
        let exchanged: Exchanged = run_client(&self.program, &self.client)?;
        let after = self.server.ask()?;
        interrupt.check()?;
        measured(self.client.kind, &exchanged, Some(&[before, after]))
    }
}

/// What a trial gives, from what the client said, and the server before and after where it is asked.
pub(crate) fn measured(
    kind: Kind,
    client: &Exchanged,
    server: Option<&[Served; 2]>,
) -> Result<Measured, Trouble> {
    let answered = server.map(|[before, after]| {
        let answered = after.transactions.saturating_sub(before.transactions);
        (answered, (after.cpu_s - before.cpu_s).max(0.0))
    });
    if client.transactions == 0 || answered.is_some_and(|(answered, _)| answered == 0) {
        return Err(Trouble::Failed("no transaction was made; make trials longer".to_owned()));
    }
    let per_request_us = client.cpu_s / client.all_transactions as f64 * 1e6;
    if kind == Kind::Stream {
        return Ok(stream(client, answered.map(|(_, server_s)| server_s)));
    }
    let lost = client.lost as f64 / client.all_transactions as f64;
    if lost > MOST_LOST {
        let share = lost * 100.0;
        return Err(Trouble::Failed(format!("{share:.1} % of datagrams were lost on this path")));
    }
    let [p50, p90, p99, p999] =
        client.latency_us.ok_or_else(|| Trouble::Failed("the client gave no times".to_owned()))?;
    let measured = Measured::of(p50)
        .counting(client.transactions as f64)
        .with("rate", client.transactions as f64 / client.elapsed_s, "transactions/s")
        .with("latency-p90", p90, "us")
        .with("latency-p99", p99, "us")
        .with("latency-p999", p999, "us")
        .with("client-cpu", per_request_us, "us/transaction");
    Ok(match answered {
        Some((answered, server_s)) => {
            measured.with(SERVER_CPU, server_s / answered as f64 * 1e6, "us/transaction")
        }
        None => measured,
    })
}

/// A stream says what the path carries only while neither side is at its limit; and packets that are larger
/// than its segments never leave a machine.
fn stream(client: &Exchanged, server_s: Option<f64>) -> Measured {
    let (bytes, elapsed_s) = (client.transactions as f64, client.elapsed_s);
    let mut measured = Measured::of(bytes / elapsed_s / 1e6).with(
        "client-cpu",
        client.cpu_s / bytes * 1e9,
        "ns/byte",
    );
    if let Some(server_s) = server_s {
        measured = measured.with(SERVER_CPU, server_s / bytes * 1e9, "ns/byte");
    }
    let server_s = server_s.unwrap_or(0.0);
    if let Some(sent) = client.sent {
        if sent.packets > 0 {
            measured = measured.with("packet", bytes / sent.packets as f64, "bytes");
        }
        if let Some((segments, data)) = sent.segments.filter(|(segments, _)| *segments > 0) {
            measured = measured.with("segment", data as f64 / segments as f64, "bytes");
        }
    }
    let sides = [("client", client.cpu_s), ("server", server_s)];
    let busy = sides.iter().find(|(_, cpu_s)| cpu_s / elapsed_s > SATURATED);
    measured.saturated = match busy {
        Some((side, _)) => Some(format!("the CPU of the {side}")),
        None => ((client.cpu_s + server_s) / elapsed_s > SATURATED)
            .then(|| "the CPU that both sides share".to_owned()),
    };
    measured
}

impl Server {
    fn start(program: &Program, spec: &ServerSpec) -> Result<Self, Trouble> {
        let mut child = spawn(&SERVER, program, spec).map_err(|e| failed("server", &e))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let Some((input, output)) = input.zip(output) else {
            return Err(Trouble::Failed("the server has no pipes".to_owned()));
        };
        let mut server = Self { child, input, output: BufReader::new(output) };
        server.answer()?;
        Ok(server)
    }

    /// What it has done so far.
    fn ask(&mut self) -> Result<Served, Trouble> {
        self.input.write_all(b"\n").map_err(|error| failed("server", &error))?;
        self.answer()
    }

    fn answer(&mut self) -> Result<Served, Trouble> {
        let mut line = String::new();
        self.output.read_line(&mut line).map_err(|error| failed("server", &error))?;
        serde_json::from_str(&line)
            .map_err(|_| Trouble::Failed(complaint("server", &mut self.child)))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a client to its end.
pub(crate) fn run_client<T: DeserializeOwned>(
    program: &Program,
    spec: &ClientSpec,
) -> Result<T, Trouble> {
    let mut child = spawn(&CLIENT, program, spec).map_err(|error| failed("client", &error))?;
    let mut text = String::new();
    if let Some(output) = &mut child.stdout {
        output.read_to_string(&mut text).map_err(|error| failed("client", &error))?;
    }
    serde_json::from_str(&text).map_err(|_| Trouble::Failed(complaint("client", &mut child)))
}

fn spawn(part: &HiddenCommand, program: &Program, spec: &impl Serialize) -> io::Result<Child> {
    let mut command = part.command(program, spec)?;
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
}

/// What a child that ended early wrote.
fn complaint(side: &str, child: &mut Child) -> String {
    let mut text = String::new();
    if let Some(errors) = &mut child.stderr {
        let _ = errors.read_to_string(&mut text);
    }
    let status = child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
    format!("the {side} of this path ended early ({status}): {}", text.trim())
}

fn failed(side: &str, error: &io::Error) -> Trouble {
    Trouble::Failed(format!("the {side} of this path: {error}"))
}
