//! Pods in a cluster that a kubeconfig names, in a namespace that goes with everything in it.

use crate::SceneError;
use crate::program::words;
use crate::shell::{Shell, TICK};
use serde_json::Value;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Makes namespace `$1` with the program `$2…`, and says so, or why not.
const MAKE: &str = r#"
namespace=$1
shift
if said=$("$@" create namespace "$namespace" 2>&1); then echo made; else echo $said; fi"#;

/// Removes it, and waits for nothing: the cluster goes on by itself.
const REMOVE: &str = r#""$@" delete namespace "$namespace" --wait=false >/dev/null 2>&1"#;

/// A cluster makes the account of a namespace in well under a second.
const ACCOUNT_PATIENCE: Duration = Duration::from_secs(30);

/// A namespace of our own in a cluster; removed with this value, and when this program is killed.
pub struct Cluster {
    _guard: Shell,
    /// The words of kubectl before its subcommand.
    kubectl: Vec<String>,
    namespace: String,
}

/// A node that pods can run on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterNode {
    /// Its name.
    pub name: String,
    /// Its kernel.
    pub kernel: String,
    /// Its container runtime.
    pub runtime: String,
}

/// The words of kubectl, wherever it is in the PATH, for the kubeconfig that is given or that it finds by itself.
pub fn kubectl(kubeconfig: Option<&Path>) -> Vec<String> {
    let mut line = words(["kubectl"]);
    if let Some(path) = kubeconfig {
        line.extend(words(["--kubeconfig", &path.to_string_lossy()]));
    }
    line
}

impl Cluster {
    /// Makes the namespace with the words of [`kubectl`].
    pub fn make(kubectl: Vec<String>) -> Result<Self, SceneError> {
        let namespace = format!("untax-bench-{:08x}", fastrand::u32(..));
        let arguments = [std::slice::from_ref(&namespace), &kubectl[..]].concat();
        let guard = Shell::guard(MAKE, REMOVE, &arguments)?;
        if guard.first_line != "made" {
            let why = format!("the cluster makes no namespace: {}", guard.first_line);
            return Err(SceneError::Cluster { why });
        }
        let cluster = Self { _guard: guard, kubectl, namespace };
        cluster.wait_for_account()?;
        Ok(cluster)
    }

    /// Pods are refused until the cluster has made the account that they have by default.
    fn wait_for_account(&self) -> Result<(), SceneError> {
        let since = Instant::now();
        loop {
            match self.run(&["get", "serviceaccount", "default"], None) {
                Err(error) if since.elapsed() > ACCOUNT_PATIENCE => return Err(error),
                Err(_) => std::thread::sleep(TICK),
                Ok(_) => return Ok(()),
            }
        }
    }

    /// The namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The nodes that are ready and take pods.
    pub fn nodes(&self) -> Result<Vec<ClusterNode>, SceneError> {
        let all = self.json(&["get", "nodes", "--output", "json"])?;
        let nodes = all["items"].as_array().map_or(&[][..], Vec::as_slice);
        Ok(nodes.iter().filter(|node| takes_pods(node)).filter_map(node).collect())
    }

    /// The names of the runtime classes.
    pub fn runtime_classes(&self) -> Result<Vec<String>, SceneError> {
        let all = self.json(&["get", "runtimeclasses", "--output", "json"])?;
        let classes = all["items"].as_array().map_or(&[][..], Vec::as_slice);
        let name = |class: &Value| class["metadata"]["name"].as_str().map(str::to_owned);
        Ok(classes.iter().filter_map(name).collect())
    }

    /// Makes objects in the namespace.
    pub fn apply(&self, objects: &[Value]) -> Result<(), SceneError> {
        let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": objects});
        self.run(&["apply", "--filename", "-"], Some(&list.to_string())).map(drop)
    }

    /// An object of the namespace.
    pub fn get(&self, kind: &str, name: &str) -> Result<Value, SceneError> {
        self.json(&["get", kind, name, "--output", "json"])
    }

    /// Waits until a pod is ready. An error says what the cluster last warned of.
    pub fn wait_for(&self, pod: &str, seconds: u32) -> Result<(), SceneError> {
        let (name, timeout) = (format!("pod/{pod}"), format!("--timeout={seconds}s"));
        let waited = self.run(&["wait", "--for=condition=Ready", &name, &timeout], None);
        waited.map(drop).map_err(|error| match error {
            SceneError::Failed { program, status, output_end } => {
                let output_end = [output_end, self.warning(pod)].join("; ");
                SceneError::Failed { program, status, output_end }
            }
            other => other,
        })
    }

    fn warning(&self, pod: &str) -> String {
        let of = format!("involvedObject.name={pod},type=Warning");
        let last = "jsonpath={.items[-1:].message}";
        let order = "--sort-by=.lastTimestamp";
        let line = ["get", "events", "--field-selector", &of, order, "--output", last];
        match self.run(&line, None) {
            Ok(text) if text.trim().is_empty() => "no warning of it".to_owned(),
            Ok(text) => text.trim().to_owned(),
            Err(error) => error.to_string(),
        }
    }

