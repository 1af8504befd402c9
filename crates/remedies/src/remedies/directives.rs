//! Directives of databases that only some versions know. A server that meets one that it does not know
//! does not start.

use untax_core::Database;

/// A directive, and the first version that knows it.
struct Directive {
    /// The engine.
    engine: &'static str,
    /// As its configuration has it.
    word: &'static str,
    /// The first version, by its numbers.
    since: &'static [u32],
}

/// Sources: release notes of PostgreSQL 14; redis.conf of Redis 6.0 and 6.2; Oracle's reference of
/// 11.2.0.2.
const DIRECTIVES: &[Directive] = &[
    Directive { engine: "postgres", word: "huge_page_size", since: &[14] },
    Directive { engine: "redis", word: "disable-thp", since: &[6, 2] },
    Directive { engine: "redis", word: "io-threads", since: &[6] },
    Directive { engine: "oracle", word: "use_large_pages", since: &[11, 2, 0, 2] },
];

/// Whether a database knows one of these directives. One whose version is not known may not.
pub fn knows(database: &Database, word: &str) -> bool {
    let mut all = DIRECTIVES.iter().filter(|d| d.engine == database.engine && d.word == word);
    all.any(|directive| is_since(database, directive.since))
}

/// A directive in the lines of a configuration that a database does not know.
pub fn unknown_in(database: &Database, text: &str) -> Option<&'static str> {
    let lines = || text.lines().map(|line| line.trim().to_lowercase());
    let says = |directive: &&Directive| {
        directive.engine == database.engine
            && lines().any(|line| line.split([' ', '=', '\t']).any(|part| part == directive.word))
    };
    let missing = |directive: &&Directive| !is_since(database, directive.since);
    DIRECTIVES.iter().filter(says).find(missing).map(|directive| directive.word)
}

fn is_since(database: &Database, since: &[u32]) -> bool {
    database.version.value().is_some_and(|version| numbers(version).as_slice() >= since)
}

/// The numbers at the beginning of a version such as `8.0.36-28`.
fn numbers(version: &str) -> Vec<u32> {
    let version = version.trim_start_matches(|c: char| !c.is_ascii_digit());
    version
        .split('.')
        .map_while(|part| {
            let digits = part.split(|c: char| !c.is_ascii_digit()).next()?;
            digits.parse().ok()
        })
        .collect()
}

/// Whether a database can be told which size of huge page to take: PostgreSQL by `huge_page_size`;
/// MariaDB tries all sizes by itself. MySQL and Oracle take the default.
pub fn names_its_page_size(database: &Database) -> bool {
    match database.engine.as_str() {
        "postgres" => knows(database, "huge_page_size"),
        "mysql" => database.product == "MariaDB",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_core::Reading;

    fn database(engine: &str, version: Reading<String>) -> Database {
        Database { version, ..Database::unknown(engine, 7, "not read") }
    }

    #[test]
    fn a_directive_is_for_versions_that_know_it() {
        let of = |engine: &str, version: &str, word: &str| {
            knows(&database(engine, Reading::Present(version.to_owned())), word)
        };
        for (version, knows) in [("13.16", false), ("14", true), ("14.1", true), ("9.6.24", false)]
        {
            assert_eq!(of("postgres", version, "huge_page_size"), knows, "{version}");
        }
        for (version, knows) in [("6.0.16", false), ("6.2", true), ("7.2.4", true), ("10.0", true)]
        {
            assert_eq!(of("redis", version, "disable-thp"), knows, "{version}");
        }
        assert!(of("oracle", "11.2.0.4", "use_large_pages"));
        assert!(!of("oracle", "11.2.0.1.0", "use_large_pages"));
        assert!(!knows(&database("redis", Reading::Absent(String::new())), "disable-thp"));
        assert!(!of("mongodb", "8.0.3", "io-threads"), "it is another engine's");
    }

    #[test]
    fn directives_are_found_in_a_text() {
        let old = database("postgres", Reading::Present("13.16".to_owned()));
        let text = "# Made by untax.\nhuge_pages = on\nhuge_page_size = 2MB\n";
        assert_eq!(unknown_in(&old, text), Some("huge_page_size"));
        assert_eq!(unknown_in(&old, "huge_pages = on\n"), None);
        let oracle = database("oracle", Reading::Absent(String::new()));
        let text = "ALTER SYSTEM SET use_large_pages=ONLY SCOPE=SPFILE;\n";
        assert_eq!(unknown_in(&oracle, text), Some("use_large_pages"));
    }
}
