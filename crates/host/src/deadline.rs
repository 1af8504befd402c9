//! Looking at filesystems that may never answer, such as those across a network whose server is gone.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use untax_core::Reading::{self, Failed};

/// For so long an answer is waited for: what is on a disk that works comes within milliseconds.
const DEADLINE: Duration = Duration::from_secs(2);

/// A process whose files somebody waits for, and whether that has ended.
type Waiting = (String, Arc<AtomicBool>);

static WAITING: Mutex<Vec<Waiting>> = Mutex::new(Vec::new());

/// Looks at what is at a path. One as another process sees it (`/proc/PID/root/…`) may be on any filesystem:
/// it is looked at in a thread that is left behind when that does not answer, and no other path of that
/// process is looked at until it does.
pub fn with_deadline<T: Send + 'static>(
    path: &str,
    look: impl FnOnce(&str) -> Reading<T> + Send + 'static,
) -> Reading<T> {
    let Some(process) = process_of(path) else { return look(path) };
    let silent = || Failed(format!("{path}: its filesystem does not answer"));
    let waiting = || WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    waiting().retain(|(_, ended)| !ended.load(Ordering::Relaxed));
    if waiting().iter().any(|(other, _)| other == process) {
        return silent();
    }
    let (answer, answered) = mpsc::sync_channel(1);
    let ended = Arc::new(AtomicBool::new(false));
    let (there, ends) = (path.to_owned(), Arc::clone(&ended));
    let looking = thread::Builder::new().spawn(move || {
        // Nobody may be waiting any more.
        let _ = answer.send(look(&there));
        ends.store(true, Ordering::Relaxed);
    });
    if let Err(error) = looking {
        return Failed(format!("{path}: {error}"));
    }
    match answered.recv_timeout(DEADLINE) {
        Ok(reading) => reading,
        Err(RecvTimeoutError::Disconnected) => Failed(format!("{path}: it could not be looked at")),
        Err(RecvTimeoutError::Timeout) => {
            waiting().push((process.to_owned(), ended));
            silent()
        }
    }
}

/// The directory of the process as which a path below its root is seen.
fn process_of(path: &str) -> Option<&str> {
    let (process, _) = path.split_once("/root")?;
    let pid = process.strip_prefix("/proc/")?;
    pid.bytes().all(|byte| byte.is_ascii_digit()).then_some(process)
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_core::Reading::Present;

    #[test]
    fn a_filesystem_that_never_answers_costs_the_deadline_once() {
        let looked = |path: &str| with_deadline(path, |path| Present(path.to_owned()));
        assert_eq!(looked("/proc/7/root/data").value().unwrap(), "/proc/7/root/data");
        let (go_on, stay) = mpsc::channel::<()>();
        let silent = with_deadline("/proc/7/root/nfs", move |_| {
            let _ = stay.recv();
            Present(())
        });
        assert!(silent.why().is_some_and(|why| why.contains("/proc/7/root/nfs: its filesystem")));
        assert!(!looked("/proc/7/root/data").is_present(), "not waited for again");
        assert!(looked("/proc/77/root/data").is_present() && looked("/proc/7/stat").is_present());
        drop(go_on);
        while !looked("/proc/7/root/data").is_present() {
            thread::yield_now();
        }
    }
}
