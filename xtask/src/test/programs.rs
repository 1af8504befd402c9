//! The test programs of the workspace, and the tests in each.

use super::run::Job;
use super::tiers::{self, Tier};
use crate::child::mortal;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a build of all tests makes.
#[derive(Debug, Default)]
pub struct Programs {
    tests: Vec<Program>,
    untax: PathBuf,
}

/// A program of tests: those of a library, or of a file below `tests/`.
#[derive(Debug)]
struct Program {
    name: String,
    /// The folder of its crate, in which it expects to run.
    folder: PathBuf,
    executable: PathBuf,
}

impl Programs {
    /// Builds the tests of the workspace at `root`, and the programs that they start.
    pub fn build(root: &Path) -> Result<Self> {
        let mut command = cargo(&["test", "--workspace", "--no-run"]);
        command.arg("--message-format=json-render-diagnostics").current_dir(root);
        let output = command.stderr(Stdio::inherit()).output().context("cannot run cargo")?;
        if !output.status.success() {
            bail!("the tests cannot be built");
        }
        Ok(Self::from_messages(&String::from_utf8_lossy(&output.stdout)))
    }

    /// Takes the programs from what cargo says of each artifact, a line of JSON.
    fn from_messages(messages: &str) -> Self {
        let mut programs = Self::default();
        for message in messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok())
        {
            let (name, test) = (&message["target"]["name"], &message["profile"]["test"]);
            let (Some(name), Some(executable)) = (name.as_str(), message["executable"].as_str())
            else {
                continue;
            };
            if test == true {
                let manifest = Path::new(message["manifest_path"].as_str().unwrap_or_default());
                let folder = manifest.parent().unwrap_or(manifest).to_owned();
                let (name, executable) = (name.to_owned(), executable.into());
                programs.tests.push(Program { name, folder, executable });
            } else if name == "untax" {
                programs.untax = executable.into();
            }
        }
        programs
    }

    /// The built program.
    pub fn untax(&self) -> &Path {
        &self.untax
    }

    /// The tests of a tier: those on real servers, or all others.
    pub fn tests(&self, tier: Tier, real: bool) -> Result<Vec<Job>> {
        let mut jobs = Vec::new();
        for program in &self.tests {
            if tiers::is_real(&program.name) == real && tiers::kills_of(&program.name).is_none() {
                jobs.extend(program.tests(tier)?);
            }
        }
        Ok(jobs)
    }

    /// The programs that are told how often to kill.
    pub fn kills(&self, tier: Tier) -> Vec<Job> {
        let job = |program: &Program| {
            let times = tiers::kills_of(&program.name)?.times(tier);
            let mut command = program.command();
            command.arg(times.to_string());
            Some(Job::new(format!("{} {times}", program.name), command))
        };
        self.tests.iter().filter_map(job).collect()
    }
}

impl Program {
    fn tests(&self, tier: Tier) -> Result<Vec<Job>> {
        let long = self.list(&["--ignored"])?;
        let names = match tier {
            Tier::Long => long,
            Tier::Short => {
                let all = self.list(&[])?;
                all.into_iter().filter(|name| !long.contains(name)).collect()
            }
        };
        let job = |name: String| {
            let mut command = self.command();
            command.args(["--include-ignored", "--exact", &name]);
            Job::new(format!("{}::{name}", self.name), command)
        };
        Ok(names.into_iter().map(job).collect())
    }

    /// The names of its tests.
    fn list(&self, more: &[&str]) -> Result<Vec<String>> {
        let output = self.command().args(["--list", "--format", "terse"]).args(more).output();
        let output = output.with_context(|| self.executable.display().to_string())?;
        if !output.status.success() {
            bail!("{} does not list its tests", self.executable.display());
        }
        Ok(listed(&String::from_utf8_lossy(&output.stdout)))
    }

    fn command(&self) -> Command {
        let mut command = mortal(&self.executable);
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        // A server that is missing fails a test: the packages are installed.
        command.env("UNTAX_REQUIRE_REAL", "1");
        command
    }
}

fn listed(text: &str) -> Vec<String> {
    text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
}

/// A command of the cargo that runs this.
pub fn cargo(words: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(words);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_taken_from_the_messages_of_cargo() {
        let message = |name: &str, test: bool, executable: &str| {
            format!(
                r#"{{"manifest_path":"/w/crates/c/Cargo.toml","target":{{"name":"{name}"}},
                "profile":{{"test":{test}}},"executable":{executable}}}"#
            )
            .replace('\n', "")
        };
        let messages = [
            message("untax_core", false, "null"),
            message("untax_core", true, r#""/t/untax_core-1""#),
            message("untax", false, r#""/t/untax""#),
            message("untax-experiments", false, r#""/t/untax-experiments""#),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
        ];
        let programs = Programs::from_messages(&messages.join("\n"));
        assert_eq!(programs.untax(), Path::new("/t/untax"));
        let [test] = &programs.tests[..] else { panic!("{programs:?}") };
        assert_eq!(test.name, "untax_core");
        assert_eq!(test.folder, Path::new("/w/crates/c"));
    }

    #[test]
    fn this_program_lists_this_test() {
        let executable = std::env::current_exe().unwrap();
        let program = Program { name: "xtask".to_owned(), folder: "/".into(), executable };
        let (short, long) =
            (program.tests(Tier::Short).unwrap(), program.tests(Tier::Long).unwrap());
        let this = "xtask::test::programs::tests::this_program_lists_this_test";
        assert!(short.iter().any(|job| job.name == this));
        assert!(long.is_empty());
    }
}
