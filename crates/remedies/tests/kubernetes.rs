//! What is handed over for databases in pods: it is YAML, keeps Kubernetes' rules on huge pages,
//! and the script for nodes does its steps in the order that works.

#![expect(clippy::unwrap_used, reason = "a test's helpers panic as the test does")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use support::{check, gap, host, plan, postgres, snapshot};
use untax_core::Reading::{Absent, Present};
use untax_core::database::{Cgroup, CpuLimit, Pod};
use untax_core::plan::{Plan, Target};
use untax_core::{Bytes, Database, Seconds, Snapshot};
use yaml_rust2::{Yaml, YamlLoader};

fn in_pod(mut database: Database) -> Database {
    database.pod = Some(Pod { uid: "a-uid".to_owned(), qos: "burstable".to_owned() });
    database.cgroup = Present(Cgroup {
        memory_limit_bytes: Present(Bytes(4 << 30)),
        cpu: Present(vec![CpuLimit {
            cgroup: "/kubepods.slice/x".to_owned(),
            cpus: 1.5,
            period_s: Seconds(0.1),
            periods: gap(),
            throttled_periods: gap(),
        }]),
        ..Cgroup::unknown(
            [("unified".to_owned(), "/kubepods.slice/x".to_owned())].into(),
            "not read",
        )
    });
    database
}

/// A node with a PostgreSQL of 1.5 GiB and something else, both in pods.
fn node() -> Snapshot {
    let other = Database {
        id: "generic:77".to_owned(),
        engine: "generic".to_owned(),
        product: "java".to_owned(),
        pid: 77,
        cgroup: gap(),
        ..postgres(Bytes::from_mib(301))
    };
    let other = Database { cgroup: gap(), ..in_pod(other) };
    let loader = Absent("not looked for".to_owned());
    snapshot(host("debian", "12", loader, ""), vec![in_pod(postgres(Bytes::from_mib(1536))), other])
}

fn files(plan: &Plan, end: &str) -> Vec<(String, String)> {
    let files = plan.tasks.iter().filter_map(|task| task.file.clone());
    files.filter(|(name, _)| name.ends_with(end)).collect()
}

fn file(plan: &Plan, name: &str) -> String {
    let found = files(plan, name);
    assert_eq!(found.len(), 1, "{name}");
    found.into_iter().next().unwrap().1
}

fn yaml(text: &str) -> Yaml {
    let mut documents = YamlLoader::load_from_str(text).unwrap();
    assert_eq!(documents.len(), 1);
    documents.remove(0)
}

/// A quantity of memory in bytes.
fn bytes(quantity: &Yaml) -> u64 {
    let text = quantity.as_str().unwrap();
    let (number, unit) = text.split_at(text.len() - 2);
    let shift = match unit {
        "Mi" => 20,
        "Gi" => 30,
        _ => unreachable!("{text}"),
    };
    number.parse::<u64>().unwrap() << shift
}

#[test]
fn pods_ask_for_whole_pages_as_much_as_they_may_have() {
    for (page, name, size) in [("2m", "2Mi", 2 << 20), ("1g", "1Gi", 1 << 30)] {
        let plan = plan(&node(), page);
        let patches = files(&plan, "pod-patch.yaml");
        assert_eq!(patches.len(), 2);
        for (database, (_, patch)) in node().databases.iter().zip(&patches) {
            let patch = yaml(patch);
            let spec = &patch["spec"]["template"]["spec"];
            let resources = &spec["containers"][0]["resources"];
            let resource = format!("hugepages-{name}");
            let (asked, limit) = (&resources["requests"], &resources["limits"]);
            let huge = bytes(&asked[resource.as_str()]);
            assert_eq!(huge, bytes(&limit[resource.as_str()]), "request and limit are equal");
            assert_eq!(huge % size, 0, "whole pages");
            let needed = database.memory.shared_bytes.value().unwrap().0;
            assert!((needed..needed + size).contains(&huge), "{needed} bytes in {huge}");
            assert!(!asked["cpu"].is_badvalue(), "a request for CPU");
            assert_eq!(bytes(&asked["memory"]), bytes(&limit["memory"]));
            assert_eq!(spec["containers"][0]["name"].as_str(), Some(database.engine.as_str()));
        }
    }
}

