//! Round trips to the clients of real servers, beside those that `ss` prints.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test looks at the machine by other ways than the code that it tests"
)]

mod support;

use serde_json::Value;
use std::io::{Seek, Write};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use support::{Bystander, Untax, database, demand, one_of};
use untax_scenes::{Network, Pgbench, Postgres, Redis, Setup};

/// The median of the smoothed round-trip times (µs) of the clients of a port in the network of a process.
fn median_of_ss(pid: u32, port: u16) -> Option<f64> {
    let mut ss = Command::new("nsenter");
    ss.arg(format!("--net=/proc/{pid}/ns/net")).args(["--", "ss", "-tinH", "state", "established"]);
    ss.arg(format!("( sport = :{port} )"));
    let text = String::from_utf8(ss.output().unwrap().stdout).unwrap();
    // `rtt:0.052/0.011`, milliseconds.
    let times = text.split_ascii_whitespace().filter_map(|word| word.strip_prefix("rtt:"));
    let mut times: Vec<f64> =
        times.map(|time| time.split_once('/').unwrap().0.parse::<f64>().unwrap() * 1e3).collect();
    times.sort_by(f64::total_cmp);
    let middle = times.len().checked_sub(1)? / 2;
    Some(f64::midpoint(times[middle], times[times.len() / 2]))
}

/// What a check says of the network, and the medians that `ss` printed meanwhile, the last half of them:
/// the check looks at the end.
fn look(pid: u32, port: u16) -> (Value, Vec<f64>) {
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let medians = scope.spawn(|| {
            let mut medians = Vec::new();
            while !ended.load(Ordering::Relaxed) {
                medians.extend(median_of_ss(pid, port));
                std::thread::sleep(Duration::from_millis(50));
            }
            medians.split_off(medians.len() / 2)
        });
        let check = Untax::new().check(pid);
        ended.store(true, Ordering::Relaxed);
        (database(&check, pid)["network"].clone(), medians.join().unwrap())
    })
}

/// The median is among those of `ss`, or within a tenth of them; more than so many µs. Gives the network.
fn agrees(pid: u32, port: u16, least_us: f64) -> Value {
    one_of(3, || {
        let (network, medians) = look(pid, port);
        let p50 = network["client_rtt_us_p50"].as_f64().ok_or_else(|| format!("{network:#}"))?;
        let low = medians.iter().copied().fold(f64::INFINITY, f64::min) / 1.1;
        let high = medians.iter().copied().fold(0.0, f64::max) * 1.1;
        demand((low..=high).contains(&p50) && p50 >= least_us, || {
            format!("{p50} µs, and ss said {medians:?}")
        })?;
        let p99 = network["client_rtt_us_p99"].as_f64().unwrap();
        demand(p99 >= p50, || format!("{network:#}"))?;
        eprintln!("untax: median {p50:.0} µs; ss: {:.0} to {:.0} µs", low * 1.1, high / 1.1);
        eprintln!("{network:#}");
        Ok(network)
    })
}

