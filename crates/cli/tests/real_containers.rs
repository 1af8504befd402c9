//! What containers and sandboxes around a database are found to be.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test looks at the machine by other ways than the code that it tests"
)]

mod support;

use serde_json::Value;
use support::{Untax, database, rules, texts, unmeasured};
use untax_scenes::{Redis, Runtime};

const RULE: &str = "duplicate-machine-id";

/// What a rule says of a database.
fn summary<'a>(of: &'a Value, rule: &str) -> &'a str {
    let findings = of["findings"].as_array().unwrap();
    let found = findings.iter().find(|finding| finding["rule"] == rule);
    found.unwrap_or_else(|| panic!("no {rule} in {findings:#?}"))["summary"].as_str().unwrap()
}

const MACHINE_ID: &str = "/etc/machine-id";

/// An identity of the machine; one that was made because there was none goes again.
struct Identity {
    made: bool,
}

impl Identity {
    fn of_this_machine() -> Self {
        let made = !std::fs::exists(MACHINE_ID).unwrap();
        if made {
            std::fs::write(MACHINE_ID, "6f1c8e52a94b4d0e8d3b7c2a51e0f964\n").unwrap();
        }
        Self { made }
    }
}

impl Drop for Identity {
    fn drop(&mut self) {
        if self.made {
            std::fs::remove_file(MACHINE_ID).unwrap();
        }
    }
}

#[test]
fn containers_with_one_identity_are_told_and_the_id_is_in_no_capture() {
    support::real(|| {
        let _identity = Identity::of_this_machine();
        let clones = [Redis::start(Runtime::Clone, &[])?, Redis::start(Runtime::Clone, &[])?];
        let other = Redis::start(Runtime::Runc, &[])?;
        let untax = Untax::new();
        let capture = untax.path("capture");
        let words = ["capture", capture.to_str().unwrap(), "--window", "1s"];
        assert_eq!(untax.run(&words).code, 0);
        let words = ["check", "--window", "1s", "--no-calibration", "--json"];
        let check = untax.run(&words).json();
        let pids = clones.each_ref().map(|clone| clone.pid().unwrap());
        for (pid, twin) in [(pids[0], pids[1]), (pids[1], pids[0])] {
            let said = summary(database(&check, pid), RULE);
            assert!(
                said.contains(&format!("redis:{twin}")) && said.ends_with("its host"),
                "{said}"
            );
        }
        assert!(!rules(database(&check, other.pid().unwrap())).contains(&RULE), "{check:#}");
        let id = std::fs::read_to_string(MACHINE_ID).unwrap();
        for folder in [capture, untax.path("state")] {
            let texts = texts(&folder);
            assert!(!texts.is_empty(), "{}", folder.display());
            for (path, text) in texts {
                assert!(!text.contains(id.trim()), "in {}", path.display());
            }
        }
        Ok(())
    });
}

#[test]
fn a_sandbox_of_gvisor_is_told_and_an_idle_one_has_no_price() {
    support::real(|| {
        let sandboxed = Redis::start(Runtime::Gvisor, &[])?;
        assert_eq!(sandboxed.command(["ping"])?.trim(), "PONG");
        let pid = sandboxed.pid().unwrap();
        let check = Untax::new().check(pid);
        let found = database(&check, pid);
        assert!(summary(found, "sandboxed-runtime").ends_with("gVisor"), "{found:#}");
        let gaps = unmeasured(found);
        let why = gaps.iter().find(|(rule, _)| *rule == "sandboxed-runtime").unwrap().1;
        assert!(why.contains("only the same load outside"), "{why}");
        // Checked from beside it, the host says that something cannot be seen.
        let plain = Redis::start(Runtime::Host, &[])?;
        let beside = Untax::new().check(plain.pid().unwrap());
        assert!(rules(&beside).contains(&"sandboxed-runtime"), "{beside:#}");
        assert!(!rules(&beside["databases"][0]).contains(&"sandboxed-runtime"), "{beside:#}");
        Ok(())
    });
}
