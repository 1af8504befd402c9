//! `runtime-class`: a runtime that runs the database on the node's own kernel.

use crate::case::Case;
use crate::remedy::{Draft, Remedy, told};
use untax_core::plan::Task;

pub const REMEDY: Remedy = Remedy {
    id: "runtime-class",
    summary: "the runtime of a database's container",
    answers: &["runtime-class"],
    plan,
};

/// The name in the pod and the handler in containerd's configuration, where `runc` is the default.
const CLASS: &str = "\
# Made by untax: a runtime class for databases that are trusted with the node's kernel.
#
# A sandbox (gVisor, Kata) answers every system call, page fault and packet a second time; what it
# protects from is code that is not trusted. A database from a known image is not that: give it
# this class in its pod template, with seccomp and without privileges, and leave the sandbox to
# the pods that need it.
#
#   spec:
#     runtimeClassName: database
#     securityContext:
#       runAsNonRoot: true
#       seccompProfile: {type: RuntimeDefault}
#
# Where the sandbox must stay: gVisor with the KVM platform and a directory of the node for the
# data instead of its overlay; Kata with huge pages behind the guest and a block device.
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata:
  name: database
handler: runc
";

fn plan(case: &Case) -> Draft {
    // Inside a sandbox nothing tells whether Kubernetes is around it.
    let task = |database: &untax_core::Database| Task {
        remedy: REMEDY.id.to_owned(),
        summary: format!(
            "{}: runtimeClassName: database in its pod; without Kubernetes, --runtime runc",
            told(database)
        ),
        databases: vec![database.id.clone()],
        file: Some(("kubernetes-runtime-class.yaml".to_owned(), CLASS.to_owned())),
    };
    Draft { tasks: case.concerned().map(task).collect(), ..Draft::default() }
}