#[test]
fn round_trips_of_redis_are_those_of_ss_over_loopback_and_over_a_slow_link() {
    support::real(|| {
        let network = Network::make()?;
        let redis = Redis::start_as(&Setup { network: Some(&network), ..Setup::default() })?;
        let (pid, port) = (redis.pid().unwrap(), redis.port());
        let mut reads = Command::new("nsenter");
        reads.arg(format!("--net=/proc/{pid}/ns/net")).args(["--", "redis-benchmark", "-q", "-l"]);
        reads.args(["-p", &port.to_string(), "-c", "8", "-t", "get", "-r", "1000"]);
        let _reads = Bystander::start(reads);
        let near = agrees(pid, port, 1.0);
        assert_eq!(near["client_connections"], 8);
        // 8 requests and answers of about 100 bytes queue for 2 Mbit/s: at least 3 ms.
        let _slow = network.slow_link(2_000_000)?;
        let far = agrees(pid, port, 1000.0);
        // The shortest round trip of the last minutes is still the fast one.
        let per_request = &far["network_per_request_us"];
        assert!(per_request["high"].as_f64().unwrap() > 1000.0, "{far:#}");
        // A capture holds it, for another user on a machine where none of these processes is.
        let (untax, elsewhere) = (Untax::new(), Untax::as_nobody());
        let file = untax.path("host.tar.gz");
        let words = ["capture", file.to_str().unwrap(), "--window", "1s", "--no-calibration"];
        assert_eq!(untax.run(&words).code, 0);
        elsewhere.take(&file);
        let replayed = elsewhere.run(&["check", "--replay", "host.tar.gz", "--json"]).json();
        let replayed = &database(&replayed, pid)["network"];
        assert_eq!(replayed["client_connections"], 8, "{replayed:#}");
        assert!(replayed["client_rtt_us_p50"].as_f64().unwrap() > 1000.0, "{replayed:#}");
        Ok(())
    });
}

/// Reads a row and thinks for 20 ms.
const THINKS: &str = "SELECT abalance FROM pgbench_accounts WHERE aid = 1;\n\\sleep 20 ms\n";

#[test]
fn think_time_of_postgresql_is_the_clients_and_a_unix_socket_has_no_round_trip() {
    support::real(|| {
        let network = Network::make()?;
        let setup = Setup { network: Some(&network), ..Setup::default() };
        let postgres = Postgres::start_as(&setup)?;
        postgres.pgbench_fill(1, 100)?;
        let (pid, port) = (postgres.pid().unwrap(), postgres.port());
        let pgbench = |host: &str| {
            let mut script = tempfile::tempfile().unwrap();
            script.write_all(THINKS.as_bytes()).unwrap();
            script.rewind().unwrap();
            let mut pgbench = Command::new("nsenter");
            pgbench
                .arg(format!("--net=/proc/{pid}/ns/net"))
                .args(["--", "pgbench", "-n", "-h", host]);
            pgbench.args(["-p", &port.to_string(), "-U", postgres.user(), "--time=180", "-c", "4"]);
            Bystander::start({
                pgbench.args(["--file=-", "postgres"]).stdin(script);
                pgbench
            })
        };
        {
            let _unix = pgbench(&postgres.socket_directory());
            std::thread::sleep(Duration::from_secs(1));
            let check = Untax::new().check(pid);
            let network = &database(&check, pid)["network"];
            let absent = network["client_rtt_us_p50"]["absent"].as_str();
            assert!(absent.is_some_and(|why| why.contains("no client")), "{network:#}");
        }
        let tcp = pgbench("127.0.0.1");
        std::thread::sleep(Duration::from_secs(1));
        one_of(3, || {
            let (network, _) = look(pid, port);
            let number = |name: &str| network[name].as_f64().unwrap_or(f64::NAN);
            let client = &network["client_per_request_us"];
            let (idle, client) = (number("idle_per_request_us"), client["mid"].as_f64());
            demand((20_000.0..30_000.0).contains(&idle), || format!("{network:#}"))?;
            demand(client.is_some_and(|client| client > 0.9 * idle), || format!("{network:#}"))
        });
        // Closed, without think time, and the kernel's own instrument beside it.
        drop(tcp);
        let _closed =
            postgres.pgbench(&Pgbench { clients: 4, seconds: 120, ..Pgbench::default() })?;
        std::thread::sleep(Duration::from_secs(1));
        let closed = agrees(pid, port, 1.0);
        // One statement each. The server's processes hand over what they counted once a second.
        let trips = &closed["round_trips_per_request"];
        let bound = |name: &str| trips[name].as_f64().unwrap();
        assert!(bound("low") <= 1.0 && 1.0 <= bound("high"), "{closed:#}");
        assert!(bound("high") < 3.0 * bound("low"), "in three seconds: {closed:#}");
        Ok(())
    });
}
