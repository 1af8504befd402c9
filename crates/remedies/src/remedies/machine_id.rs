//! `machine-id`: an identity of its own for each container. It is made when the container is, from an
//! image that others own: it is handed over. Source: machine-id(5).

use crate::case::Case;
use crate::remedy::{Draft, Remedy, told};
use untax_core::Database;
use untax_core::plan::Task;

pub const REMEDY: Remedy = Remedy {
    id: "machine-id",
    summary: "an /etc/machine-id of its own for each container",
    answers: &["machine-id"],
    plan,
};

const COMMANDS: &str = "\
# Made by untax. In the image, once: an empty file, not a missing one.
truncate -s 0 /etc/machine-id
# In a container that was made before, or a clone, as root: then restart it.
truncate -s 0 /etc/machine-id && systemd-machine-id-setup
";

fn plan(case: &Case) -> Draft {
    let task = |database: &Database| Task {
        remedy: REMEDY.id.to_owned(),
        summary: format!("{}: empty /etc/machine-id in its image", told(database)),
        databases: vec![database.id.clone()],
        file: Some(("machine-id.sh".to_owned(), COMMANDS.to_owned())),
    };
    Draft { tasks: case.concerned().map(task).collect(), ..Draft::default() }
}
