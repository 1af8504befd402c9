//! Every recorded case.

/// One cause on one server.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// Its file's name without its ending.
    pub id: &'static str,
    /// The arguments of `untax lab run`.
    pub arguments: &'static [&'static str],
    /// Whether it was never used to choose a number of the model, or to change it.
    pub is_held_out: bool,
    /// Why the prediction misses what was measured, where it does.
    pub miss: Option<&'static str>,
}

const fn case(id: &'static str, arguments: &'static [&'static str]) -> Case {
    Case { id, arguments, is_held_out: false, miss: None }
}

const fn held_out(id: &'static str, arguments: &'static [&'static str]) -> Case {
    Case { is_held_out: true, ..case(id, arguments) }
}

const WAKING: &str = "measured 2 to 3 % above the ceiling, which holds the waits for the lock and not what waking up after each takes \
     (perhaps that is why)";

/// All of them. Held out: PostgreSQL 18 and MySQL 9 as engine versions, and as a family of scenes those whose clients
/// decide how much they ask, or that have two causes.
pub static CASES: &[Case] = &[
    case("cpu-throttled-postgres", &["cpu-throttled"]),
    case("cpu-throttled-mysql", &["cpu-throttled", "--engine", "mysql"]),
    case("cpu-throttled-redis", &["cpu-throttled", "--engine", "redis"]),
    case("cpu-contended-postgres", &["cpu-contended"]),
    case("cpu-contended-mysql", &["cpu-contended", "--engine", "mysql"]),
    case("cpu-contended-redis", &["cpu-contended", "--engine", "redis"]),
    Case { miss: Some(WAKING), ..case("lock-contended-postgres", &["lock-contended"]) },
    case("lock-contended-mysql", &["lock-contended", "--engine", "mysql"]),
    case("reclaim-stall-postgres", &["reclaim-stall"]),
    case("reclaim-stall-mysql", &["reclaim-stall", "--engine", "mysql"]),
    case("disk-slow-postgres", &["disk-slow"]),
    case("disk-slow-mysql", &["disk-slow", "--engine", "mysql"]),
    case("disk-slow-redis", &["disk-slow", "--engine", "redis"]),
    case("io-hang-postgres", &["io-hang"]),
    case("io-hang-mysql", &["io-hang", "--engine", "mysql"]),
    case("io-hang-redis", &["io-hang", "--engine", "redis"]),
    Case {
        miss: Some(
            "large pages bring a twelfth more than page faults and page walks take by the model; that page tables \
             take room in the caches is not in it (perhaps that is why)",
        ),
        ..case("small-pages-postgres", &["small-pages"])
    },
    case("small-pages-mysql", &["small-pages", "--engine", "mysql"]),
    case("too-many-connections-postgres", &["too-many-connections"]),
    held_out("cpu-throttled-postgres18", &["cpu-throttled", "--engine", "postgres18"]),
    held_out("cpu-throttled-mysql9", &["cpu-throttled", "--engine", "mysql9"]),
    held_out("disk-slow-postgres18", &["disk-slow", "--engine", "postgres18"]),
    held_out("cpu-contended-thinking", &["cpu-contended", "--load", "thinking"]),
    held_out("cpu-contended-paced", &["cpu-contended", "--load", "paced"]),
    held_out("cpu-throttled-paced", &["cpu-throttled", "--load", "paced"]),
    held_out("limit-beside-hot-row", &["cpu-throttled", "--beside", "lock-contended"]),
    Case {
        miss: Some(WAKING),
        ..held_out("hot-row-below-limit", &["lock-contended", "--beside", "cpu-throttled"])
    },
    held_out("memory-limit-beside-hogs", &["reclaim-stall", "--beside", "cpu-contended"]),
    held_out("hogs-beside-memory-limit", &["cpu-contended", "--beside", "reclaim-stall"]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn cases_have_names_of_their_own() {
        let names: BTreeSet<&str> = CASES.iter().map(|case| case.id).collect();
        assert_eq!(names.len(), CASES.len());
        assert!(CASES.iter().any(|case| case.is_held_out));
    }
}
