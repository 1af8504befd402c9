//! Servers in an arm, with their clients outside.

use super::calls::Counting;
use super::scene::Scene;
use super::workloads::Kind;
use crate::platform::{CALLS, Cell, Measured, Running, Trouble};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use untax_scenes::{
    Group, MariaDb, Network, Pgbench, Postgres, Redis, Runtime, SceneError, Settings, Setup,
    Sysbench,
};
use untax_trials::Interrupt;

/// Connections of redis-benchmark, whose rate varies by 2 % with 10.
const REDIS_CLIENTS: u32 = 10;
/// Requests of the run that tells how many fill a trial, for each that is in flight.
const FEW_REQUESTS: f64 = 2000.0;
/// Connections of the others.
const CLIENTS: u32 = 4;
/// Times 100,000 rows of pgbench: 150 MB.
const SCALE: u32 = 10;
/// Rows of sysbench: some 20 MB.
const ROWS: u64 = 100_000;

const POSTGRES: Settings = &[("shared_buffers", "256MB"), ("huge_pages", "off")];
const MARIADB: Settings = &[("innodb_buffer_pool_size", "128M")];

/// The servers, each made and filled once and started anew for every trial; where they have run before, they
/// have their data.
#[derive(Default)]
pub(super) struct Servers {
    redis: Option<Rc<RefCell<Redis>>>,
    postgres: Option<Rc<RefCell<Postgres>>>,
    mariadb: Option<Rc<RefCell<MariaDb>>>,
    /// System calls of an operation, by work; none where they could not be counted.
    calls: BTreeMap<String, Option<f64>>,
}

/// A server that is up, and its load.
enum Loaded {
    Redis { server: Rc<RefCell<Redis>>, load: RedisLoad },
    Postgres { server: Rc<RefCell<Postgres>>, load: Pgbench },
    MariaDb { server: Rc<RefCell<MariaDb>>, load: Sysbench, writes: bool },
}

/// A server in an arm; stopped when dropped, before its group goes.
pub(super) struct ServerRunning {
    loaded: Loaded,
    scene: Scene,
    calls: Option<f64>,
}

impl ServerRunning {
    pub(super) fn start(
        servers: &mut Servers,
        scene: Scene,
        kind: Kind,
        cell: &Cell,
    ) -> Result<Self, SceneError> {
        let (server, client) = (cell.cpus.server_words(), cell.cpus.client_words());
        let settings: Settings = match kind {
            Kind::Postgres { .. } => POSTGRES,
            Kind::MariaDb { .. } => MARIADB,
            _ => &[],
        };
        let setup = Setup {
            runtime: scene.runtime,
            settings,
            group: scene.group.as_ref(),
            network: Some(&scene.network),
            before_server: &server,
            before_clients: &client,
            ..Setup::default()
        };
        let seconds = cell.workload.trial.as_secs_f64();
        let whole_seconds = seconds.round().max(1.0) as u32;
        let loaded = match kind {
            Kind::Redis { test, pipeline } => {
                let redis = servers.redis(&scene.network)?;
                redis.borrow_mut().restart_as(&setup)?;
                let few = RedisLoad::few(test, pipeline);
                let rate = few.measure(&redis.borrow())?.rate;
                Loaded::Redis { server: redis, load: few.filling(rate, seconds) }
            }
            Kind::Postgres { writes, reconnect } => {
                let postgres = servers.postgres(&scene.network)?;
                postgres.borrow_mut().restart_as(&setup)?;
                postgres.borrow().prewarm()?;
                let without_hot_rows = writes;
                let seconds = whole_seconds;
                let load =
                    Pgbench { clients: CLIENTS, seconds, writes, without_hot_rows, reconnect };
                Loaded::Postgres { server: postgres, load }
            }
            _ => {
                let mariadb = servers.mariadb(&scene.network)?;
                mariadb.borrow_mut().restart_as(&setup)?;
                let load = Sysbench { threads: CLIENTS, seconds: whole_seconds, rows: ROWS };
                let writes = kind == Kind::MariaDb { writes: true };
                // The first run reads the rows into memory.
                mariadb.borrow().sysbench_run(&Sysbench { seconds: 1, ..load })?.finish()?;
                Loaded::MariaDb { server: mariadb, load, writes }
            }
        };
        let is_plain = scene.runtime == Runtime::Host && scene.group.is_none();
        let calls = if is_plain { servers.calls(&cell.workload.id, &loaded) } else { None };
        Ok(Self { loaded, scene, calls })
    }
}

