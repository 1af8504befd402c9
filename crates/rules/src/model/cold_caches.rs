//! How much of the first requests of a new server process fills its caches.

use crate::model::process_starts::{serving_part, started};
use untax_core::activity::FIRST_REQUESTS;
use untax_core::window::Pair;

/// The part (0..1) of a PostgreSQL's accesses to blocks that are to catalogs and not to users'
/// tables: a new process reads them to fill its caches, and an old one hardly ever does.
pub struct CatalogShare {
    /// Of all of its requests.
    pub of_all: f64,
    /// Of those of a process's first requests, which make nearly all of these.
    pub of_first: f64,
}

/// `None` when the tables of more than one database were accessed.
pub fn catalog_share(pair: &Pair) -> Option<CatalogShare> {
    let grown = |name: &str| pair.told_growth(name).into_value();
    let (busiest, tables) = (grown("accesses_of_busiest")?, grown("accesses_of_tables")?);
    let all = grown("accesses_of_all")?;
    let alone = busiest > 0.0 && busiest >= ALONE * all;
    let catalogs = (busiest - tables).max(0.0);
    let requests = pair.end.traits.requests_counter.as_deref().and_then(grown).unwrap_or(0.0);
    let first = (FIRST_REQUESTS * serving_part(pair) * started(pair) / requests.max(1.0)).min(1.0);
    let part = |tables: f64| catalogs / (catalogs + tables).max(f64::MIN_POSITIVE);
    alone.then(|| CatalogShare { of_all: part(tables), of_first: part(tables * first) })
}

/// From this part of all accesses on, one database is taken for the only one.
const ALONE: f64 = 0.9;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_window;
    use untax_core::Reading;
    use untax_core::activity::Doing;

    #[test]
    fn of_a_few_requests_of_each_process_the_first_read_the_catalogs() {
        let mut window = test_window::postgres();
        for (snapshot, by) in [(&mut window.start, 0), (&mut window.end, 1)] {
            let told = [("busiest", 1000), ("all", 1000), ("tables", 800)];
            let told = told.map(|(of, count)| (format!("accesses_of_{of}"), 7 + by * count));
            let asked = [("transactions".to_owned(), by * 40_000)];
            snapshot.databases[0].counters.told =
                Reading::Present(told.into_iter().chain(asked).collect());
        }
        test_window::trace(&mut window, &[(Doing::OnCpu, 10.0)]);
        let Reading::Present(activities) = &mut window.activity else { unreachable!() };
        activities[0].started = 200;
        let filling = catalog_share(&window.databases().next().unwrap()).unwrap();
        assert!((filling.of_all - 0.2).abs() < 1e-9);
        // 4 of 200: 200 of the catalogs beside 800 / 50.
        assert!((filling.of_first - 200.0 / 216.0).abs() < 1e-9);
    }
}
