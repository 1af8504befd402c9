use super::test_results::{bench, cell, kept, of_engine, window};
use super::*;
use crate::platform::{Arm, Better, CellResult};
use untax_core::advice::{Choice, Method};
use untax_core::bench::RatioVerdict;
use untax_core::database::Container;
use untax_core::network::{ClientConnection, DatabaseNetwork};
use untax_core::{Database, Interval, Seconds};

const ENGINE: &str = "redis";

fn runtimes(cells: Vec<CellResult>) -> Kept {
    let arms = vec![
        Arm::new("host", "plain"),
        Arm::new("runc", "runc").isolating("namespaces", Some(false)),
        Arm::new("gvisor-systrap", "gVisor").isolating("its own", Some(true)),
        Arm::new("kata", "Kata").cannot("no such program"),
    ];
    kept(vec![bench("bench-runtime-1", arms, cells)])
}

fn get() -> CellResult {
    let values = [("host", 100.0), ("runc", 99.0), ("gvisor-systrap", 12.3)];
    of_engine(cell("redis-get", Better::Higher, &values), ENGINE, false)
}

fn in_docker(database: &mut Database, _: f64) {
    let runtime = "docker".to_owned();
    database.container = Some(Container { id: "ab".to_owned(), runtime });
}

fn choice<'a>(advice: &'a Advice, id: &str) -> &'a Choice {
    advice.databases[0].choices.iter().find(|choice| choice.id == id).unwrap()
}

fn said(advice: &Advice) -> String {
    advice.databases[0].says.join(" ")
}

#[test]
fn a_runtime_has_the_price_of_the_cell_of_the_engine_over_what_runs_the_database() {
    let (check, window) = window(ENGINE, in_docker);
    let advice = advise(Layer::Runtime, &check, &window, &runtimes(vec![get()]));
    let database = &advice.databases[0];
    assert_eq!(database.over.as_deref(), Some("runc"));
    let price = choice(&advice, "gvisor-systrap").price.as_ref().unwrap();
    assert!((price.factor.median - 99.0 / 12.3).abs() < 0.2, "{price:?}");
    assert!(price.factor.low < price.factor.median && price.factor.median < price.factor.high);
    assert_eq!((price.method, price.verdict), (Method::Measured, RatioVerdict::Slower));
    assert_eq!(price.cell, "redis-get @ one-cpu");
    let said = said(&advice);
    assert!(
        said.contains("A kernel of its own would cost this redis: gvisor-systrap 8."),
        "{said}"
    );
    assert!(said.starts_with("Keep runc"), "{said}");
    let kata = choice(&advice, "kata");
    assert!(kata.price.is_none());
    assert_eq!(kata.why.as_deref(), Some("no such program"));
    assert_eq!(database.choices.last().unwrap().id, "kata", "those without a price come last");
}

#[test]
fn what_was_not_measured_here_is_said_with_the_command_that_measures_it() {
    let (check, window) = window(ENGINE, |_, _| {});
    let none = advise(Layer::Runtime, &check, &window, &Kept::default());
    assert!(said(&none).contains("run untax bench runtime"), "{}", said(&none));
    assert!(none.not_measured.is_some());
    let elsewhere = Kept { elsewhere: 2, ..Kept::default() };
    let other = advise(Layer::Storage, &check, &window, &elsewhere);
    assert!(said(&other).contains("another processor or kernel"), "{}", said(&other));
    let only_postgres = of_engine(get(), "postgres", false);
    let lacking = advise(Layer::Runtime, &check, &window, &runtimes(vec![only_postgres]));
    assert!(said(&lacking).contains("no redis was measured"), "{}", said(&lacking));
    assert!(lacking.databases[0].choices.iter().all(|choice| choice.price.is_none()));
}

#[test]
fn a_load_that_connects_has_the_price_of_a_cell_that_connects() {
    let (check, window) = window("postgres", |database, at| {
        database.traits.requests_counter = Some("transactions".to_owned());
        database.traits.connections_counter = Some("sessions".to_owned());
        let count = (1000.0 * at) as u64;
        let told = ["transactions", "sessions"].map(|name| (name.to_owned(), count));
        database.counters.told = Reading::Present(told.into());
    });
    let stays = [("host", 100.0), ("runc", 100.0), ("gvisor-systrap", 22.0)];
    let connects = [("host", 100.0), ("runc", 86.0), ("gvisor-systrap", 7.0)];
    let cells = vec![
        of_engine(cell("postgres-read", Better::Higher, &stays), "postgres", false),
        of_engine(cell("postgres-connect", Better::Higher, &connects), "postgres", true),
    ];
    let advice = advise(Layer::Runtime, &check, &window, &runtimes(cells));
    let price = choice(&advice, "runc").price.as_ref().unwrap();
    assert_eq!(price.cell, "postgres-connect @ one-cpu");
    assert!((price.factor.median - 1.0 / 0.86).abs() < 0.02, "{price:?}");
    assert_eq!(advice.databases[0].needs.connections_per_request, Reading::Present(1.0));
}

#[test]
fn few_pairs_are_no_verdict_and_no_advice_to_stay() {
    let (check, window) = window(ENGINE, |_, _| {});
    let mut few = get();
    for arm in &mut few.arms {
        arm.trials.truncate(2);
    }
    let advice = advise(Layer::Runtime, &check, &window, &runtimes(vec![few]));
    let said = said(&advice);
    assert!(said.starts_with("Nothing can be said of host yet"), "{said}");
    assert!(said.contains("Too few pairs to tell from noise: runc"), "{said}");
    assert!(!said.contains("No price beyond noise") && !said.contains("Keep"), "{said}");
}

