//! Command lines of processes, with secrets left out.

use crate::Host;
use untax_core::Reading;

/// Words in the name of an argument whose value is never kept.
const SECRET_WORDS: [&str; 7] = ["pass", "pwd", "secret", "token", "auth", "key", "conninfo"];

/// What stands in the place of a secret.
const LEFT_OUT: &str = "(left out)";

/// The arguments of a process, secrets left out. A process that rewrote its command line (as
/// PostgreSQL and Redis do) gives one argument with the whole title; a kernel thread none.
pub fn arguments(host: &Host, pid: u32) -> Reading<Vec<String>> {
    map_arguments(host, pid, |text| text)
}

/// As [`arguments`], with the line passed through `f` before anyone else sees it, for programs
/// that write more about their clients into their title than a check needs.
pub fn map_arguments(
    host: &Host,
    pid: u32,
    f: impl FnOnce(String) -> String,
) -> Reading<Vec<String>> {
    host.map_text(&format!("/proc/{pid}/cmdline"), |text| f(redact(&text))).map(|text| split(&text))
}

fn split(text: &str) -> Vec<String> {
    text.trim_end_matches('\0').split('\0').map(str::to_owned).filter(|a| !a.is_empty()).collect()
}

/// Replaces the values of arguments that look secret: `--requirepass x` as two arguments or as
/// one, `--password=x`, and `-c primary_conninfo=x`.
pub(crate) fn redact(text: &str) -> String {
    let mut hide_next = false;
    let arguments: Vec<String> = text
        .trim_end_matches('\0')
        .split('\0')
        .map(|argument| {
            if std::mem::take(&mut hide_next) && !argument.starts_with("--") {
                return LEFT_OUT.to_owned();
            }
            let words = argument.split('=').next().unwrap_or_default().to_lowercase();
            let named = argument.starts_with('-') || argument.contains('=');
            if !named || !SECRET_WORDS.iter().any(|w| words.contains(w)) {
                return argument.to_owned();
            }
            let name = argument.split(['=', ' ']).next().unwrap_or_default();
            hide_next = name == argument;
            if hide_next { name.to_owned() } else { format!("{name}={LEFT_OUT}") }
        })
        .collect();
    arguments.join("\0")
}

/// A shell command without its secrets: those of [`redact`], and what clients take as `-a SECRET` or `-pSECRET`
/// (a number after `-p` is a port). Rather too much is left out than too little.
pub fn without_secrets(command: &str) -> String {
    let words = redact(&command.split_whitespace().collect::<Vec<_>>().join("\0"));
    let mut hide_next = false;
    let word = |word: &str| {
        if std::mem::take(&mut hide_next) {
            return LEFT_OUT.to_owned();
        }
        hide_next = word == "-a";
        let is_secret = |rest: &str| rest.chars().any(|c| !c.is_ascii_digit());
        match word.strip_prefix("-p") {
            Some(rest) if is_secret(rest) => format!("-p{LEFT_OUT}"),
            _ => word.to_owned(),
        }
    };
    words.split('\0').map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_left_out_and_the_rest_is_kept() {
        let line = "redis-server\0--port\x006379\0--requirepass\0hunter2\0--masterauth=x\0--save\0\
                    -c\0primary_conninfo=host=a password=b\0--masterauth x=y\0\0";
        assert_eq!(
            split(&redact(line)),
            [
                "redis-server",
                "--port",
                "6379",
                "--requirepass",
                "(left out)",
                "--masterauth=(left out)",
                "--save",
                "-c",
                "primary_conninfo=(left out)",
                "--masterauth=(left out)"
            ]
        );
    }

    #[test]
    fn a_shell_command_is_shown_without_its_secrets() {
        for (command, shown) in [
            (
                "PGPASSWORD=x pgbench -p5432 -c 8",
                format!("PGPASSWORD={LEFT_OUT} pgbench -p5432 -c 8"),
            ),
            ("benchmark -a x -t get", format!("benchmark -a {LEFT_OUT} -t get")),
            ("slap -px -c 8", format!("slap -p{LEFT_OUT} -c 8")),
            (
                "sysbench --mysql-password=x run",
                format!("sysbench --mysql-password={LEFT_OUT} run"),
            ),
        ] {
            assert_eq!(without_secrets(command), shown);
        }
    }
}
