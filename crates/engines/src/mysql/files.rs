//! What the option files and the command line of MySQL and MariaDB tell when the server does not
//! answer. Settings that `SET PERSIST` wrote to `mysqld-auto.cnf` are not read.

use super::options::{self, Line};
use crate::scene::Scene;
use crate::settings::{Map, Values, has_extension};
use untax_core::Reading::{self, Absent, Present};

/// Where the servers look, in their order; later ones win. Debian and Red Hat differ, and a file
/// that is not there is nothing unusual.
const DEFAULT_FILES: [&str; 3] = ["/etc/my.cnf", "/etc/mysql/my.cnf", "/usr/etc/my.cnf"];

/// The most files that are read of one server.
const MOST_FILES: usize = 64;

/// How deep files may include each other (`MAX_ALLOWED_INCLUDES` is 10 in the server).
const MOST_DEPTH: usize = 10;

/// Files that note the version that last upgraded the data directory.
const VERSION_FILES: [&str; 2] = ["mariadb_upgrade_info", "mysql_upgrade_info"];

/// The data directory: the server works in it.
pub(super) fn data_directory(scene: &Scene) -> Reading<String> {
    scene.directory.clone().map(|path| path.trim_end_matches('/').to_owned())
}

/// The version in the data directory, which is that of the last upgrade.
pub(super) fn version(scene: &Scene) -> Reading<String> {
    data_directory(scene).and_then(|directory| {
        let mut first: Reading<String> = Absent("no file notes the version".to_owned());
        for name in VERSION_FILES {
            let path = format!("{directory}/{name}");
            let text = scene.host.kept_inside(scene.pid(), &path, |l| number(l).map(str::to_owned));
            match text.parse(&path, |text| number(text).map(str::to_owned)) {
                Present(version) => return Present(version),
                Absent(_) => {}
                gap => first = gap,
            }
        }
        first
    })
}

/// `10.11.14-MariaDB-0+deb12u2` is version 10.11.14.
pub(super) fn number(text: &str) -> Option<&str> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let number = text.get(..end)?.trim_end_matches('.');
    number.starts_with(|c: char| c.is_ascii_digit()).then_some(number)
}

pub(super) fn settings(scene: &Scene) -> Values {
    let version = version(scene).into_value();
    let mariadb = super::product(scene) == "MariaDB";
    let reads = |group: &str| options::is_read(group, mariadb, version.as_deref());
    let mut reader = Reader { scene, reads: &reads, found: Values::default(), files: 0 };
    let arguments = scene.arguments();
    let given = |name: &str| {
        let value = |a: &String| Some(a.strip_prefix(name)?.strip_prefix('=')?.to_owned());
        arguments.iter().find_map(value)
    };
    match given("--defaults-file") {
        Some(only) => reader.read(&only, 0),
        None if arguments.iter().any(|a| a == "--no-defaults") => {}
        None => {
            for path in DEFAULT_FILES {
                reader.read_if_exists(path, 0);
            }
            if let Some(extra) = given("--defaults-extra-file") {
                reader.read(&extra, 0);
            }
        }
    }
    let mut values = reader.found;
    values.settings.extend(from_arguments(arguments));
    if let gap @ (Reading::Denied(_) | Reading::Failed(_)) = &scene.main.arguments {
        values.missing(gap.clone());
    }
    values.default_of("large_pages", "OFF");
    values
}

fn from_arguments(arguments: &[String]) -> Map {
    let long = arguments.iter().skip(1).filter_map(|a| a.strip_prefix("--"));
    long.filter_map(options::assignment)
        .filter(|(name, _)| options::KEPT.contains(&name.as_str()))
        .collect()
}

struct Reader<'a> {
    scene: &'a Scene<'a>,
    reads: &'a dyn Fn(&str) -> bool,
    found: Values,
    files: usize,
}

impl Reader<'_> {
    fn read(&mut self, path: &str, depth: usize) {
        if let gap @ Absent(_) = self.try_read(path, depth) {
            self.found.missing(gap);
        }
    }

    fn read_if_exists(&mut self, path: &str, depth: usize) {
        let _absent_is_fine = self.try_read(path, depth);
    }

    /// Reads one file; what stands in the way is remembered, unless the file does not exist.
    fn try_read(&mut self, path: &str, depth: usize) -> Reading<()> {
        self.files += 1;
        if depth > MOST_DEPTH || self.files > MOST_FILES {
            return Absent(format!("{path} was not read: too many files include each other"));
        }
        match self.scene.host.kept_inside(self.scene.pid(), path, options::keep) {
            Present(text) => {
                self.found.from_files = true;
                self.apply(&text, depth);
                Present(())
            }
            gap @ Absent(_) => gap.map(|_| ()),
            gap => {
                self.found.missing(gap);
                Present(())
            }
        }
    }

    fn apply(&mut self, text: &str, depth: usize) {
        let mut ours = false;
        for line in text.lines().filter_map(options::parse) {
            match line {
                Line::Group(group) => ours = (self.reads)(&group),
                Line::Include(path) => self.read(&path, depth + 1),
                Line::IncludeDirectory(path) => self.read_directory(&path, depth + 1),
                Line::Option(name, value) if ours => {
                    self.found.settings.insert(name, value);
                }
                Line::Option(..) => {}
            }
        }
    }

    fn read_directory(&mut self, path: &str, depth: usize) {
        let path = path.trim_end_matches('/');
        let listed = self.scene.host.names(&format!("/proc/{}/root{path}", self.scene.pid()));
        match listed {
            Present(names) => {
                for name in names.iter().filter(|n| has_extension(n, "cnf")) {
                    self.read(&format!("{path}/{name}"), depth);
                }
            }
            gap => self.found.missing(gap),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_command_line() {
        let line = ["mysqld", "--large-pages", "--innodb_buffer-pool_size=1G", "--init-file=/x"];
        let values = from_arguments(&line.map(str::to_owned));
        let expected = [("innodb_buffer_pool_size", "1G"), ("large_pages", "ON")];
        assert_eq!(values, expected.map(|(k, v)| (k.to_owned(), v.to_owned())).into());
    }

    #[test]
    fn the_number_of_a_version() {
        assert_eq!(number("10.11.14-MariaDB-0+deb12u2"), Some("10.11.14"));
        assert_eq!(number("8.0.36"), Some("8.0.36"));
        assert_eq!(number("MariaDB"), None);
        assert_eq!(number(""), None);
    }
}
