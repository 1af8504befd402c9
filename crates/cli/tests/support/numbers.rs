//! Numbers of a check: what they are, and what no number may be.

use serde_json::Value;

/// All parts of a database's time but the sums of others.
const PARTS: [&str; 8] = [
    "on_cpu_s",
    "runnable_s",
    "disk_s",
    "reclaim_s",
    "lock_s",
    "network_s",
    "idle_s",
    "unaccounted_s",
];

/// One part of the time of a database, seconds.
pub fn part(database: &Value, name: &str) -> f64 {
    database["time"][name].as_f64().unwrap_or_else(|| panic!("{name}: {}", database["time"]))
}

/// All parts but the sums of others.
pub fn sum(database: &Value) -> f64 {
    PARTS.iter().map(|name| part(database, name)).sum()
}

/// Why a reading has no value.
pub fn gap(reading: &Value) -> &str {
    let gap = ["absent", "denied", "failed"].iter().find_map(|kind| reading[*kind].as_str());
    gap.unwrap_or_else(|| panic!("no gap: {reading}"))
}

/// Rules that price what counters say which everybody may read.
const FROM_COUNTERS: [&str; 2] = ["redis-network-bound", "vm-steal"];

/// The parts of a database's time that need tracing are gaps, for a reason that says this.
pub fn untraced(database: &Value, why: &str) {
    let more = ["active_s", "minor_faults_s", "throttled_s"];
    for name in PARTS.iter().chain(&more).filter(|name| !["on_cpu_s", "runnable_s"].contains(name))
    {
        let said = gap(&database["time"][*name]);
        assert!(said.contains(why), "{name}: {said}");
    }
    let taxed = |finding: &&Value| !finding["tax"].is_null();
    let mut taxed = database["findings"].as_array().unwrap().iter().filter(taxed);
    // A shared machine has stolen time, and Redis under load is at its threshold.
    let told = |finding: &Value| FROM_COUNTERS.iter().any(|rule| finding["rule"] == *rule);
    assert!(taxed.all(told), "{database:#}");
}

/// No number of a check is one that cannot be.
pub fn possible(check: &Value) {
    check["databases"].as_array().unwrap().iter().for_each(taxes_add_up);
    each_number("check", check, &mut |path, number| {
        // Differences, in nanoseconds.
        if path.starts_with("check/calibration/") {
            return;
        }
        assert!(number >= 0.0, "{path} is {number}");
        let share = ["/share", "/low", "/high"].iter().any(|end| path.ends_with(end));
        let is_gain = ["/gain/", "/latency_gain/"].iter().any(|gain| path.contains(gain));
        assert!(!share || is_gain || number <= 1.0, "{path} is {number}");
    });
    let cpus = std::thread::available_parallelism().unwrap().get() as f64;
    let window_s = check["window_s"].as_f64().unwrap();
    for database in check["databases"].as_array().unwrap() {
        let time = &database["time"];
        // Other clocks count it, and slices stand for the pauses between them.
        let at_most_s = 1.05 * cpus * window_s + 0.1;
        assert!(time["on_cpu_s"].as_f64().is_none_or(|s| s <= at_most_s), "{time:#}");
        let Some(active_s) = time["active_s"].as_f64() else { continue };
        let idle_s = part(database, "idle_s") + part(database, "unaccounted_s");
        let busy_s = sum(database) - idle_s;
        assert!((busy_s - active_s).abs() <= 1e-6 * (1.0 + active_s), "{time:#}");
        ledger_adds_up(database, active_s);
        assert!(part(database, "throttled_s") <= part(database, "runnable_s") + 1e-9, "{time:#}");
        // None where there were too few samples.
        let faults_s = time["minor_faults_s"].as_f64();
        assert!(faults_s.is_none_or(|s| s <= part(database, "on_cpu_s") + 1e-9), "{time:#}");
    }
}

/// Every active second of threads that serve requests is in the ledger once, and nothing else is active time.
fn ledger_adds_up(database: &Value, active_s: f64) {
    let serving = &database["ledger"]["serving"];
    let seconds = |of: &Value, name: &str| of[name].as_f64().unwrap_or_else(|| panic!("{of:#}"));
    let entries = serving["entries"].as_array().unwrap().iter();
    let of = |entry| seconds(entry, "own_s") + seconds(entry, "behind_s");
    let all_s = entries.map(of).sum::<f64>() + seconds(serving, "remains_s");
    assert!((all_s - active_s).abs() <= 1e-6 * (1.0 + active_s), "{:#}", database["ledger"]);
}

/// The taxes of one database are parts of one whole: its two totals are the sums of its findings' taxes,
/// and never more than everything together.
fn taxes_add_up(database: &Value) {
    let share = |of: &Value, bound: &str| of[bound].as_f64().unwrap_or(0.0);
    let totals = [("platform", &database["tax"]), ("database", &database["database_tax"])];
    for (scope, total) in totals {
        let findings = database["findings"].as_array().unwrap().iter();
        let of_scope = findings.filter(|finding| finding["scope"] == scope);
        let sum: f64 = of_scope.map(|finding| share(&finding["tax"], "share")).sum();
        assert!((sum - share(total, "share")).abs() < 1e-6, "{scope}: {database:#}");
    }
    let [platform, own] = totals.map(|(_, total)| total);
    for (bound, left) in [("share", "share"), ("high", "low"), ("low", "high")] {
        assert!(share(platform, bound) + share(own, left) <= 1.0 + 1e-9, "{database:#}");
    }
}

fn each_number(path: &str, value: &Value, look: &mut impl FnMut(&str, f64)) {
    match value {
        Value::Number(number) => look(path, number.as_f64().unwrap()),
        Value::Array(all) => all.iter().for_each(|one| each_number(path, one, look)),
        Value::Object(all) => {
            all.iter().for_each(|(name, one)| each_number(&format!("{path}/{name}"), one, look));
        }
        _ => {}
    }
}
