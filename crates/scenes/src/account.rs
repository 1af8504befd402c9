//! The OS user that a server runs as: database servers refuse to run as root.

use crate::SceneError;
use crate::program::host_text;

/// A user of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) name: String,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl Account {
    /// The user that runs this program.
    pub(crate) fn own() -> Result<Self, SceneError> {
        let uid = rustix::process::getuid().as_raw();
        let own = find(&host_text("/etc/passwd")?, |account| account.uid == uid);
        // A user without an entry, as containers have them, gets along without a name.
        Ok(own.unwrap_or_else(|| Self {
            name: uid.to_string(),
            uid,
            gid: rustix::process::getgid().as_raw(),
        }))
    }

    /// The user for a server: as root the package's own user or else `nobody`, otherwise our own.
    pub(crate) fn for_server(name: &str) -> Result<Self, SceneError> {
        if !is_root() {
            return Self::own();
        }
        let text = host_text("/etc/passwd")?;
        [name, "nobody"]
            .iter()
            .find_map(|name| find(&text, |account| account.name == *name))
            .ok_or_else(|| SceneError::Host { why: format!("no user {name} or nobody") })
    }

    /// The words that go before a command so that this user runs it, and so that it dies with
    /// its parent.
    pub(crate) fn prefix(&self, death_signal: &str) -> Vec<String> {
        let mut words = vec![format!("--pdeathsig={death_signal}")];
        if is_root() {
            words.push(format!("--reuid={}", self.uid));
            words.push(format!("--regid={}", self.gid));
            words.push("--clear-groups".to_owned());
        }
        words.insert(0, "setpriv".to_owned());
        words.push("--".to_owned());
        words
    }
}

/// Whether this program runs as root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn find(passwd: &str, wanted: impl Fn(&Account) -> bool) -> Option<Account> {
    passwd.lines().filter_map(parse).find(wanted)
}

fn parse(line: &str) -> Option<Account> {
    let mut fields = line.split(':');
    let name = fields.next()?.to_owned();
    let (uid, gid) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(Account { name, uid, gid })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_found_by_name_and_garbage_is_skipped() {
        let text =
            "root:x:0:0:root:/root:/bin/sh\n\n:::\nredis:x:103:106::/var/lib/redis:/bin/no\n";
        let redis = find(text, |account| account.name == "redis").unwrap();
        assert_eq!((redis.uid, redis.gid), (103, 106));
        assert_eq!(find(text, |account| account.name == "mysql"), None);
    }
}
