//! The plugin of kubectl, beside a kubectl that answers from files: which pods it asks, and what it says where
//! there is none.

#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// Answers questions for pods, and shows how it is called for others.
const KUBECTL: &str = r#"#!/bin/sh
case "$*" in
"get pod none"*) echo "pods none not found" >&2; exit 1 ;;
"get pod waits"*) printf 'db ' ;;
"get pod"*lonely*) printf 'db node-9' ;;
"get pod pg-0"*) printf 'db node-1' ;;
"get pods"*spec.nodeName=node-1*) printf 'untax agent-1\n' ;;
"get pods"*spec.nodeName=*) ;;
"get pods"*) printf 'untax agent-1\nuntax agent-2\nuntax agent-3\n' ;;
"exec"*agent-1*--top) printf '0.100\t0.1\ta\tx\tn\n' ;;
"exec"*agent-2*--top) printf '0.300\t0.3\tb\tx\tn\n' ;;
"exec"*agent-3*) exit 1 ;;
*) echo "$*" ;;
esac
"#;

fn plugin(folder: &Path, words: &[&str]) -> Output {
    let kubectl = folder.join("kubectl");
    fs::write(&kubectl, KUBECTL).unwrap();
    fs::set_permissions(&kubectl, fs::Permissions::from_mode(0o755)).unwrap();
    let plugin = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/kubectl/kubectl-untax");
    let place = format!("{}:/usr/bin:/bin", folder.display());
    Command::new(plugin).args(words).env("PATH", place).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn a_pod_is_checked_by_the_agent_of_its_node() {
    let folder = tempfile::tempdir().unwrap();
    let said = |words: &[&str]| text(&plugin(folder.path(), words).stdout);
    let asked = "exec --namespace untax agent-1 --container agent -- /usr/bin/untax agent last --pod db/pg-0";
    assert_eq!(said(&["check", "pg-0"]), format!("{asked} --text\n"));
    assert_eq!(said(&["check", "-n", "db", "pod/pg-0", "--json"]), format!("{asked}\n"));
}

#[test]
fn databases_of_all_agents_are_in_the_order_of_what_they_lose() {
    let folder = tempfile::tempdir().unwrap();
    let output = plugin(folder.path(), &["top"]);
    let lines = text(&output.stdout);
    let names: Vec<&str> = lines.lines().filter_map(|line| line.split('\t').nth(2)).collect();
    assert_eq!(names, ["DATABASE", "b", "a"]);
    assert!(text(&output.stderr).contains("untax/agent-3 says nothing"));
}

#[test]
fn what_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    for (words, code, why) in [
        (&["check", "none"][..], 2, "not found"),
        (&["check", "waits"], 2, "db/waits runs on no node yet"),
        (&["check", "lonely"], 2, "no agent runs on node-9"),
        (&["check"], 3, "kubectl untax check POD"),
        (&["check", "a", "b"], 3, "kubectl untax top"),
        (&["check", "--all"], 3, "kubectl untax top"),
        (&["top", "x"], 3, "kubectl untax top"),
        (&[], 3, "kubectl untax top"),
    ] {
        let output = plugin(folder.path(), words);
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(code) && said.contains(why), "{words:?}: {said}");
    }
}
