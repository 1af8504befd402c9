//! Whose configuration file a plan may edit.

#![expect(clippy::unwrap_used, reason = "a test's helpers panic as the test does")]

mod support;

use support::{check, host, postgres, snapshot};
use untax_core::Reading::{Absent, Present};
use untax_core::database::{Container, Settings};
use untax_core::plan::Target;
use untax_core::{Bytes, Database};
use untax_remedies::Wish;

const FILE: &str = "/etc/postgresql/15/main/postgresql.conf";

/// Whether the file is edited for this database.
fn edits(database: &Database) -> bool {
    let host = host("debian", "12", Absent("not looked for".to_owned()), "");
    let snapshot = snapshot(host, vec![database.clone()]);
    let check = check(&snapshot, "small-pages", "hugepage-pool");
    let wish = Wish { configure: true, ..Wish::default() };
    let plan = untax_remedies::plan("a-plan".to_owned(), &check, &snapshot, &wish).unwrap();
    let is_it = |target: &Target| matches!(target, Target::Block { file } if file == FILE);
    plan.steps.iter().any(|step| is_it(&step.target))
}

#[test]
fn what_a_container_calls_its_file_is_left_alone() {
    let mut database = postgres(Bytes::from_mib(512));
    database.settings = Present(Settings {
        source: "socket".to_owned(),
        instead_of: String::new(),
        values: [("config_file".to_owned(), FILE.to_owned())].into(),
    });
    assert!(edits(&database));
    let container = Container { id: "c".to_owned(), runtime: "lxc".to_owned() };
    assert!(!edits(&Database { container: Some(container), ..database.clone() }));
    assert!(!edits(&Database { namespace_pid: Some(1), ..database }));
}
