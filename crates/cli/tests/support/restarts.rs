//! Servers of a test that a shell command of the program restarts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use untax_scenes::SceneError;

/// Two pipes: one for asking, one for the answer.
pub struct Restarts {
    folder: TempDir,
}

/// Ends the thread that restarts, also when the test panics.
struct End(PathBuf);

impl Drop for End {
    fn drop(&mut self) {
        let _ = fs::write(&self.0, "end\n");
    }
}

impl Restarts {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["ask", "answer"] {
            assert!(
                Command::new("mkfifo").arg(folder.path().join(name)).status().unwrap().success()
            );
        }
        Self { folder }
    }

    fn pipe(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The command; it returns when the server serves again.
    pub fn command(&self) -> String {
        let [ask, answer] = ["ask", "answer"].map(|name| self.pipe(name));
        format!(
            "echo restart >{} && read -r said <{} && [ \"$said\" = done ]",
            ask.display(),
            answer.display()
        )
    }

    /// Does something, and restarts whenever the command asks for it meanwhile.
    pub fn serve<T>(
        &self,
        restart: impl FnMut() -> Result<(), SceneError> + Send,
        meanwhile: impl FnOnce() -> T,
    ) -> T {
        let (ask, answer) = (self.pipe("ask"), self.pipe("answer"));
        std::thread::scope(|scope| {
            scope.spawn(|| answer_all(&ask, &answer, restart));
            let _end = End(ask.clone());
            meanwhile()
        })
    }
}

fn answer_all(ask: &Path, answer: &Path, mut restart: impl FnMut() -> Result<(), SceneError>) {
    while fs::read_to_string(ask).unwrap().trim() == "restart" {
        let said = restart().map_or_else(|error| error.to_string(), |()| "done".to_owned());
        fs::write(answer, said + "\n").unwrap();
    }
}
