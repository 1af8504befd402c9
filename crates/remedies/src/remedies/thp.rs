//! `thp`: transparent huge pages as the engines of the host want them, now and after a boot.

use crate::case::Case;
use crate::remedy::{Draft, Remedy};
use untax_core::Database;
use untax_core::host::{INHERIT, Thp, ThpSetter};
use untax_core::plan::{Effect, Step, Target, Task, Warning};

pub const REMEDY: Remedy = Remedy {
    id: "thp",
    summary: "the mode of transparent huge pages, now and after a boot",
    answers: &["thp"],
    plan,
};

const DIRECTORY: &str = "/sys/kernel/mm/transparent_hugepage";

/// Read at every boot by systemd-tmpfiles.
const DROP_IN: &str = "/etc/tmpfiles.d/untax-thp.conf";

/// The mode that an engine wants; sources: the rule `thp-mode`.
pub fn wanted(database: &Database) -> Option<&str> {
    database.thp_wish().into_value().map(|wish| wish.mode.as_str())
}

/// A file of the kernel, what it says and what it should.
struct Setting {
    /// Its name in the plan.
    id: String,
    target: Target,
    is: String,
    wanted: String,
}

fn plan(case: &Case) -> Draft {
    let Some(thp) = case.snapshot.host.thp.value() else { return Draft::default() };
    let mut wishes: Vec<&str> = case.concerned().filter_map(wanted).collect();
    wishes.sort_unstable();
    wishes.dedup();
    // `never` also suits who is content with madvise.
    if wishes == ["madvise", "never"] {
        wishes = vec!["never"];
    }
    let [mode] = wishes[..] else { return conflict(&wishes) };
    let settings = settings(thp, mode);
    let changed = settings.iter().filter(|setting| setting.is != setting.wanted);
    let mut steps: Vec<Step> = changed.map(|setting| step(case, setting)).collect();
    let setter = case.snapshot.host.thp_set_by.value();
    if let Some(setter) = setter.filter(|setter| setter.mode != mode) {
        // What the drop-in sets, the profile sets again right after it.
        return Draft { steps, tasks: vec![profile(case, setter, &settings)], ..Draft::default() };
    }
    steps.push(boot(case, &settings, mode));
    Draft { steps, ..Draft::default() }
}

/// All that makes up a mode. A size with a mode of its own does not follow `enabled`; what MongoDB 8 wants
/// beside `always` is in mongodb.com, tcmalloc performance.
fn settings(thp: &Thp, mode: &str) -> Vec<Setting> {
    let word = |id: &str, file: String, is: &str, wanted: &str| Setting {
        id: id.to_owned(),
        target: Target::Word { file },
        is: is.to_owned(),
        wanted: wanted.to_owned(),
    };
    let mut settings = vec![word("thp", format!("{DIRECTORY}/enabled"), &thp.enabled, mode)];
    let sizes = thp.sizes.value().into_iter().flatten();
    let deviates = sizes.filter(|size| match mode {
        "always" => thp.pmd_size() == Some(*size) && thp.mode() != mode && size.enabled != INHERIT,
        _ => size.enabled == "always",
    });
    settings.extend(deviates.map(|size| {
        let id = format!("thp-{}kB", size.size_bytes.0 >> 10);
        word(&id, size.file(), &size.enabled, INHERIT)
    }));
    if mode == "always" {
        let defrag = thp.defrag.value();
        let file = || format!("{DIRECTORY}/defrag");
        settings.extend(defrag.map(|is| word("thp-defrag", file(), is, "defer+madvise")));
        let none = thp.khugepaged_max_ptes_none.value();
        settings.extend(none.map(|is| Setting {
            id: "thp-max-ptes-none".to_owned(),
            target: Target::Value { file: format!("{DIRECTORY}/khugepaged/max_ptes_none") },
            is: is.to_string(),
            wanted: "0".to_owned(),
        }));
    }
    settings
}

fn step(case: &Case, setting: &Setting) -> Step {
    let Setting { id, target, is, wanted } = setting;
    let what = match id.as_str() {
        "thp" => "transparent huge pages".to_owned(),
        other => format!("transparent huge pages, {}", other.trim_start_matches("thp-")),
    };
    Step {
        id: id.clone(),
        remedy: REMEDY.id.to_owned(),
        summary: format!("{what}: {is} -> {wanted}"),
        databases: case.databases(),
        target: target.clone(),
        from: Some(is.clone()),
        to: Some(wanted.clone()),
        refresh: Vec::new(),
        effect: Effect::Restart,
    }
}

fn boot(case: &Case, settings: &[Setting], mode: &str) -> Step {
    let line =
        |setting: &Setting| Some(format!("w {} - - - - {}\n", file_of(setting)?, setting.wanted));
    let lines: String = settings.iter().filter_map(line).collect();
    Step {
        id: "thp-boot".to_owned(),
        remedy: REMEDY.id.to_owned(),
        summary: format!("{DROP_IN}: {mode} after every boot"),
        databases: case.databases(),
        target: Target::File { file: DROP_IN.to_owned() },
        from: None,
        to: Some(format!("# Made by untax.\n{lines}")),
        refresh: Vec::new(),
        effect: Effect::Reboot,
    }
}

/// A profile that includes the active one and sets this instead. A person makes it the active one: a
/// site's or a cluster's own tools chose the one before, and may choose again.
fn profile(case: &Case, setter: &ThpSetter, settings: &[Setting]) -> Task {
    let ThpSetter { program, active, file, .. } = setter;
    let line = |setting: &Setting| Some(format!("{}={}\n", file_of(setting)?, setting.wanted));
    let lines: String = settings.iter().filter_map(line).collect();
    let profile = format!("[main]\ninclude={active}\n[sysfs]\n{lines}");
    let (name, text, how) = if program == "tuned" {
        let how = format!(
            "put {PROFILE}.conf to /etc/tuned/{PROFILE}/tuned.conf, then tuned-adm profile {PROFILE}"
        );
        (format!("{PROFILE}.conf"), format!("# Made by untax.\n{profile}"), how)
    } else {
        let indented = profile.lines().map(|line| format!("      {line}\n")).collect::<String>();
        let text = format!(
            "# Made by untax.\napiVersion: tuned.openshift.io/v1\nkind: Tuned\nmetadata:\n  \
             name: {PROFILE}\n  namespace: openshift-cluster-node-tuning-operator\nspec:\n  \
             profile:\n  - name: {PROFILE}\n    data: |\n{indented}  recommend:\n  - match:\n    \
             - label: {PROFILE}\n    priority: 10\n    profile: {PROFILE}\n"
        );
        let how = format!("oc create -f {PROFILE}.yaml, then oc label node NODE {PROFILE}=");
        (format!("{PROFILE}.yaml"), text, how)
    };
    Task {
        remedy: REMEDY.id.to_owned(),
        summary: format!("{program} sets THP {} again at every boot ({file}): {how}", setter.mode),
        databases: case.databases(),
        file: Some((name, text)),
    }
}

/// The name of the profile.
const PROFILE: &str = "untax-thp";

fn file_of(setting: &Setting) -> Option<&str> {
    match &setting.target {
        Target::Word { file } | Target::Value { file } => Some(file),
        _ => None,
    }
}

fn conflict(wishes: &[&str]) -> Draft {
    if wishes.is_empty() {
        return Draft::default();
    }
    let text = format!(
        "the databases of this host want transparent huge pages {}: nothing suits all of them; \
         move some to another host",
        wishes.join(" and ")
    );
    let warning = Warning { id: "thp-conflict".to_owned(), refuses: false, text };
    Draft { warnings: vec![warning], ..Draft::default() }
}