#[test]
fn the_latest_result_that_has_both_arms_is_the_price() {
    let (check, window) = window(ENGINE, |_, _| {});
    let mut both = runtimes(vec![get()]);
    let values = [("host", 100.0), ("runc", 50.0)];
    let later = of_engine(cell("redis-get", Better::Higher, &values), ENGINE, false);
    both.results.insert(0, bench("bench-runtime-2", both.results[0].arms.clone(), vec![later]));
    let advice = advise(Layer::Runtime, &check, &window, &both);
    let bench = |id| choice(&advice, id).price.as_ref().map(|price| price.bench.clone());
    assert_eq!(bench("runc").as_deref(), Some("bench-runtime-2"));
    assert_eq!(bench("gvisor-systrap").as_deref(), Some("bench-runtime-1"));
}

/// Waits for disks for that share of its time, with its data in that directory.
fn waiting(share: f64, directory: &str) -> (Check, Window) {
    let (mut check, window) = window("postgres", |database, _| {
        database.data_directory = Reading::Present(directory.to_owned());
    });
    let time = &mut check.databases[0].time;
    time.active_s = Reading::Present(Seconds(10.0));
    time.disk_s = Reading::Present(Seconds(10.0 * share));
    (check, window)
}

fn volumes() -> Kept {
    let arms = vec![
        Arm::new("data", "old").with("path", "/data"),
        Arm::new("new", "new").with("path", "/mnt/new"),
    ];
    let log = cell("log-8k", Better::Lower, &[("data", 100.0), ("new", 400.0)]);
    kept(vec![bench("bench-storage-1", arms, vec![log])])
}

#[test]
fn a_volume_has_the_price_of_what_the_database_waits_for() {
    let (check, window) = waiting(0.5, "/data/main");
    let advice = advise(Layer::Storage, &check, &window, &volumes());
    assert_eq!(advice.databases[0].now, Reading::Present("data".to_owned()));
    let price = choice(&advice, "new").price.as_ref().unwrap();
    assert_eq!(price.method, Method::DiskShare);
    assert!((price.factor.median - 2.5).abs() < 0.03, "half of it four times as long: {price:?}");
}

#[test]
fn a_database_that_waits_for_no_disk_keeps_its_volume_and_one_elsewhere_has_no_price() {
    let (check, window) = waiting(0.001, "/elsewhere");
    let advice = advise(Layer::Storage, &check, &window, &volumes());
    assert!(said(&advice).starts_with("Keep its volume"), "{}", said(&advice));
    let (check, window) = waiting(0.5, "/elsewhere");
    let advice = advise(Layer::Storage, &check, &window, &volumes());
    assert!(said(&advice).contains("untax bench storage --path /elsewhere"), "{}", said(&advice));
    assert!(advice.databases[0].choices.iter().all(|choice| choice.price.is_none()));
}

fn client(is_local: bool) -> ClientConnection {
    ClientConnection {
        cookie: 1,
        is_local,
        rtt_us: None,
        min_rtt_us: None,
        retransmits: 0,
        segment_bytes: 1448,
        received: None,
        sent: None,
    }
}

fn with_clients(engine: &str, clients: &[ClientConnection]) -> (Check, Window) {
    window(engine, |database, at| {
        database.traits.requests_counter = Some("questions".to_owned());
        let told = [("questions".to_owned(), (10_000.0 * at) as u64)];
        database.counters.told = Reading::Present(told.into());
        database.counters.on_cpu_s = Reading::Present(Seconds(0.4 * at));
        database.network = Reading::Present(DatabaseNetwork {
            own_namespace: false,
            way: Reading::absent("none"),
            conntrack: Reading::absent("none"),
            clients: Reading::Present(clients.to_vec()),
        });
    })
}

fn paths() -> Kept {
    let arms = vec![Arm::new("wire", "a wire"), Arm::new("nodes-vxlan", "an overlay")];
    let mut times = cell("rr", Better::Lower, &[("wire", 10.0), ("nodes-vxlan", 15.0)]);
    for (arm, cpu_us) in times.arms.iter_mut().zip([4.0, 6.0]) {
        for trial in &mut arm.trials {
            let measured = std::mem::take(&mut trial.measured);
            trial.measured = measured.with("server-cpu", cpu_us, "us/transaction");
        }
    }
    kept(vec![bench("bench-network-1", arms, vec![times])])
}

#[test]
fn a_path_without_a_cell_of_the_engine_has_the_price_of_its_round_trips() {
    let (mut check, window) = with_clients("mysql", &[client(false)]);
    let network = &mut check.databases[0].network;
    network.client_connections = Reading::Present(1);
    network.round_trips_per_request = Reading::Present(Interval::new(2.0, 2.0, 2.0));
    // 40 us of CPU time a request, and 2 us more for each of two round trips.
    let advice = advise(Layer::Network, &check, &window, &paths());
    let price = choice(&advice, "nodes-vxlan").price.as_ref().unwrap();
    assert_eq!(price.method, Method::RoundTrips);
    assert!((price.factor.median - 1.1).abs() < 0.001, "{price:?}");
    assert_eq!(advice.databases[0].over.as_deref(), Some("wire"));
}

#[test]
fn clients_over_unix_sockets_have_no_path_to_choose() {
    let (check, window) = with_clients("mysql", &[]);
    let advice = advise(Layer::Network, &check, &window, &paths());
    assert!(said(&advice).contains("Unix sockets"), "{}", said(&advice));
}
