//! What was seen of a real process is seen again in its record.

use untax_core::Reading::{self, Present};
use untax_core::database::Database;
use untax_engines::{Asker, Selection, discover};
use untax_host::{Host, facts};

fn own(host: &Host) -> Reading<Vec<Database>> {
    let selection = Selection::Pid(std::process::id());
    discover(host, &facts::read_all(host), &selection, &Asker::this_program())
        .map(|found| found.databases)
}

#[test]
fn a_record_tells_what_the_host_told() {
    let host = Host::recording();
    let seen = own(&host);
    let again = own(&Host::from_record(host.into_record()));
    assert_eq!(again, seen);
    let Present(databases) = seen else { panic!("{seen:?}") };
    let database = &databases[0];
    assert_eq!(database.id, format!("generic:{}", std::process::id()));
    assert!(database.memory.resident_bytes.value().is_some_and(|bytes| bytes.0 > 0));
    assert!(database.counters.minor_faults.value().is_some_and(|faults| *faults > 0));
}
