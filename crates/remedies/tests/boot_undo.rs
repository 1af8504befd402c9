//! Boot arguments are written and taken back on a directory in place of `/`, with stand-ins for
//! the tools of the distributions: afterwards every file is as before, byte for byte.

#![expect(clippy::unwrap_used, reason = "a test's helpers panic as the test does")]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use support::{host, plan, postgres, snapshot};
use tempfile::TempDir;
use untax_changes::{ExecutorError, Receipt, Tree, apply, undo};
use untax_core::Bytes;
use untax_core::Reading::Present;
use untax_core::plan::Step;
use untax_core::receipt::{Header, SCHEMA};

const ENTRIES: [&str; 2] = ["boot/loader/entries/a-6.12.conf", "boot/loader/entries/a-rescue.conf"];

/// Paths and texts.
type Files = BTreeMap<PathBuf, String>;

const NOTHING: [&str; 0] = [];

/// A root with a boot loader, and a place for receipts.
struct Machine {
    root: TempDir,
    receipts: TempDir,
}

impl Machine {
    /// `words` are on the command line already.
    fn new(words: &str) -> Self {
        let words = format!("quiet {words}");
        let words = words.trim_end();
        let machine = Self { root: TempDir::new().unwrap(), receipts: TempDir::new().unwrap() };
        for (name, text) in [
            ("grubby", include_str!("boot/grubby")),
            ("grub2-mkconfig", include_str!("boot/mkconfig")),
            (
                "update-grub",
                "#!/bin/sh\nexec \"$UNTAX_ROOT/usr/sbin/grub2-mkconfig\" -o /boot/grub/grub.cfg\n",
            ),
            ("sh", "#!/bin/sh\nPATH=$UNTAX_ROOT/usr/sbin:$PATH exec /bin/sh \"$@\"\n"),
        ] {
            machine.write(&format!("usr/sbin/{name}"), text);
            let program = machine.root.path().join("usr/sbin").join(name);
            fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
        }
        machine.write(
            "etc/default/grub",
            &format!("GRUB_CMDLINE_LINUX=\"ro\"\nGRUB_CMDLINE_LINUX_DEFAULT=\"{words}\"\n"),
        );
        for entry in ENTRIES {
            machine.write(
                entry,
                &format!(
                    "title A\nlinux /vmlinuz\noptions root=UUID=1 ro {words}\ninitrd /initrd\n"
                ),
            );
        }
        for file in ["boot/grub/x", "boot/grub2/x", "boot/efi/EFI/centos/x", "etc/sysctl.d/x"] {
            machine.write(file, "");
        }
        machine
    }

    fn write(&self, file: &str, text: &str) {
        let place = self.root.path().join(file);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, text).unwrap();
    }

    fn tree(&self) -> Tree {
        Tree::at(self.root.path())
    }

    fn files(&self) -> Files {
        let mut files = BTreeMap::new();
        read_all(self.root.path(), &mut files);
        files
    }

    /// Files that are not as before, with what they were and are.
    fn changed(&self, before: &Files) -> Vec<String> {
        let now = self.files();
        let places = before.keys().chain(now.keys());
        let changed = places.filter(|place| before.get(*place) != now.get(*place));
        changed
            .map(|at| format!("{}: {:?}, {:?}", at.display(), before.get(at), now.get(at)))
            .collect()
    }

    fn apply(&self, steps: Vec<Step>) -> Result<Option<Receipt>, ExecutorError> {
        let header = Header {
            schema: SCHEMA.to_owned(),
            receipt: "a-receipt".to_owned(),
            plan: "a-plan".to_owned(),
            begun_at: jiff::Timestamp::UNIX_EPOCH,
            temporary: false,
            steps,
        };
        let goes_on = AtomicBool::new(false);
        apply(&self.tree(), self.receipts.path(), header, &goes_on, |_| {})
    }
}

/// All files and directories below one, with their bytes.
#[expect(clippy::disallowed_methods, reason = "reads what the test made, not the host")]
fn read_all(directory: &Path, files: &mut Files) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_all(&path, files);
            files.insert(path, "a directory".to_owned());
        } else {
            let text = fs::read_to_string(&path).unwrap();
            files.insert(path, text);
        }
    }
}