#[test]
fn memory_is_the_limit_without_what_moves_into_huge_pages() {
    let mut node = node();
    let memory = |node: &Snapshot| {
        let patch = yaml(&file(&plan(node, "2m"), "postgres-4012-pod-patch.yaml"));
        let container = &patch["spec"]["template"]["spec"]["containers"][0];
        (
            bytes(&container["resources"]["limits"]["memory"]) >> 20,
            container["resources"]["limits"]["cpu"].clone(),
        )
    };
    assert_eq!(memory(&node), (4096 - 1536, Yaml::String("1500m".to_owned())));
    node.databases[0].memory.page_size_bytes = Present(Bytes::MIB_2);
    assert_eq!(memory(&node).0, 4096, "it is there already");
    let cgroup = node.databases[0].cgroup.clone();
    node.databases[0].cgroup = gap();
    assert_eq!(memory(&node), (1024 + 512, Yaml::BadValue), "what it holds, and some");
    node.databases[0].cgroup = cgroup;
    node.databases[0].memory.page_size_bytes = Present(Bytes::KIB_4);
    node.host.cgroup = Present(untax_core::host::CgroupLayout {
        mounts: Vec::new(),
        memory_hugetlb_accounting: true,
    });
    assert_eq!(memory(&node).0, 4096, "huge pages count in it");
}

/// PostgreSQL maps huge pages without a file; who needs a file gets a volume of that size.
#[test]
fn only_who_needs_a_volume_gets_one() {
    let plan = plan(&node(), "1g");
    let text = file(&plan, "postgres-4012-pod-patch.yaml");
    assert!(text.contains("no volume") && text.contains("MAP_HUGETLB"));
    assert!(yaml(&text)["spec"]["template"]["spec"]["volumes"].is_badvalue());
    let other = yaml(&file(&plan, "generic-77-pod-patch.yaml"));
    let spec = &other["spec"]["template"]["spec"];
    assert_eq!(spec["volumes"][0]["emptyDir"]["medium"].as_str(), Some("HugePages-1Gi"));
    assert_eq!(spec["containers"][0]["volumeMounts"][0]["name"], spec["volumes"][0]["name"]);
}

/// The pod's selector and toleration are the label and the taint of the script, and the label is
/// the one that the rule of Node Feature Discovery sets.
#[test]
fn pods_and_nodes_find_each_other() {
    for (page, name) in [("2m", "2Mi"), ("1g", "1Gi")] {
        let plan = plan(&node(), page);
        let script = file(&plan, ".sh");
        let patch = yaml(&file(&plan, "postgres-4012-pod-patch.yaml"));
        let spec = &patch["spec"]["template"]["spec"];
        let selector = spec["nodeSelector"].as_hash().unwrap();
        let (key, value) = selector.iter().next().unwrap();
        let (key, value) = (key.as_str().unwrap(), value.as_str().unwrap());
        assert_eq!(key, format!("feature.node.kubernetes.io/memory-hugepages-{name}"));
        assert!(script.contains(&format!("--overwrite {key}={value}\n")));
        let t = &spec["tolerations"][0];
        let [taint, of, effect] = ["key", "value", "effect"].map(|part| t[part].as_str().unwrap());
        assert!(script.contains(&format!("--overwrite {taint}={of}:{effect}\n")));

        let rule = yaml(&file(&plan, &format!("classes-{}.yaml", name.to_lowercase())));
        let rule = &rule["spec"]["rules"][0];
        let label = format!("memory-hugepages-{name}");
        assert_eq!(rule["labels"][label.as_str()].as_str(), Some(value));
        let feature = &rule["matchFeatures"][0];
        assert_eq!(feature["feature"].as_str(), Some("memory.hugepages"));
        let pool = &feature["matchExpressions"][format!("hugepages-{name}").as_str()];
        assert_eq!(pool["op"].as_str(), Some("Gt"));
    }
}

/// The pool of a node is not changed under a running kubelet; after a boot it may be there.
#[test]
fn the_pool_of_a_node_changes_while_it_is_drained() {
    let plan = plan(&node(), "2m");
    assert!(!plan.steps.iter().any(|step| matches!(step.target, Target::Pool { .. })));
    assert!(plan.steps.iter().any(|step| step.remedy == "hugepage-boot"));
}

/// Stands in for kubectl and ssh: says what it was called with. The node offers `offers`.
fn run(script: &str, offers: &str) -> Output {
    let directory = tempfile::TempDir::new().unwrap();
    let place = |name: &str| directory.path().join(name);
    let program = |name: &str, text: &str| {
        fs::write(place(name), text).unwrap();
        fs::set_permissions(place(name), fs::Permissions::from_mode(0o755)).unwrap();
    };
    let answer = format!("case $1 in get) echo '{offers}' ;; *) echo \"kubectl $1\" ;; esac");
    program("kubectl", &format!("#!/bin/sh\n{answer}\n"));
    program("ssh", "#!/bin/sh\nshift\necho \"ssh $1\"\nif [ \"$1\" = sh ]; then /bin/sh -n; fi\n");
    program("sleep", "#!/bin/sh\n");
    fs::write(place("script"), script).unwrap();
    let path = format!("{}:/usr/bin:/bin", directory.path().display());
    let mut command = Command::new("/bin/sh");
    command.arg(Path::new(&place("script"))).arg("a-node").env("PATH", path).output().unwrap()
}

