//! Whether a runtime works here: a program that does nothing is run in it, once.

use std::path::PathBuf;
use std::time::Duration;
use untax_scenes::{Job, Runtime, SceneError, Setup, is_root};

/// Starting a container takes some 0.1 s, a sandbox less than a second.
const PATIENCE: Duration = Duration::from_secs(5);

/// The reason where it does not.
pub(super) fn works(runtime: Runtime) -> Result<(), String> {
    if !is_root() {
        return Err("needs root; run it with sudo".to_owned());
    }
    let setup = Setup { runtime, ..Setup::default() };
    let tried = Job::new(&setup).and_then(|job| {
        let program = ["/bin/true".to_owned()];
        job.run_within(&program, PATIENCE)
    });
    match tried {
        Ok(_) => Ok(()),
        Err(SceneError::Late { output_end, .. }) => Err(format!(
            "it did not end /bin/true within {} s; its output ends with: {output_end}",
            PATIENCE.as_secs()
        )),
        Err(SceneError::Failed { status, output_end, .. }) => {
            Err(format!("/bin/true failed in it ({status}): {output_end}"))
        }
        Err(error) => Err(error.to_string()),
    }
}

/// This very program, which arms must see.
pub(super) fn own_program() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/proc/self/exe"))
}
