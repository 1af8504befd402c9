//! `untax bench network` on this machine's kernel: what costs more is found, what cannot run says why.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test looks at the machine by other ways than the code that it tests"
)]

mod support;

use serde_json::Value;
use std::process::Command;
use support::{Untax, real};
use untax_lab::LabError;
use untax_scenes::find_program;

/// Three paths of which one passes a thousand rules for each packet.
const ARMS: &str = "routed,policies-1000,ebpf-routed";

fn bench(untax: &Untax, more: &[&str]) -> Value {
    let mut words = vec!["bench", "network", "--beside", "--json", "--arms", ARMS];
    words.extend(["--rules", "1000", "--services", "1", "--pin", "one-cpu"]);
    words.extend(more);
    untax.run(&words).json()
}

fn arm<'a>(cell: &'a Value, id: &str) -> &'a Value {
    let arms = cell["arms"].as_array().unwrap();
    arms.iter().find(|arm| arm["arm"] == id).unwrap()
}

#[test]
fn rules_for_each_packet_cost_and_redis_answers_over_every_path() {
    real(|| {
        find_program("iptables-nft-restore", "iptables").map_err(LabError::from)?;
        find_program("redis-benchmark", "redis-tools").map_err(LabError::from)?;
        let untax = Untax::new();
        let options =
            ["--workloads", "rr,crr,udp-rr,redis-get", "--blocks", "3", "--trial", "200ms"];
        let bench = bench(&untax, &options);
        assert_eq!(bench["schema"], "untax.bench.network/1");
        assert_eq!(bench["complete"], true, "{bench:#}");
        for cell in bench["cells"].as_array().unwrap() {
            for id in ["wire", "routed", "policies-1000", "ebpf-routed"] {
                let arm = arm(cell, id);
                assert!(arm["value"]["median"].as_f64().unwrap() > 0.0, "{cell:#}");
            }
            // A thousand comparisons a packet: whatever else runs here, no path without them is as slow.
            let ratio = &arm(cell, "policies-1000")["ratio"];
            assert!(ratio["factor"].as_f64().unwrap() < 0.8, "{}: {ratio:#}", cell["workload"]);
        }
        let rr = &bench["cells"][0];
        let extras = arm(rr, "wire")["extras"].as_array().unwrap();
        for id in ["rate", "latency-p99", "client-cpu", "server-cpu"] {
            assert!(extras.iter().any(|extra| extra["id"] == id), "{id}: {extras:#?}");
        }
        Ok(())
    });
}

#[test]
fn a_kernel_without_a_kind_of_link_says_so_in_one_line() {
    real(|| {
        let untax = Untax::new();
        let listed = untax.run(&["bench", "network", "--list", "--json"]).json();
        let arms = listed["arms"].as_array().unwrap();
        assert!(arms.len() > 20, "{arms:#?}");
        for why in arms.iter().filter_map(|arm| arm["cannot"].as_str()) {
            assert!(!why.contains('\n') && why.len() < 200, "{why}");
        }
        for id in ["wire", "loopback", "bridge", "routed", "ebpf-routed"] {
            let arm = arms.iter().find(|arm| arm["id"] == id).unwrap();
            assert_eq!(arm["cannot"], Value::Null, "{arm:#}");
        }
        Ok(())
    });
}

#[test]
fn nonsense_and_a_user_who_may_not_are_refused_with_the_next_action() {
    real(|| {
        let untax = Untax::new();
        let unknown = untax.run(&["bench", "network", "--arms", "carrier-pigeon"]);
        assert_eq!(unknown.code, 3, "{}", unknown.stderr);
        assert!(unknown.stderr.contains("there are wire, "), "{}", unknown.stderr);
        let none = untax.run(&["bench", "network", "--services", "0"]);
        assert_eq!(none.code, 3, "{}", none.stderr);
        let state = tempfile::tempdir().unwrap();
        std::os::unix::fs::chown(state.path(), Some(65534), Some(65534)).unwrap();
        let nobody = Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(env!("CARGO_BIN_EXE_untax"))
            .arg("--state-dir")
            .arg(state.path())
            .args(["bench", "network"])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&nobody.stderr);
        assert_eq!(nobody.status.code(), Some(2), "{said}");
        assert!(said.contains("needs root; run it with sudo"), "{said}");
        Ok(())
    });
}
