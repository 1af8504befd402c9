//! `soft-affinity`: databases of one host on CPUs of their own, which they leave while others idle. Somebody
//! has to run that, and it ends with that: it is handed over. Source: docs/design/soft-affinity.md.

use crate::case::Case;
use crate::remedy::{Draft, Remedy};
use untax_core::Database;
use untax_core::plan::Task;

pub const REMEDY: Remedy = Remedy {
    id: "soft-affinity",
    summary: "CPUs that each of several databases prefers, and leaves while others idle",
    answers: &["numa-bind", "cpu-weight"],
    plan,
};

fn plan(case: &Case) -> Draft {
    let concerned: Vec<&Database> = case.concerned().collect();
    let task = task(&case.snapshot.databases, &concerned);
    Draft { tasks: task.into_iter().collect(), ..Draft::default() }
}

/// Of several databases, each of which may take the others' CPUs. The kubelet gives CPUs to pods itself.
fn task(all: &[Database], concerned: &[&Database]) -> Option<Task> {
    let is_of_host = |database: &&Database| database.pod.is_none();
    let concerned: Vec<&&Database> = concerned.iter().filter(|d| is_of_host(d)).collect();
    if concerned.is_empty() || all.iter().filter(is_of_host).count() < 2 {
        return None;
    }
    Some(Task {
        remedy: REMEDY.id.to_owned(),
        summary: "several databases share the CPUs: untax steer --auto --propose says which CPUs each \
                  would prefer, untax steer --auto keeps them there while it runs and lets them use idle \
                  ones, and untax bench affinity measures what that is worth on this machine"
            .to_owned(),
        databases: concerned.into_iter().map(|database| database.id.clone()).collect(),
        file: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_core::database::Pod;

    #[test]
    fn several_databases_of_a_host_may_be_steered_and_pods_may_not() {
        let database = |pid| Database::unknown("redis", pid, "not read");
        let (one, other) = (database(7), database(8));
        let all = [one.clone(), other.clone()];
        let handed = task(&all, &[&one]).unwrap();
        assert_eq!(handed.databases, ["redis:7"]);
        assert!(handed.summary.contains("untax steer --auto"), "{}", handed.summary);
        assert_eq!(task(&all[..1], &[&one]), None, "one alone has all CPUs");
        let pod = Pod { uid: "u".to_owned(), qos: "guaranteed".to_owned() };
        let in_pod = Database { pod: Some(pod), ..other };
        assert_eq!(task(&[one.clone(), in_pod.clone()], &[&one]), None);
        assert_eq!(task(&all, &[&in_pod]), None);
    }
}
