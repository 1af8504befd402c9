//! Plans that cannot or must not be applied are refused, with the reason, before anything is
//! touched.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test looks at the machine by other ways than the code that it tests"
)]

mod support;

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use support::{Ran, Untax, plan, settings_of_host};
use untax_core::Plan;
use untax_core::plan::{Effect, Step, Target};
use untax_remedies::sealed;
use untax_scenes::{Redis, Runtime, SceneError, Thp};

/// A plan against `thp-mode`, from a real check.
struct Made {
    untax: Untax,
    plan: Plan,
    _redis: Redis,
    _thp: Thp,
}

impl Made {
    fn new() -> Result<Self, SceneError> {
        let thp = Thp::set("always")?;
        let redis = Redis::start(Runtime::Host, &[("disable-thp", "no")])?;
        let untax = Untax::new();
        untax.check(redis.pid().unwrap());
        let (_, made) = plan(&untax, "thp-mode", &[]);
        let plan = serde_json::from_value(made).unwrap();
        Ok(Self { untax, plan, _redis: redis, _thp: thp })
    }

    /// Writes a plan that is whole, whatever it says.
    fn file(&self, plan: Plan) -> PathBuf {
        let file = self.untax.path("plan.json");
        fs::write(&file, serde_json::to_string(&sealed(plan)).unwrap()).unwrap();
        file
    }

    /// Applies a plan, which must be refused and leave everything as it was.
    fn refused(&self, plan: Plan) -> Ran {
        let file = self.file(plan);
        let before = settings_of_host(&[]);
        let refused = self.untax.run(&["apply", file.to_str().unwrap()]);
        assert_eq!(settings_of_host(&[]), before);
        assert_eq!(refused.code, 2, "{}", refused.stderr);
        let listed = self.untax.run(&["undo", "--json"]).json();
        assert_eq!(listed.as_array().map(Vec::len), Some(0), "nothing to undo: {listed:#}");
        refused
    }
}

fn says(refused: &Ran, words: &[&str]) {
    for word in words {
        assert!(refused.stderr.contains(word), "no {word:?} in: {}", refused.stderr);
    }
}

#[test]
fn a_plan_of_another_machine() {
    support::real(|| {
        let made = Made::new()?;
        let mut plan = made.plan.clone();
        plan.snapshot.basis.insert("machine".to_owned(), "another".to_owned());
        plan.snapshot.basis.insert("kernel".to_owned(), "9.9".to_owned());
        says(&made.refused(plan), &["machine was another", "kernel was 9.9", "make a new plan"]);
        Ok(())
    });
}

#[test]
fn a_plan_for_which_there_is_not_enough_memory() {
    support::real(|| {
        let made = Made::new()?;
        let mut plan = made.plan.clone();
        let pool: u64 =
            fs::read_to_string("/proc/sys/vm/nr_hugepages").unwrap().trim().parse().unwrap();
        plan.steps.insert(
            0,
            Step {
                id: "pool-2m".to_owned(),
                remedy: "hugepage-pool".to_owned(),
                summary: "a pool of a TiB".to_owned(),
                databases: Vec::new(),
                target: Target::Pool {
                    directory: "/sys/kernel/mm/hugepages/hugepages-2048kB".to_owned(),
                },
                from: Some(pool.to_string()),
                to: Some((pool + (1 << 19)).to_string()),
                refresh: Vec::new(),
                effect: Effect::Restart,
            },
        );
        says(&made.refused(plan), &["take 1 TiB", "are available"]);
        Ok(())
    });
}

#[test]
fn a_program_that_is_missing() {
    support::real(|| {
        let made = Made::new()?;
        let mut plan = made.plan.clone();
        plan.steps[1].refresh = vec!["no-such-boot-loader".to_owned()];
        says(&made.refused(plan), &["no-such-boot-loader is not installed here"]);
        Ok(())
    });
}

#[test]
fn settings_of_the_kernel_that_are_mounted_read_only() {
    support::real(|| {
        let made = Made::new()?;
        let file = made.file(made.plan.clone());
        let before = settings_of_host(&[]);
        let untax = made.untax.command(&["apply", file.to_str().unwrap()]);
        let mut shell = Command::new("unshare");
        // In a mount namespace of its own, gone with it.
        shell.args([
            "--mount",
            "--",
            "sh",
            "-ec",
            "mount -o remount,bind,ro /sys; exec \"$@\"",
            "sh",
        ]);
        shell.arg(untax.get_program()).args(untax.get_args());
        let output = shell.output().unwrap();
        assert_eq!(settings_of_host(&[]), before);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("cannot be written") && said.contains("Read-only"), "{said}");
        Ok(())
    });
}

#[test]
fn a_user_who_is_not_root() {
    support::real(|| {
        let made = Made::new()?;
        let file = made.file(made.plan.clone());
        let nobody = Untax::as_nobody();
        nobody.take(&file);
        let before = settings_of_host(&[]);
        for command in [
            &["apply", "plan.json"][..],
            &["verify", "plan.json", "--workload", "true", "--restart", "true"],
        ] {
            let refused = nobody.run(command);
            assert_eq!(refused.code, 2, "{}", refused.stderr);
            says(&refused, &["nothing was changed", "run as root"]);
        }
        assert_eq!(settings_of_host(&[]), before);
        Ok(())
    });
}
