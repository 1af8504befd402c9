//! `untax fleet --hosts` through a real sshd.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test looks at the machine by other ways than the code that it tests"
)]

mod support;

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use support::Ran;
use support::sshd::Sshd;
use untax_scenes::{Pgbench, Postgres, Runtime};

const LOAD: Pgbench =
    Pgbench { clients: 2, seconds: 300, writes: true, without_hot_rows: false, reconnect: false };

/// The built program, without what a debugger needs: that would be copied, too.
fn program(folder: &Path) -> PathBuf {
    let program = folder.join("untax");
    let mut strip = Command::new("strip");
    assert!(
        strip.arg("-o").arg(&program).arg(env!("CARGO_BIN_EXE_untax")).status().unwrap().success()
    );
    program
}

/// The reasons of silent hosts, by their names.
fn silent(told: &Value) -> Vec<(&str, &str)> {
    let all = told["silent"].as_array().unwrap().iter();
    all.map(|of| (of["node"].as_str().unwrap(), of["why"].as_str().unwrap())).collect()
}

#[test]
fn hosts_are_asked_over_ssh_and_a_copy_is_gone_afterwards() {
    support::real(|| {
        let folder = tempfile::tempdir().unwrap();
        let program = program(folder.path());
        let sshd = Sshd::start(folder.path())?;
        let postgres = Postgres::start(Runtime::Host, &[("shared_buffers", "32MB")])?;
        postgres.pgbench_fill(1, 100)?;
        let _load = postgres.pgbench(&LOAD)?;
        let list = folder.path().join("hosts");
        let fleet = |hosts: &str, words: &[&str]| {
            std::fs::write(&list, hosts).unwrap();
            let mut command = Command::new(&program);
            command.args(["fleet", "--json", "--window", "1s", "--hosts"]).arg(&list);
            command.arg("--ssh-config").arg(sshd.configuration()).args(words);
            Ran::from(&command.output().unwrap())
        };
        let ran = fleet("own # by its own untax\nuser\nstranger\nunknown\ngone\n", &[]);
        assert_eq!(ran.code, 1, "some are silent: {}{}", ran.stderr, sshd.log());
        let told = ran.json();
        assert_eq!((&told["nodes_total"], &told["range_s"]), (&json!(5), &json!(1.0)));
        assert!(told["databases"].as_array().unwrap().iter().all(|of| of["node"] == "own"));
        assert_eq!(silent(&told).len(), 4, "{told:#}");
        for ((node, why), (silent, words)) in silent(&told).into_iter().zip([
            ("user", "--copy"),
            ("stranger", "BatchMode"),
            ("unknown", "known_hosts"),
            ("gone", "is not reached"),
        ]) {
            assert!(node == silent && why.contains(words), "{node}: {why}");
        }
        let told = fleet("own\nuser\n", &["--copy"]).json();
        assert_eq!(silent(&told), [], "{}", sshd.log());
        for node in ["own", "user"] {
            let mut own =
                told["databases"].as_array().unwrap().iter().filter(|of| of["node"] == node);
            let active = own.find_map(|of| {
                of["active_s_per_s"].as_f64().filter(|_| of["engine"] == "postgres")
            });
            assert!(active.is_some_and(|active| active > 0.0), "{node}: {told:#}");
        }
        assert_eq!(
            told["duplicate_machine_ids"][0]["nodes"],
            json!(["own", "user"]),
            "one machine"
        );
        assert_eq!(sshd.temporary_files(), Vec::<String>::new(), "what was copied is gone");
        let none = fleet("gone\n", &[]);
        assert!(
            none.code == 2 && none.stderr.contains("none of the hosts answers"),
            "{}",
            none.stderr
        );
        let bad = fleet("own\n-oProxyCommand=x\n", &[]);
        assert!(bad.code == 3 && bad.stderr.contains("line 2"), "{}", bad.stderr);
        Ok(())
    });
}
