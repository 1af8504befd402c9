//! `untax bench storage` on volumes of this machine.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test looks at the machine by other ways than the code that it tests"
)]

mod support;

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use support::Untax;
use untax_scenes::{Filesystem, Volume};

/// One short block, whatever else runs here.
const SHORT: [&str; 10] =
    ["bench", "storage", "--beside", "--json", "--size", "64", "--blocks", "1", "--trial", "200ms"];

fn bench(more: &[&str]) -> support::Ran {
    Untax::new().run(&[&SHORT[..], more].concat())
}

/// What an arm gave for some work.
fn arm<'a>(bench: &'a Value, workload: &str, arm: &str) -> &'a Value {
    let find = |list: &'a Value, key: &str, value: &str| {
        let mut all = list.as_array().unwrap().iter();
        all.find(|one| one[key] == value).unwrap_or_else(|| panic!("no {value} in {list:#}"))
    };
    find(&find(&bench["cells"], "workload", workload)["arms"], "arm", arm)
}

fn extra(arm: &Value, id: &str) -> f64 {
    let mut extras = arm["extras"].as_array().unwrap().iter();
    let extra = extras.find(|extra| extra["id"] == id);
    extra.unwrap_or_else(|| panic!("no {id} in {arm:#}"))["value"].as_f64().unwrap()
}

/// Mounts and directories of the bench.
fn left() -> Vec<String> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let mounts = mounts.lines().filter(|line| line.contains("untax-bench")).map(str::to_owned);
    let entries = fs::read_dir(std::env::temp_dir()).unwrap().flatten();
    let entries = entries.map(|entry| entry.path().display().to_string());
    mounts.chain(entries.filter(|path| path.contains("untax-bench"))).collect()
}

#[test]
fn volumes_are_measured_by_bytes_that_pass_their_disk_and_are_taken_away() {
    support::real(|| {
        let work = "log-8k,append-2300,read-8k,checkpoint,flood-limited";
        let arms = "directory,ext4,overlayfs,tmpfs";
        let bench = bench(&["--budget", "3m", "--arms", arms, "--workloads", work]).json();
        for name in ["directory", "ext4", "overlayfs"] {
            assert!(extra(arm(&bench, "read-8k", name), "device-read") >= 0.95, "{name}");
            assert!(extra(arm(&bench, "log-8k", name), "device-written") >= 0.95, "{name}");
            assert!(extra(arm(&bench, "checkpoint", name), "burst-flush") > 0.0, "{name}");
            for work in ["append-2300", "flood-limited"] {
                assert_eq!(arm(&bench, work, name)["state"], "measured", "{name} {work}");
            }
        }
        let memory = arm(&bench, "read-8k", "tmpfs");
        assert_eq!(memory["state"], "failed");
        assert!(memory["why"].as_str().unwrap().contains("no read can be shown"), "{memory:#}");
        assert_eq!(arm(&bench, "log-8k", "tmpfs")["state"], "measured");
        assert_eq!(left(), Vec::<String>::new());
        Ok(())
    });
}

#[test]
fn commits_are_predicted_and_measured_and_fio_measures_the_same() {
    support::real(|| {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
        let path = directory.path().join("some data");
        fs::create_dir(&path).unwrap();
        let path = path.to_string_lossy();
        let ran = bench(&["--path", &path, "--workloads", "postgres,fio-log,fio-read"]);
        let bench = ran.json();
        let id = bench["baseline"].as_str().unwrap().to_owned();
        assert!(id.ends_with("some-data"), "{id}");
        let commits = arm(&bench, "postgres", &id);
        assert!(
            extra(commits, "predicted") > 0.0 && extra(commits, "measured-over-predicted") > 0.0
        );
        for work in ["fio-log", "fio-read"] {
            let both = arm(&bench, work, &id);
            assert!(extra(both, "own") > 0.0 && extra(both, "other") > 0.0, "{both:#}");
        }
        assert_eq!(fs::read_dir(&*path).unwrap().count(), 0, "its own files are gone");
        Ok(())
    });
}

#[test]
fn a_path_that_cannot_be_measured_is_refused_with_the_next_action() {
    support::real(|| {
        let refused = |path: &Path, why: &str| {
            let ran = bench(&["--path", &path.to_string_lossy(), "--workloads", "log-8k"]);
            assert_eq!(ran.code, 2, "{}", ran.stderr);
            assert!(ran.stderr.contains(why), "{why}: {}", ran.stderr);
            assert!(ran.stderr.contains(&*path.to_string_lossy()), "{}", ran.stderr);
        };
        let small = Volume::make(Filesystem::Tmpfs, &std::env::temp_dir(), 20)?;
        refused(&small.path(), "20 MiB are free");
        let path = small.path();
        let remount = ["-o", "remount,ro", &path.to_string_lossy()].map(str::to_owned);
        assert!(Command::new("mount").args(remount).status().unwrap().success());
        refused(&path, "mounted read-only");
        refused(Path::new("/proc/version"), "it is no directory");
        refused(Path::new("/no/such/place"), "No such file");
        refused(Path::new("/proc"), "are needed");
        Ok(())
    });
}

#[test]
fn a_server_is_measured_on_each_page_size_and_settings_are_put_back() {
    support::real(|| {
        let settings = || {
            ["enabled", "shmem_enabled"].map(|name| {
                let path = format!("/sys/kernel/mm/transparent_hugepage/{name}");
                fs::read_to_string(path).unwrap_or_default()
            })
        };
        let before = settings();
        let ran = Untax::new().run(&[
            "bench",
            "pages",
            "--engine",
            "postgres",
            "--rows",
            "100000",
            "--pages",
            "4k,2m",
            "--connections",
            "2",
            "--trials",
            "1",
            "--beside",
            "--json",
        ]);
        let bench = ran.json();
        assert_eq!(bench["schema"], "untax.bench.pages-engine/1");
        for page in ["4k", "2m"] {
            let arm = arm(&bench, "clients-2", page);
            assert_eq!(arm["state"], "measured", "{arm:#}");
            assert!(extra(arm, "page-tables") > 0.0 && extra(arm, "on-pages") > 100.0, "{arm:#}");
        }
        assert_eq!(settings(), before);
        Ok(())
    });
}