/// The step that a plan for this distribution has, with pages of 1 GiB.
fn step(id: &str, version: &str, loader: &str, words: &str) -> Vec<Step> {
    let host = host(id, version, Present(loader.to_owned()), words);
    let plan = plan(&snapshot(host, vec![postgres(Bytes::from_mib(1536))]), "1g");
    let steps: Vec<Step> =
        plan.steps.into_iter().filter(|step| step.remedy == "hugepage-boot").collect();
    assert_eq!(steps.len(), 1);
    steps
}

#[test]
fn what_is_written_is_taken_back() {
    for words in
        ["", "hugepagesz=2M hugepages=7", "hugepagesz=1G hugepages=1 hugepagesz=2M hugepages=7"]
    {
        for (id, version, loader) in [
            ("rhel", "9.4", "grub-bls"),
            ("centos", "7", "grub"),
            ("debian", "12", "grub"),
            ("sles", "15.6", "grub"),
        ] {
            let machine = Machine::new(words);
            let steps = step(id, version, loader, words);
            // What an installation leaves.
            machine.tree().run(&steps[0].refresh).unwrap();
            let before = machine.files();

            let mut receipt = machine.apply(steps).unwrap().unwrap();
            let kernels = command_lines(&machine, loader);
            assert!(!kernels.is_empty(), "{id}");
            for line in kernels {
                let known = "hugepagesz=1G hugepages=0:1,1:1";
                assert_eq!(line.matches("hugepagesz=1G").count(), 1, "{id}: {line}");
                assert!(line.contains(known) && line.contains("quiet"), "{id}: {line}");
                let other = usize::from(!words.is_empty());
                assert_eq!(
                    line.matches("hugepagesz=2M hugepages=7").count(),
                    other,
                    "{id}: {line}"
                );
                assert!(!line.contains("hugepages=1 "), "{id}: {line}");
            }
            assert!(undo(&machine.tree(), &mut receipt, false).unwrap().is_whole());
            assert_eq!(machine.changed(&before), NOTHING, "{id} with {words:?}");
        }
    }
}

/// The kernel command lines of a machine as its boot loader has them.
fn command_lines(machine: &Machine, loader: &str) -> Vec<String> {
    let bls = loader == "grub-bls";
    let (end, begin) = if bls { (".conf", "options ") } else { ("grub.cfg", "linux ") };
    let files = machine.files();
    let files = files.iter().filter(|(path, _)| path.to_string_lossy().ends_with(end));
    let lines = files.flat_map(|(_, text)| text.lines());
    lines.filter(|line| line.starts_with(begin)).map(str::to_owned).collect()
}

#[test]
fn a_tool_that_fails_half_way_leaves_nothing() {
    for (id, loader) in [("rhel", "grub-bls"), ("debian", "grub")] {
        let machine = Machine::new("");
        let steps = step(id, "12", loader, "");
        machine.tree().run(&steps[0].refresh).unwrap();
        let before = machine.files();
        machine.write("fail-once", "");
        assert!(matches!(machine.apply(steps), Err(ExecutorError::Failed { left: None, .. })));
        assert_eq!(machine.changed(&before), NOTHING, "{id}");
    }
}

#[test]
fn entries_that_differ_are_refused() {
    let machine = Machine::new("");
    machine.write(ENTRIES[1], "options ro hugepages=3\n");
    let before = machine.files();
    let refused = machine.apply(step("rhel", "9.4", "grub-bls", "")).unwrap_err().to_string();
    assert!(refused.contains("other entries: hugepages=3"), "{refused}");
    assert_eq!(machine.changed(&before), NOTHING);
}

#[test]
fn a_missing_tool_is_refused_before_anything_is_touched() {
    for (id, version, loader, tool) in [
        ("rhel", "9.4", "grub-bls", "grubby"),
        ("debian", "12", "grub", "update-grub"),
        ("sles", "15.6", "grub", "grub2-mkconfig"),
    ] {
        let machine = Machine::new("");
        let steps = step(id, version, loader, "");
        fs::remove_file(machine.root.path().join("usr/sbin").join(tool)).unwrap();
        let before = machine.files();
        let refused = machine.apply(steps).unwrap_err();
        assert!(matches!(refused, ExecutorError::Refused { .. }), "{refused}");
        let said = format!("{tool} is not installed");
        assert!(refused.to_string().contains(&said), "{refused}");
        assert_eq!(machine.changed(&before), NOTHING, "{id}");
    }
}
