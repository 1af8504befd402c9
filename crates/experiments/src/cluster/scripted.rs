//! A kubectl for tests: it answers as a cluster of one node with a runtime class would, writes down what it
//! was asked, and for a program in a pod prints what that would.

use crate::network::peers::Exchanged;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use untax_scenes::Cluster;

const SCRIPT: &str = r#"#!/bin/sh
echo "$*" >>"$0.log"
case "$*" in
*apply*) cat >/dev/null ;;
*"get nodes"*) echo '{"items": [{"metadata": {"name": "a"}, "spec": {}, "status": {
    "conditions": [{"type": "Ready", "status": "True"}],
    "nodeInfo": {"kernelVersion": "6.18", "containerRuntimeVersion": "containerd://1.7"}}}]}' ;;
*"get runtimeclasses"*) echo '{"items": [{"metadata": {"name": "gvisor"}}, {"metadata": {"name": "kata"}}]}' ;;
*"get pod"*) echo '{"status": {"hostIP": "192.0.2.1", "podIP": "198.51.100.7"}}' ;;
*"get service"*) echo '{"spec": {"clusterIP": "203.0.113.5", "ports": [{"port": 27101, "nodePort": 30001}]}}' ;;
*pod/server-kata*) echo "timed out waiting for the condition" >&2; exit 1 ;;
*__network-client*) cat "$0.exchanged" ;;
*__platform-work*) echo '{"units": 100.0, "seconds": 0.5, "beside_ns": [["futex-switch", 900.0]]}' ;;
esac
"#;

/// The cluster that the script in a directory makes.
pub(crate) fn cluster(folder: &Path) -> Cluster {
    let path = folder.join("kubectl");
    std::fs::write(&path, SCRIPT).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let exchanged = Exchanged {
        transactions: 1000,
        elapsed_s: 0.5,
        latency_us: Some([20.0, 30.0, 40.0, 50.0]),
        all_transactions: 1200,
        cpu_s: 0.1,
        lost: 0,
        sent: None,
    };
    let exchanged = serde_json::to_string(&exchanged).unwrap();
    std::fs::write(folder.join("kubectl.exchanged"), exchanged).unwrap();
    Cluster::make(vec![path.to_string_lossy().into_owned()]).unwrap()
}

/// What it was asked.
#[expect(clippy::disallowed_methods, reason = "reads what the test itself wrote, not the host")]
pub(crate) fn log(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("kubectl.log")).unwrap()
}