    /// Runs a program in a container of a pod to its end, and gives what it printed.
    pub fn exec(&self, pod: &str, container: &str, line: &[String]) -> Result<String, SceneError> {
        let own = ["exec", pod, "--container", container, "--"];
        let line: Vec<&str> = own.into_iter().chain(line.iter().map(String::as_str)).collect();
        self.run(&line, None)
    }

    fn json(&self, line: &[&str]) -> Result<Value, SceneError> {
        let text = self.run(line, None)?;
        serde_json::from_str(&text).map_err(|_| SceneError::Cluster {
            why: format!("kubectl {} printed no JSON", line.join(" ")),
        })
    }

    fn run(&self, line: &[&str], input: Option<&str>) -> Result<String, SceneError> {
        let program =
            format!("kubectl {}", line.iter().take(2).copied().collect::<Vec<_>>().join(" "));
        let failed = |source| SceneError::Start { program: program.clone(), source };
        let [first, options @ ..] = &self.kubectl[..] else {
            return Err(SceneError::Cluster { why: "no kubectl".to_owned() });
        };
        let mut command = Command::new(first);
        command.args(options).args(["--namespace", &self.namespace]).args(line);
        let stdin = if input.is_some() { Stdio::piped() } else { Stdio::null() };
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        if let Some((mut pipe, text)) = child.stdin.take().zip(input) {
            // One that ended early says why on its standard error.
            match pipe.write_all(text.as_bytes()) {
                Err(error) if error.kind() != ErrorKind::BrokenPipe => return Err(failed(error)),
                _ => {}
            }
        }
        let output = child.wait_with_output().map_err(failed)?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let output_end = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(SceneError::Failed { program, status: output.status.to_string(), output_end })
    }
}

fn takes_pods(node: &Value) -> bool {
    let conditions = node["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    let is_ready = conditions.iter().any(|c| c["type"] == "Ready" && c["status"] == "True");
    let taints = node["spec"]["taints"].as_array().map_or(&[][..], Vec::as_slice);
    let repels = taints.iter().any(|taint| taint["effect"] != "PreferNoSchedule");
    is_ready && !repels && node["spec"]["unschedulable"] != true
}

fn node(node: &Value) -> Option<ClusterNode> {
    let info = &node["status"]["nodeInfo"];
    let text = |value: &Value| value.as_str().unwrap_or("unknown").to_owned();
    Some(ClusterNode {
        name: node["metadata"]["name"].as_str()?.to_owned(),
        kernel: text(&info["kernelVersion"]),
        runtime: text(&info["containerRuntimeVersion"]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::Account;
    use crate::scratch::Scratch;
    use std::os::unix::fs::PermissionsExt;

    const SCRIPT: &str = r#"#!/bin/sh
echo "$*" >>"$0.log"
case "$*" in
*nodes*) cat <<'END'
{"items": [
  {"metadata": {"name": "a"}, "spec": {}, "status": {"conditions": [{"type": "Ready", "status": "True"}],
   "nodeInfo": {"kernelVersion": "6.18", "containerRuntimeVersion": "containerd://1.7"}}},
  {"metadata": {"name": "b"}, "spec": {"taints": [{"effect": "NoSchedule"}]},
   "status": {"conditions": [{"type": "Ready", "status": "True"}]}}]}
END
;;
*apply*) cat >>"$0.log" ;;
*wait*) echo "timed out waiting" >&2; exit 1 ;;
*events*) echo "unknown version specified" ;;
esac
"#;

    fn scripted(folder: &Path) -> Vec<String> {
        let path = folder.join("kubectl");
        std::fs::write(&path, SCRIPT).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        vec![path.to_string_lossy().into_owned()]
    }

    #[test]
    fn a_namespace_of_its_own_goes_with_the_value_and_errors_say_what_kubectl_said() {
        let folder = Scratch::new(&Account::own().unwrap()).unwrap();
        let cluster = Cluster::make(scripted(folder.path())).unwrap();
        let namespace = cluster.namespace().to_owned();
        let nodes = cluster.nodes().unwrap();
        assert_eq!(nodes.len(), 1, "the other node takes no pods");
        assert_eq!((nodes[0].name.as_str(), nodes[0].kernel.as_str()), ("a", "6.18"));
        cluster.apply(&[serde_json::json!({"kind": "Pod"})]).unwrap();
        let late = cluster.wait_for("server", 1).unwrap_err().to_string();
        assert!(late.contains("timed out waiting; unknown version specified"), "{late}");
        drop(cluster);
        let log =
            crate::program::host_text(&format!("{}/kubectl.log", folder.path().display())).unwrap();
        assert!(log.starts_with(&format!("create namespace {namespace}")), "{log}");
        assert!(log.contains(r#"{"kind":"Pod"}"#), "{log}");
        assert!(
            log.trim_end().ends_with(&format!("delete namespace {namespace} --wait=false")),
            "{log}"
        );
    }

    #[test]
    fn a_cluster_that_refuses_says_why() {
        let refuses = ["/bin/sh", "-c", "echo Forbidden; exit 1"].map(str::to_owned);
        let error = Cluster::make(refuses.to_vec()).map(drop).unwrap_err().to_string();
        assert!(error.contains("Forbidden"), "{error}");
    }
}
