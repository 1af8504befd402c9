//! pgbench over a path.

use super::redis::{at_client, output};
use super::workloads::CLIENTS;
use crate::platform::{Cell, Measured, Running, Trouble};
use std::cell::RefCell;
use std::rc::Rc;
use untax_scenes::{NetworkPath, PORT, Postgres, Setup};
use untax_trials::Interrupt;

/// Rows by the hundred thousand: all of them fit into the memory of a server as it comes.
const SCALE: u32 = 1;

/// A path with a PostgreSQL at its end, stopped when this is dropped.
pub(super) struct Pgbench {
    postgres: Rc<RefCell<Postgres>>,
    client: Vec<String>,
    seconds: u64,
    _path: Rc<NetworkPath>,
}

impl Pgbench {
    /// Starts the cluster at the server's end; makes it first where there is none.
    pub(super) fn start(
        cluster: &mut Option<Rc<RefCell<Postgres>>>,
        path: Rc<NetworkPath>,
        cell: &Cell,
        reconnects: bool,
    ) -> Result<Self, Trouble> {
        let before = cell.cpus.server_words();
        let (network, port) = (Some(&path.server), Some(PORT));
        let setup = Setup { network, port, before_server: &before, ..Setup::default() };
        let postgres = if let Some(postgres) = cluster {
            postgres.borrow_mut().restart_as(&setup).map_err(|error| Trouble::of(&error))?;
            Rc::clone(postgres)
        } else {
            let postgres = Postgres::start_as(&setup).map_err(|error| Trouble::of(&error))?;
            postgres.pgbench_fill(SCALE, 100).map_err(|error| Trouble::of(&error))?;
            Rc::clone(cluster.insert(Rc::new(RefCell::new(postgres))))
        };
        let client = client(&postgres.borrow(), &path, cell, reconnects)?;
        let seconds = cell.workload.trial.as_secs().max(1);
        Ok(Self { postgres, client, seconds, _path: path })
    }
}

fn client(
    postgres: &Postgres,
    path: &NetworkPath,
    cell: &Cell,
    reconnects: bool,
) -> Result<Vec<String>, Trouble> {
    let program = postgres.client_program("pgbench").map_err(|error| Trouble::of(&error))?;
    let (address, port, clients) =
        (path.address.to_string(), PORT.to_string(), CLIENTS.to_string());
    let options = ["-h", &address, "-p", &port, "-U", postgres.user(), "-n", "-S"];
    let mut words = at_client(path, cell);
    words.push(program);
    words.extend(options.map(str::to_owned));
    // A thread that connects does nothing else: clients that reconnect have one each.
    words.extend(["-M", "prepared", "-c", &clients].map(str::to_owned));
    words.extend(["-j", if reconnects { &clients } else { "1" }].map(str::to_owned));
    words.extend(reconnects.then(|| "-C".to_owned()));
    Ok(words)
}

impl Running for Pgbench {
    fn trial(&mut self, interrupt: &Interrupt) -> Result<Measured, Trouble> {
        let seconds = self.seconds.to_string();
        let text = output(&self.client, &["-T", &seconds, "postgres"])?;
        interrupt.check()?;
        let tps = text.lines().find_map(|line| line.strip_prefix("tps = "));
        let tps = tps.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
        let tps = tps.ok_or_else(|| Trouble::Failed("pgbench printed no rate".to_owned()))?;
        Ok(Measured::of(tps).counting(tps * self.seconds as f64))
    }
}

impl Drop for Pgbench {
    fn drop(&mut self) {
        self.postgres.borrow_mut().stop();
    }
}
