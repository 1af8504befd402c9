//! `cpu-weight`: the database first where CPUs are short. How much less its neighbours may have is for
//! their owners to say: it is handed over. Sources: systemd.resource-control(5), `CPUWeight=`; kernel.org,
//! admin-guide/cgroup-v2, `cpu.weight`; kubernetes.io, CPU requests.

use crate::case::Case;
use crate::remedy::{Draft, Remedy, file_name, told};
use crate::systemd;
use untax_core::Database;
use untax_core::plan::Task;

pub const REMEDY: Remedy = Remedy {
    id: "cpu-weight",
    summary: "a larger share of the CPUs than neighbours have, where they are short",
    answers: &["cpu-weight"],
    plan,
};

fn plan(case: &Case) -> Draft {
    let tasks = case.findings.iter().filter_map(|(database, finding)| {
        let database = (*database)?;
        let (how, file) = how(database);
        Some(Task {
            remedy: REMEDY.id.to_owned(),
            summary: format!("{}: {}; {how}", told(database), finding.fix),
            databases: vec![database.id.clone()],
            file,
        })
    });
    Draft { tasks: tasks.collect(), ..Draft::default() }
}

/// A weight is worth something among siblings alone: of a unit, among those of its slice.
fn how(database: &Database) -> (String, Option<(String, String)>) {
    if database.pod.is_some() {
        return ("a CPU request as large as what it uses is its weight".to_owned(), None);
    }
    let group = database.cgroup.value().and_then(|cgroup| cgroup.paths.values().next());
    match group.and_then(|group| systemd::unit(group)) {
        Some((unit, section)) => {
            let name = file_name(database, "cpu-weight.conf");
            let text = format!(
                "# Made by untax: systemctl edit {unit}. Twice what every unit has, 100: raise\n\
                 # it until untax check finds no cpu-contended. It counts among units of one slice.\n\
                 [{section}]\nCPUWeight=200\n"
            );
            (format!("or raise its own weight: {name}"), Some((name, text)))
        }
        None => ("or raise cpu.weight of its group".to_owned(), None),
    }
}