/// What redis-benchmark does.
#[derive(Debug, Clone, Copy)]
struct RedisLoad {
    /// The tests that run, the last of which counts.
    tests: &'static str,
    /// How its row begins.
    row: &'static str,
    pipeline: u32,
    requests: f64,
}

impl RedisLoad {
    /// A load that tells how many requests fill a trial. Elements that LPOP takes, and the value that GET reads,
    /// are put there by the test before it.
    fn few(test: &str, pipeline: u32) -> Self {
        let (tests, row) = match test {
            "lpop" => ("lpush,lpop", "LPOP"),
            "get" => ("set,get", "GET"),
            "set" => ("set", "SET"),
            "lpush" => ("lpush", "LPUSH"),
            _ => ("sadd", "SADD"),
        };
        Self { tests, row, pipeline, requests: FEW_REQUESTS * f64::from(pipeline) }
    }

    /// The same for so long at this rate; what GET reads is there by now.
    fn filling(self, rate: f64, seconds: f64) -> Self {
        let requests = (rate * seconds).max(self.requests).round();
        let tests = if self.row == "GET" { "get" } else { self.tests };
        Self { tests, requests, ..self }
    }

    fn measure(self, server: &Redis) -> Result<RedisRow, SceneError> {
        let [clients, pipeline] = [REDIS_CLIENTS, self.pipeline].map(|n| n.to_string());
        let requests = format!("{:.0}", self.requests);
        let options = ["--csv", "-t", self.tests, "-c", &clients, "-P", &pipeline, "-n", &requests];
        RedisRow::find(&server.measure(&options.map(str::to_owned))?, self.row)
    }
}

impl Loaded {
    /// The server's process.
    fn process(&self) -> Option<u32> {
        match self {
            Self::Redis { server, .. } => server.borrow().pid(),
            Self::Postgres { server, .. } => server.borrow().pid(),
            Self::MariaDb { server, .. } => server.borrow().pid(),
        }
    }

    /// System calls of the server for each operation, beside one run of the load.
    fn count_calls(&self) -> Option<f64> {
        let counting = Counting::attach(self.process()?).ok()?;
        let operations = match self {
            // As many as in a trial would take long where each call is stopped twice.
            Self::Redis { server, load } => {
                let few = FEW_REQUESTS * f64::from(load.pipeline);
                let few = RedisLoad { requests: few.min(load.requests), ..*load };
                few.measure(&server.borrow()).ok()?;
                few.requests * few.tests.split(',').count() as f64
            }
            _ => self.measure().ok()?.operations?,
        };
        Some(counting.finish()? / operations)
    }

    fn measure(&self) -> Result<Measured, SceneError> {
        match self {
            Self::Redis { server, load } => {
                let RedisRow { rate, p50_ms, p99_ms } = load.measure(&server.borrow())?;
                let measured = Measured::of(rate).counting(load.requests);
                let measured = measured.with("latency-p50", p50_ms * 1e3, "us");
                Ok(measured.with("latency-p99", p99_ms * 1e3, "us"))
            }
            Self::Postgres { server, load } => {
                let rate = server.borrow().pgbench(load)?.finish()?;
                Ok(Measured::of(rate).counting(rate * f64::from(load.seconds)))
            }
            Self::MariaDb { server, load, writes } => {
                let server = server.borrow();
                let load_running = if *writes {
                    server.sysbench_update(load)?
                } else {
                    server.sysbench_run(load)?
                };
                let rate = load_running.finish()?;
                Ok(Measured::of(rate).counting(rate * f64::from(load.seconds)))
            }
        }
    }
}

impl Running for ServerRunning {
    fn trial(&mut self, _: &Interrupt) -> Result<Measured, Trouble> {
        let measured = self.loaded.measure().map_err(|error| Trouble::of(&error))?;
        let counted = |calls| measured.clone().with(CALLS, calls, "1/operation");
        Ok(self.calls.map_or_else(|| measured.clone(), counted))
    }

    fn groups(&self) -> Vec<String> {
        self.scene.group.as_ref().map(Group::directories).unwrap_or_default()
    }
}