#[test]
fn a_node_is_prepared_in_order() {
    for (page, quantity, less) in [("2m", "1838Mi", "1836Mi"), ("1g", "3Gi", "2Gi")] {
        let plan = plan(&node(), page);
        let script = file(&plan, ".sh");
        let output = run(&script, quantity);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(
            String::from_utf8_lossy(&output.stdout).lines().collect::<Vec<_>>(),
            [
                "kubectl drain",
                "ssh sh",
                "ssh systemctl",
                "kubectl label",
                "kubectl taint",
                "kubectl uncordon"
            ]
        );

        let output = run(&script, less);
        assert!(!output.status.success());
        assert!(!String::from_utf8_lossy(&output.stdout).contains("uncordon"), "it stays closed");
        assert!(String::from_utf8_lossy(&output.stderr).contains(less));
        assert!(script.contains("allocatable memory"));
        assert_eq!(script.matches('@').count(), 2, "only in root@$node");
    }
}

/// Kubernetes writes 1024Mi as 1Gi.
#[test]
fn quantities_are_in_the_form_of_kubernetes() {
    let mut node = node();
    node.databases = vec![in_pod(postgres(Bytes::GIB_1))];
    let plan = plan(&node, "2m");
    assert!(run(&file(&plan, ".sh"), "1Gi").status.success());
    assert!(file(&plan, "pod-patch.yaml").contains("hugepages-2Mi: 1Gi\n"));
}

/// A pod without a limit on huge pages dies of a bus error: that finding is answered, too, with
/// pages of the size that the database asks for.
#[test]
fn a_limit_is_answered_with_the_size_in_use() {
    let mut node = node();
    let Present(asks) = &mut node.databases[0].huge_pages else { unreachable!() };
    asks.size_bytes = Present(Bytes::GIB_1);
    asks.needed_pages = Present(2);
    let check = check(&node, "hugepage-limit", "cgroup-hugetlb-limit");
    let wish = untax_remedies::Wish::default();
    let plan = untax_remedies::plan("a-plan".to_owned(), &check, &node, &wish).unwrap();
    let patch = yaml(&file(&plan, "postgres-4012-pod-patch.yaml"));
    let limits = &patch["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"];
    assert_eq!(bytes(&limits["hugepages-1Gi"]), 2 << 30);
    assert_eq!(files(&plan, ".sh").len(), 2, "one for each size");
}

#[test]
fn a_sandbox_is_answered_with_a_runtime_class() {
    let check = check(&node(), "sandboxed-runtime", "runtime-class");
    let wish = untax_remedies::Wish::default();
    let plan = untax_remedies::plan("a-plan".to_owned(), &check, &node(), &wish).unwrap();
    assert_eq!(plan.tasks.len(), 2);
    let class = yaml(&plan.tasks[0].file.as_ref().unwrap().1);
    assert_eq!(class["kind"].as_str(), Some("RuntimeClass"));
    let name = class["metadata"]["name"].as_str().unwrap();
    assert!(plan.tasks[0].summary.contains(&format!("runtimeClassName: {name}")));
}

/// What tests/kubernetes/manifests.sh shows to an API server is what plans write.
/// `UNTAX_BLESS=1` writes it anew.
#[test]
#[expect(clippy::disallowed_methods, reason = "these are files of the project, not the host's")]
fn the_server_is_shown_what_plans_write() {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kubernetes");
    let sandboxed = check(&node(), "sandboxed-runtime", "runtime-class");
    let wish = untax_remedies::Wish::default();
    let sandboxed = untax_remedies::plan("a-plan".to_owned(), &sandboxed, &node(), &wish).unwrap();
    let plans = [("2m", plan(&node(), "2m")), ("1g", plan(&node(), "1g")), ("runtime", sandboxed)];
    let mut written = Vec::new();
    for (folder, plan) in &plans {
        for (name, text) in files(plan, ".yaml") {
            let path = place.join(folder).join(name);
            if std::env::var_os("UNTAX_BLESS").is_some() {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(&path, &text).unwrap();
            }
            let shown = fs::read_to_string(&path).unwrap_or_default();
            assert_eq!(shown, text, "{}: with UNTAX_BLESS=1 it is written anew", path.display());
            written.push(path);
        }
    }
    let folders = plans.iter().flat_map(|(folder, _)| fs::read_dir(place.join(folder)).unwrap());
    for entry in folders {
        assert!(written.contains(&entry.unwrap().path()), "nothing writes it any more");
    }
}
