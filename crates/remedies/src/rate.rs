//! What a workload achieved, from what it printed.

/// A rate, and what it counts.
#[derive(Debug, Clone, PartialEq)]
pub struct Rate {
    /// In a second; more is better.
    pub per_s: f64,
    /// What is counted, such as `transactions per second`.
    pub measure: &'static str,
}

/// Reads the rate from the output of pgbench, sysbench or redis-benchmark, or from a last line
/// that is a number. Anything else is measured by how often it could run in a second.
pub fn rate(output: &str, took_s: f64) -> Option<Rate> {
    let found = pgbench(output)
        .or_else(|| sysbench(output))
        .or_else(|| redis(output))
        .or_else(|| number(output))
        .unwrap_or(Rate { per_s: 1.0 / took_s, measure: "runs per second" });
    (found.per_s.is_finite() && found.per_s > 0.0).then_some(found)
}

/// `tps = 1234.5 (without initial connection time)`; there is no such line when not one transaction
/// was made, as when connecting took all the time.
fn pgbench(output: &str) -> Option<Rate> {
    const NOTHING: &str = "number of transactions actually processed: 0";
    let number = |line: &str| line.split_ascii_whitespace().next()?.parse().ok();
    let nothing = output.lines().any(|line| line.trim() == NOTHING).then_some(0.0);
    let line = output.lines().rev().find_map(|line| line.trim().strip_prefix("tps = "));
    let per_s = line.and_then(number).or(nothing)?;
    Some(Rate { per_s, measure: "transactions per second" })
}

/// `transactions:  4321 (432.10 per sec.)`.
fn sysbench(output: &str) -> Option<Rate> {
    let line = output.lines().find_map(|line| line.trim().strip_prefix("transactions:"))?;
    let (_, rest) = line.split_once('(')?;
    let per_s = rest.split_ascii_whitespace().next()?.parse().ok()?;
    Some(Rate { per_s, measure: "transactions per second" })
}

/// `GET: 12345.67 requests per second`, a line for each command: their geometric mean, so that no
/// command counts more than another.
fn redis(output: &str) -> Option<Rate> {
    const END: &str = "requests per second";
    // With -q every line is rewritten in place until it is final.
    let lines = output.split(['\n', '\r']).filter_map(|line| {
        let before = line.split_once(END)?.0;
        before.split_ascii_whitespace().next_back()?.parse::<f64>().ok()
    });
    let logs: Vec<f64> = lines.filter(|rate| *rate > 0.0).map(f64::ln).collect();
    if logs.is_empty() {
        return None;
    }
    let per_s = (logs.iter().sum::<f64>() / logs.len() as f64).exp();
    Some(Rate { per_s, measure: END })
}

fn number(output: &str) -> Option<Rate> {
    let last = output.lines().rev().find(|line| !line.trim().is_empty())?;
    Some(Rate { per_s: last.trim().parse().ok()?, measure: "as the workload printed" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_as_the_programs_print_them() {
        let per_s = |output: &str| rate(output, 2.0).map(|rate| rate.per_s);
        let pgbench = "latency average = 0.1 ms\ntps = 1234.5 (without initial connection time)\n";
        assert_eq!(per_s(pgbench), Some(1234.5));
        assert_eq!(per_s("number of transactions actually processed: 0\nlatency"), None);
        let sysbench =
            "    transactions:       4321   (432.10 per sec.)\n    queries: 9 (1 per sec.)";
        assert_eq!(per_s(sysbench), Some(432.1));
        let redis =
            "SET: 100.00 requests per second, p50=0.1 msec\nGET: 400.00 requests per second";
        assert!((per_s(redis).unwrap() - 200.0).abs() < 1e-9);
        assert_eq!(per_s("done\n77.5\n"), Some(77.5));
        assert_eq!(per_s("done\n"), Some(0.5));
        assert_eq!(per_s("0\n"), None);
    }
}
