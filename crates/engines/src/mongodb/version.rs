//! Which version a server is of: by its own word, else by the files that it wrote.

use crate::database_view::DatabaseView;
use untax_core::Reading::{self, Failed, Present};

/// The highest version of the wire protocol that each release speaks, which a server tells everyone.
/// Source: mongodb/mongo-java-driver, `ServerVersionHelper`.
const WIRE: [(i64, &str); 6] =
    [(8, "4.2"), (9, "4.4"), (13, "5.0"), (17, "6.0"), (21, "7.0"), (25, "8.0")];

/// The first version of the storage engine that no release before MongoDB 8.0 had: 7.0 has 11.2, 8.0 has
/// 11.3. Source: the file `WiredTiger` in their data directories.
const ENGINE_OF_8: (u32, u32) = (11, 3);

/// What the server says, else what the storage engine wrote into its directory when it was opened.
pub(super) fn of(view: &DatabaseView, directory: &Reading<String>) -> Reading<String> {
    let told = view.answer.as_ref().and_then(|answer| match &answer.version {
        Some(version) => Present(version.clone()),
        None => Failed("the server did not tell its version".to_owned()),
    });
    told.or_else(|| {
        directory.as_ref().and_then(|directory| {
            let file = format!("{}/WiredTiger", directory.trim_end_matches('/'));
            let keep = |line: &str| line.starts_with("WiredTiger ").then(|| line.to_owned());
            let text = view.host.filter_lines_inside(view.pid(), &file, keep);
            text.parse(&file, |text| Some(by_storage_engine(text)?.to_owned()))
        })
    })
}

/// The version by that of the wire protocol.
pub(super) fn by_wire(highest: i64) -> String {
    let last = WIRE[WIRE.len() - 1];
    match WIRE.iter().rev().find(|(wire, _)| *wire <= highest) {
        None => "4.0 or older".to_owned(),
        Some((wire, version)) if *wire == highest => (*version).to_owned(),
        Some((_, version)) if highest > last.0 => format!("{version} or newer"),
        Some((_, version)) => format!("{version} or a release after it"),
    }
}

/// The version by a line such as `WiredTiger 11.3.0: (August 1, 2024)`.
fn by_storage_engine(text: &str) -> Option<&'static str> {
    let mut numbers = text.lines().find_map(|line| {
        let number = line.strip_prefix("WiredTiger ")?.split(':').next()?;
        Some(number.split('.').map(str::parse::<u32>)).filter(|_| number.contains('.'))
    })?;
    let mut number = || numbers.next()?.ok();
    let known = (number()?, number()?);
    Some(if known >= ENGINE_OF_8 { "8.0 or newer" } else { "7 or older" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_by_their_wire_protocol() {
        assert_eq!([21, 25].map(by_wire), ["7.0", "8.0"]);
        assert_eq!(by_wire(24), "7.0 or a release after it");
        assert_eq!(by_wire(27), "8.0 or newer");
        assert_eq!(by_wire(6), "4.0 or older");
    }

    #[test]
    fn releases_by_their_storage_engine() {
        let of = |number: &str| {
            by_storage_engine(&format!("WiredTiger\nWiredTiger {number}: (August 1, 2024)\n"))
        };
        assert_eq!(of("11.3.1"), Some("8.0 or newer"));
        assert_eq!(of("12.0.0"), Some("8.0 or newer"));
        assert_eq!(of("11.2.0"), Some("7 or older"));
        assert_eq!(of("3.2.2"), Some("7 or older"));
        for garbage in ["", "x.y", "11", "99999999999.1"] {
            assert_eq!(of(garbage), None, "{garbage}");
        }
        assert_eq!(by_storage_engine("garbage"), None);
    }
}
