//! What PostgreSQL's files and command line tell when the server does not answer.

use super::conf;
use crate::database_view::DatabaseView;
use crate::included_files::{Files, Statement, Syntax};
use crate::settings::{Map, Values};
use untax_core::Reading::{self, Present};

/// Short options of the server and the settings they stand for.
const SHORT: [(&str, &str); 4] = [
    ("-B", "shared_buffers"),
    ("-N", "max_connections"),
    ("-p", "port"),
    ("-k", "unix_socket_directories"),
];

/// The data directory: the postmaster works in it.
pub(super) fn data_directory(view: &DatabaseView) -> Reading<String> {
    view.directory.clone()
}

/// The major version that made the data directory.
pub(super) fn version(view: &DatabaseView) -> Reading<String> {
    data_directory(view).and_then(|directory| {
        let path = format!("{directory}/PG_VERSION");
        let keep = |line: &str| line.parse::<f64>().is_ok().then(|| line.to_owned());
        let text = view.host.filter_lines_inside(view.pid(), &path, keep);
        text.parse(&path, |text| text.lines().next().map(str::to_owned))
    })
}

/// Settings as the server reads them: its configuration file and what that includes, then
/// `postgresql.auto.conf`, then the command line.
pub(super) fn settings(view: &DatabaseView) -> Values {
    let mut files = Files::new(view, Configuration);
    let arguments = from_arguments(view.arguments());
    let directory = data_directory(view);
    let given = arguments.get("config_file").cloned().or_else(|| given_directory(view));
    let main = match (given, &directory) {
        (Some(path), _) if path.starts_with('/') => Present(path),
        (_, directory) => directory.as_ref().map(|d| format!("{d}/postgresql.conf")),
    };
    match main {
        Present(path) => files.read(&path),
        gap => files.note_gap(gap),
    }
    if let Present(directory) = &directory {
        files.read_if_exists(&format!("{directory}/postgresql.auto.conf"));
    }
    let mut values = files.into_values();
    values.settings.extend(arguments);
    values.settings.retain(|name, _| conf::KEPT.contains(&name.as_str()));
    if let gap @ (Reading::Denied(_) | Reading::Failed(_)) = &view.main.arguments {
        values.note_gap(gap.clone());
    }
    // The default of every version that has the setting.
    values.default_of("huge_pages", "try");
    values
}

/// `-D` names the directory of the configuration, which is not always that of the data.
fn given_directory(view: &DatabaseView) -> Option<String> {
    let arguments = view.arguments();
    let at = arguments.iter().position(|a| a.starts_with("-D"))?;
    let directory = match arguments[at].strip_prefix("-D")? {
        "" => arguments.get(at + 1)?,
        joined => joined,
    };
    Some(format!("{}/postgresql.conf", directory.trim_end_matches('/')))
}

/// `-c name=value`, `--name=value`, and the short options that matter.
fn from_arguments(arguments: &[String]) -> Map {
    let mut values = Map::new();
    let mut add = |assignment: &str| {
        if let Some((name, value)) = assignment.split_once('=') {
            values.insert(name.replace('-', "_").to_ascii_lowercase(), value.to_owned());
        }
    };
    let mut rest = arguments.iter().skip(1);
    while let Some(argument) = rest.next() {
        if let Some(long) = argument.strip_prefix("--") {
            add(long);
            continue;
        }
        let (option, joined) = argument.split_at_checked(2).unwrap_or((argument, ""));
        let mut value =
            || if joined.is_empty() { rest.next().cloned() } else { Some(joined.into()) };
        if option == "-c" {
            add(&value().unwrap_or_default());
        } else if let Some((_, name)) = SHORT.iter().find(|(short, _)| *short == option) {
            add(&format!("{name}={}", value().unwrap_or_default()));
        }
    }
    values
}

struct Configuration;

impl Syntax for Configuration {
    const EXTENSION: &'static str = "conf";

    fn keep(line: &str) -> Option<String> {
        conf::keep(line)
    }

    fn statements(&self, path: &str, text: &str) -> Vec<Statement> {
        let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
        let statement = |(name, value): (String, String)| {
            let beside = || {
                if value.starts_with('/') { value.clone() } else { format!("{directory}/{value}") }
            };
            match name.as_str() {
                "include" => Statement::Include(beside()),
                "include_if_exists" => Statement::IncludeIfExists(beside()),
                "include_dir" => Statement::IncludeDirectory(beside()),
                _ => Statement::Setting(name, value),
            }
        };
        text.lines().filter_map(conf::parse).map(statement).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_give_a_setting_on_the_command_line() {
        let line =
            "postgres -D /d -c huge_pages=on -B1GB --max-connections=7 -p 5433 -cfsync=off -i";
        let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let values = from_arguments(&arguments);
        let expected = [
            ("fsync", "off"),
            ("huge_pages", "on"),
            ("max_connections", "7"),
            ("port", "5433"),
            ("shared_buffers", "1GB"),
        ];
        assert_eq!(values, expected.map(|(k, v)| (k.to_owned(), v.to_owned())).into());
    }
}
