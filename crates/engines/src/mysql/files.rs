//! What the option files and the command line of MySQL and MariaDB tell when the server does not
//! answer. Settings that `SET PERSIST` wrote to `mysqld-auto.cnf` are not read.

use super::conf::{self, Line};
use super::product::product;
use crate::database_view::DatabaseView;
use crate::included_files::{Files, Statement, Syntax};
use crate::settings::{Map, Values};
use untax_core::Reading::{self, Absent, Present};
use untax_core::database::DataPlace;
use untax_core::io::Role;

/// Where the servers look, in their order; later ones win. Debian and Red Hat differ, and a file
/// that is not there is nothing unusual.
const DEFAULT_FILES: [&str; 3] = ["/etc/my.cnf", "/etc/mysql/my.cnf", "/usr/etc/my.cnf"];

/// Files that note the version that last upgraded the data directory.
const VERSION_FILES: [&str; 2] = ["mariadb_upgrade_info", "mysql_upgrade_info"];

/// The data directory: the server works in it.
pub(super) fn data_directory(view: &DatabaseView) -> Reading<String> {
    view.directory.clone().map(|path| path.trim_end_matches('/').to_owned())
}

/// Where it keeps its log and what is temporary.
pub(super) fn places(view: &DatabaseView) -> Vec<DataPlace> {
    let log = view.setting("innodb_log_group_home_dir").filter(|path| path.starts_with('/'));
    let own = [
        DataPlace::own(log.unwrap_or("#innodb_redo"), Role::Log),
        DataPlace::own("#innodb_temp", Role::Temp),
    ];
    let temporary = view.setting("tmpdir").unwrap_or("/tmp").split(':');
    let temporary = temporary.filter(|path| path.starts_with('/')).map(|path| DataPlace {
        is_common: true,
        ..DataPlace::own(path.trim_end_matches('/'), Role::Temp)
    });
    own.into_iter().chain(temporary).collect()
}

/// The version in the data directory, which is that of the last upgrade.
pub(super) fn version(view: &DatabaseView) -> Reading<String> {
    data_directory(view).and_then(|directory| {
        let mut first: Reading<String> = Absent("no file notes the version".to_owned());
        for name in VERSION_FILES {
            let path = format!("{directory}/{name}");
            let text =
                view.host.filter_lines_inside(view.pid(), &path, |l| number(l).map(str::to_owned));
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

pub(super) fn settings(view: &DatabaseView) -> Values {
    let version = version(view).into_value();
    let mariadb = product(view) == "MariaDB";
    let reads = |group: &str| conf::is_read(group, mariadb, version.as_deref());
    let mut files = Files::new(view, OptionFiles(reads));
    let arguments = view.arguments();
    let given = |name: &str| {
        let value = |a: &String| Some(a.strip_prefix(name)?.strip_prefix('=')?.to_owned());
        arguments.iter().find_map(value)
    };
    match given("--defaults-file") {
        Some(only) => files.read(&only),
        None if arguments.iter().any(|a| a == "--no-defaults") => {}
        None => {
            for path in DEFAULT_FILES {
                files.read_if_exists(path);
            }
            if let Some(extra) = given("--defaults-extra-file") {
                files.read(&extra);
            }
        }
    }
    let mut values = files.into_values();
    values.settings.extend(from_arguments(arguments));
    if let gap @ (Reading::Denied(_) | Reading::Failed(_)) = &view.main.arguments {
        values.note_gap(gap.clone());
    }
    values.default_of("large_pages", "OFF");
    values
}

fn from_arguments(arguments: &[String]) -> Map {
    let long = arguments.iter().skip(1).filter_map(|a| a.strip_prefix("--"));
    long.filter_map(conf::assignment)
        .filter(|(name, _)| conf::KEPT.contains(&name.as_str()))
        .collect()
}

/// Option files, of whose groups only some are this server's.
struct OptionFiles<R>(R);

impl<R: Fn(&str) -> bool> Syntax for OptionFiles<R> {
    const EXTENSION: &'static str = "cnf";

    fn keep(line: &str) -> Option<String> {
        conf::keep(line)
    }

    fn statements(&self, _path: &str, text: &str) -> Vec<Statement> {
        let mut ours = false;
        let statement = |line| match line {
            Line::Group(group) => {
                ours = self.0(&group);
                None
            }
            Line::Include(path) => Some(Statement::Include(path)),
            Line::IncludeDirectory(path) => Some(Statement::IncludeDirectory(path)),
            Line::Option(name, value) => ours.then_some(Statement::Setting(name, value)),
        };
        text.lines().filter_map(conf::parse).filter_map(statement).collect()
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
