//! A terminal with the program on it.

use super::Untax;
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Longer than anything here takes: ends what hangs, measures nothing.
pub const HUNG: Duration = Duration::from_secs(120);

/// A terminal with the program on it.
pub struct Tty {
    child: Child,
    master: File,
    /// Kept open, so that what the program left behind can be looked at.
    pub slave: File,
    before: Termios,
    shown: Arc<Mutex<vt100::Parser>>,
}

/// Starts the program on a new terminal of that size: gives both ends of it too.
pub fn on_terminal(
    untax: &Untax,
    arguments: &[&str],
    size: (u16, u16),
) -> (Child, File, File, Termios) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let not_ours = rustix::fs::OFlags::NOCTTY.bits().cast_signed();
    let slave = OpenOptions::new().read(true).write(true).custom_flags(not_ours).open(name);
    let (master, slave) = (File::from(master), slave.unwrap());
    let end = || Stdio::from(slave.try_clone().unwrap());
    resize(&master, size.0, size.1);
    let before = tcgetattr(&slave).unwrap();
    // A test that is run by `nohup` does not make it ignore SIGHUP.
    let child = Command::new("env")
        .args([
            "--default-signal=HUP",
            "setsid",
            "--ctty",
            env!("CARGO_BIN_EXE_untax"),
            "--state-dir",
        ])
        .arg(untax.path("state"))
        .args(arguments)
        .env("TERM", "xterm-256color")
        .stdin(end())
        .stdout(end())
        .stderr(end())
        .spawn()
        .unwrap();
    (child, master, slave, before)
}

impl Tty {
    /// Starts the program on a new terminal of that size.
    pub fn start(untax: &Untax, arguments: &[&str], columns: u16, rows: u16) -> Self {
        let (child, master, slave, before) = on_terminal(untax, arguments, (columns, rows));
        let shown = Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 0)));
        let (mut from, parser) = (master.try_clone().unwrap(), Arc::clone(&shown));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut bytes) {
                parser.lock().unwrap().process(&bytes[..count]);
            }
        });
        Self { child, master, slave, before, shown }
    }

    pub fn resize(&self, columns: u16, rows: u16) {
        self.shown.lock().unwrap().screen_mut().set_size(rows, columns);
        resize(&self.master, columns, rows);
    }

    pub fn press(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    pub fn screen(&self) -> String {
        self.shown.lock().unwrap().screen().contents()
    }

    /// Waits until the screen is as it should be.
    pub fn until(&self, what: &str, is: impl Fn(&str) -> bool) -> String {
        let since = Instant::now();
        loop {
            let screen = self.screen();
            if is(&screen) {
                return screen;
            }
            assert!(since.elapsed() < HUNG, "no {what}:\n{screen}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub fn shows(&self, text: &str) -> String {
        self.until(text, |screen| screen.contains(text))
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the end of the program; the terminal is then as it was before.
    pub fn ended(mut self) -> ExitStatus {
        let status = end_of(&mut self.child);
        let after = tcgetattr(&self.slave).unwrap();
        assert_eq!(after.local_modes, self.before.local_modes);
        assert_eq!(after.input_modes, self.before.input_modes);
        assert_eq!(after.output_modes, self.before.output_modes);
        self.until("cursor on the first screen", |_| {
            let shown = self.shown.lock().unwrap();
            !shown.screen().alternate_screen() && !shown.screen().hide_cursor()
        });
        status
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program that is not left to itself.
pub struct Ended(pub Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn resize(master: &File, columns: u16, rows: u16) {
    let size = Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(master, size).unwrap();
}

pub fn end_of(child: &mut Child) -> ExitStatus {
    let since = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        assert!(since.elapsed() < HUNG, "it does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
}
