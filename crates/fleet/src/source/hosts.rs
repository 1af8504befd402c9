//! Plain hosts over ssh: each watches one window by its own untax, or by a copy that is removed afterwards.

use super::agents::take;
use super::error::FleetError;
use super::ssh::{Ssh, answer};
use crate::row::Rows;
use std::collections::BTreeSet;
use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Hosts that are asked at once.
const AT_ONCE: NonZero<usize> = NonZero::new(64).unwrap();

/// The most hosts of a file, and the longest line, bytes.
const MOST: usize = 10_000;
const LONGEST: usize = 255;

/// The hosts of a file, one a line, as ssh takes them: `HOST`, `USER@HOST` or a name of its configuration. What
/// follows a `#` is a comment. The error names the line.
pub fn hosts_of(text: &str) -> Result<Vec<String>, String> {
    let mut seen = BTreeSet::new();
    let mut hosts = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let host = line.split('#').next().unwrap_or_default().trim();
        if host.is_empty() {
            continue;
        }
        if !is_host(host) {
            return Err(format!("line {number}: {host:?} is no host; write HOST or USER@HOST"));
        }
        if seen.insert(host) {
            hosts.push(host.to_owned());
        }
    }
    match hosts.len() {
        0 => Err("it names no host; write one a line".to_owned()),
        1..=MOST => Ok(hosts),
        many => Err(format!("it names {many} hosts, and {MOST} is the most; split it")),
    }
}

/// Whether ssh, and a shell at the other end, take it for nothing but a host.
fn is_host(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-:@[]".contains(c);
    let begins_well =
        |part: &str| part.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '[');
    let parts: Vec<&str> = text.split('@').collect();
    text.len() <= LONGEST
        && text.chars().all(is_plain)
        && parts.len() <= 2
        && parts.into_iter().all(begins_well)
}

/// Asks hosts over ssh. The names of nodes are those of the hosts.
pub fn hosts(hosts: &[String], ssh: &Ssh) -> Result<Rows, FleetError> {
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let source = format!("{} hosts by ssh", hosts.len());
    let range_s = Some(ssh.window.as_secs_f64());
    let mut rows = Rows { source, now_s, range_s, ..Rows::default() };
    for (host, answer) in answers(hosts, |host| answer(ssh, host)) {
        if let Err(why) = answer.and_then(|text| take(&mut rows, &text)) {
            rows.unreachable.push((host, why));
        }
    }
    // A host that answered just now is not silent, whatever its clock says.
    rows.ended.iter_mut().for_each(|row| row.value = now_s);
    if rows.ended.is_empty() {
        let why = |(host, why): &(String, String)| format!("{host} {why}");
        let first = rows.unreachable.first().map_or_else(|| "they tell nothing".to_owned(), why);
        return Err(FleetError::NoHostAnswers(first));
    }
    Ok(rows)
}

/// Asks each of them, so many at once, and gives the answers in their order.
fn answers(
    hosts: &[String],
    ask: impl Fn(&str) -> Result<String, String> + Sync,
) -> Vec<(String, Result<String, String>)> {
    let next = AtomicUsize::new(0);
    let all = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.get().min(hosts.len()) {
            scope.spawn(|| {
                while let Some((number, host)) = take_next(&next, hosts) {
                    let answer = ask(host);
                    let mut all = all.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    all.push((number, host.clone(), answer));
                }
            });
        }
    });
    let mut all = all.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    all.sort_by_key(|(number, ..)| *number);
    all.into_iter().map(|(_, host, answer)| (host, answer)).collect()
}

fn take_next<'a>(next: &AtomicUsize, hosts: &'a [String]) -> Option<(usize, &'a String)> {
    let number = next.fetch_add(1, Ordering::Relaxed);
    Some((number, hosts.get(number)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_named_one_a_line_and_others_are_refused_by_their_line() {
        let text = "# all\n db-1 # first\nroot@db-2.example\n\n10.0.0.3\nroot@[fd00::1]\ndb-1\n";
        assert_eq!(
            hosts_of(text).unwrap(),
            ["db-1", "root@db-2.example", "10.0.0.3", "root@[fd00::1]"]
        );
        for bad in [
            "-oProxyCommand=x",
            "a b",
            "a;b",
            "a@-b",
            "a@b@c",
            "$(x)",
            "a'b",
            "é",
            "@a",
            &"a".repeat(256),
        ] {
            let error = hosts_of(&format!("ok\n{bad}\n")).unwrap_err();
            assert!(error.starts_with("line 2: "), "{bad}: {error}");
        }
        assert!(hosts_of("# none\n").unwrap_err().contains("one a line"));
        let many: String = (0..=MOST).map(|n| format!("h{n}\n")).collect();
        assert!(hosts_of(&many).unwrap_err().contains("split it"));
    }

    #[test]
    fn every_host_is_asked_once_and_no_more_than_64_are_at_once() {
        let hosts: Vec<String> = (0..200).map(|n| format!("h{n}")).collect();
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let all = answers(&hosts, |host| {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::sleep(std::time::Duration::from_millis(2));
            now.fetch_sub(1, Ordering::SeqCst);
            Ok(host.to_owned())
        });
        let names: Vec<&str> = all.iter().map(|(host, _)| host.as_str()).collect();
        assert_eq!(names, hosts);
        assert!(all.iter().all(|(host, answer)| answer.as_ref() == Ok(host)));
        assert!((2..=64).contains(&most.into_inner()));
    }
}