impl Drop for ServerRunning {
    fn drop(&mut self) {
        match &self.loaded {
            Loaded::Redis { server, .. } => server.borrow_mut().stop(),
            Loaded::Postgres { server, .. } => server.borrow_mut().stop(),
            Loaded::MariaDb { server, .. } => server.borrow_mut().stop(),
        }
    }
}

impl Servers {
    /// System calls of an operation of this load on the plain host, counted once.
    fn calls(&mut self, work: &str, loaded: &Loaded) -> Option<f64> {
        if let Some(known) = self.calls.get(work) {
            return *known;
        }
        let calls = loaded.count_calls();
        self.calls.insert(work.to_owned(), calls);
        calls
    }

    fn redis(&mut self, network: &Network) -> Result<Rc<RefCell<Redis>>, SceneError> {
        if let Some(redis) = &self.redis {
            return Ok(Rc::clone(redis));
        }
        let mut redis = Redis::start_as(&Setup { network: Some(network), ..Setup::default() })?;
        redis.stop();
        Ok(Rc::clone(self.redis.insert(Rc::new(RefCell::new(redis)))))
    }

    fn postgres(&mut self, network: &Network) -> Result<Rc<RefCell<Postgres>>, SceneError> {
        if let Some(postgres) = &self.postgres {
            return Ok(Rc::clone(postgres));
        }
        let setup = Setup { network: Some(network), settings: POSTGRES, ..Setup::default() };
        let mut postgres = Postgres::start_as(&setup)?;
        postgres.sql("CREATE EXTENSION IF NOT EXISTS pg_prewarm")?;
        // Logged: a runtime that is killed may kill its server, which empties unlogged tables.
        postgres.pgbench_fill_logged(SCALE)?;
        postgres.stop();
        Ok(Rc::clone(self.postgres.insert(Rc::new(RefCell::new(postgres)))))
    }

    fn mariadb(&mut self, network: &Network) -> Result<Rc<RefCell<MariaDb>>, SceneError> {
        if let Some(mariadb) = &self.mariadb {
            return Ok(Rc::clone(mariadb));
        }
        let setup = Setup { network: Some(network), settings: MARIADB, ..Setup::default() };
        let mut mariadb = MariaDb::start_as(&setup)?;
        mariadb.sysbench_fill(ROWS)?;
        mariadb.stop();
        Ok(Rc::clone(self.mariadb.insert(Rc::new(RefCell::new(mariadb)))))
    }
}

/// A row of redis-benchmark: `"GET","90909.09","0.1",…`.
struct RedisRow {
    rate: f64,
    p50_ms: f64,
    p99_ms: f64,
}

impl RedisRow {
    fn find(output: &str, test: &str) -> Result<Self, SceneError> {
        let find = || {
            let head = output.lines().find(|line| line.starts_with("\"test\""))?;
            let place =
                |name: &str| head.split(',').position(|field| field.trim_matches('"') == name);
            let row = output.lines().find(|line| {
                let first = line.split(',').next().unwrap_or_default().trim_matches('"');
                first.split_whitespace().next() == Some(test)
            })?;
            let fields: Vec<&str> = row.split(',').map(|field| field.trim_matches('"')).collect();
            let number = |name: &str| fields.get(place(name)?)?.parse::<f64>().ok();
            Some(Self {
                rate: number("rps")?,
                p50_ms: number("p50_latency_ms")?,
                p99_ms: number("p99_latency_ms")?,
            })
        };
        find().ok_or_else(|| {
            let last: Vec<&str> = output.lines().rev().take(3).collect();
            let program = "redis-benchmark".to_owned();
            SceneError::NoThroughput { program, output_end: last.join(" | ") }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_percentiles_are_found_by_the_names_of_their_columns() {
        let output = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\
                      \"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"\n\
                      \"LPUSH (needed to benchmark LRANGE)\",\"1.0\",\"1\",\"1\",\"1\",\"1\",\"1\",\"1\"\n\
                      \"GET\",\"90909.09\",\"0.1\",\"0.05\",\"0.103\",\"0.2\",\"0.311\",\"1.0\"\n";
        let row = RedisRow::find(output, "GET").unwrap();
        assert_eq!((row.rate, row.p50_ms, row.p99_ms), (90909.09, 0.103, 0.311));
        assert!(RedisRow::find(output, "LPOP").is_err());
    }
}
