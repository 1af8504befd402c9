//! What `untax agent last` shows of a check.

use anyhow::bail;
use serde_json::Value;
use untax_report::format::clean;

/// Keeps the databases of one pod, `NAMESPACE/NAME`.
pub fn keep_pod(check: &mut Value, pod: &str) -> anyhow::Result<()> {
    let Some(databases) = check["databases"].as_array_mut() else {
        bail!("the agent's answer is no check")
    };
    let prefix = format!("{pod}/");
    let is_its =
        |database: &Value| database["name"].as_str().is_some_and(|name| name.starts_with(&prefix));
    let all: Vec<&str> =
        databases.iter().filter_map(|database| database["name"].as_str()).collect();
    if !databases.iter().any(is_its) {
        let all = if all.is_empty() { "none".to_owned() } else { all.join(", ") };
        bail!("the agent of this node saw no database of {pod} in its last window; it saw {all}");
    }
    databases.retain(is_its);
    Ok(())
}

/// The commands whose trials overlap the window, for a person; `None` where there is none.
pub fn beside_trials(check: &Value) -> Option<String> {
    let all = check["beside_trials"].as_array()?.iter().filter_map(Value::as_str);
    let all: Vec<String> = all.map(|command| format!("untax {}", clean(command))).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// A line of each database: seconds that the platform takes each second, their share, the name, the first of the
/// platform's causes, the node. Tabs stand between them.
pub fn top(check: &Value) -> String {
    let databases = check["databases"].as_array().into_iter().flatten();
    databases.map(|database| line(database, check)).collect()
}

fn line(database: &Value, check: &Value) -> String {
    let share = database["tax"]["share"].as_f64();
    let active_s = database["time"]["active_s"].as_f64();
    let window_s = check["window_s"].as_f64().filter(|window_s| *window_s > 0.0);
    let lost = share
        .zip(active_s)
        .zip(window_s)
        .map(|((share, active_s), window_s)| share * active_s / window_s);
    let number = |value: Option<f64>| {
        value.map_or_else(|| "unmeasured".to_owned(), |value| format!("{value:.3}"))
    };
    let findings = database["findings"].as_array().into_iter().flatten();
    let mut causes =
        findings.filter(|finding| finding["scope"] == "platform" && finding["tax"].is_object());
    let cause = causes.next().and_then(|finding| finding["rule"].as_str()).unwrap_or("-");
    let name = database["name"].as_str().unwrap_or("unknown");
    let node = check["node"].as_str().unwrap_or("unknown");
    let words = [&number(lost), &number(share), name, cause, node];
    words.map(|word| clean(word).into_owned()).join("\t") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check() -> Value {
        json!({"node": "n\t1", "window_s": 10.0, "databases": [
            {"name": "db/pg-0/postgres", "tax": {"share": 0.5}, "time": {"active_s": 20.0}, "findings": [
                {"rule": "lock-contended", "scope": "database", "tax": {"share": 0.6}},
                {"rule": "oom-near", "scope": "platform", "tax": null},
                {"rule": "disk-slow", "scope": "platform", "tax": {"share": 0.4}}]},
            {"name": "db/pg-01/postgres", "tax": null, "time": {"active_s": null}, "findings": []}]})
    }

    #[test]
    fn the_databases_of_a_pod_are_kept_and_another_pod_is_named() {
        let mut one = check();
        keep_pod(&mut one, "db/pg-0").unwrap();
        assert_eq!(one["databases"].as_array().unwrap().len(), 1);
        let error = keep_pod(&mut check(), "db/other").unwrap_err().to_string();
        assert!(error.contains("db/other") && error.contains("db/pg-01/postgres"), "{error}");
    }

    #[test]
    fn trials_beside_the_window_are_named() {
        assert_eq!(beside_trials(&check()), None);
        let beside = json!({"beside_trials": ["bench", "verify"]});
        assert_eq!(beside_trials(&beside).unwrap(), "untax bench, untax verify");
    }

    #[test]
    fn a_line_says_what_is_lost_and_what_is_not_measured_is_no_zero() {
        assert_eq!(
            top(&check()),
            "1.000\t0.500\tdb/pg-0/postgres\tdisk-slow\tn\\t1\n\
             unmeasured\tunmeasured\tdb/pg-01/postgres\t-\tn\\t1\n"
        );
    }
}
