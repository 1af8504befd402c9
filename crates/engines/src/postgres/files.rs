//! What PostgreSQL's files and command line tell when the server does not answer.

use super::conf;
use crate::scene::Scene;
use crate::settings::{Map, Values, has_extension};
use untax_core::Reading::{self, Absent, Present};

/// How deep files may include each other, as in the server itself (`CONF_FILE_MAX_DEPTH`).
const MOST_DEPTH: usize = 10;

/// The most files that are read of one server.
const MOST_FILES: usize = 64;

/// Short options of the server and the settings they stand for.
const SHORT: [(&str, &str); 4] = [
    ("-B", "shared_buffers"),
    ("-N", "max_connections"),
    ("-p", "port"),
    ("-k", "unix_socket_directories"),
];

/// The data directory: the postmaster works in it.
pub(super) fn data_directory(scene: &Scene) -> Reading<String> {
    scene.directory.clone()
}

/// The major version that made the data directory.
pub(super) fn version(scene: &Scene) -> Reading<String> {
    data_directory(scene).and_then(|directory| {
        let path = format!("{directory}/PG_VERSION");
        let keep = |line: &str| line.parse::<f64>().is_ok().then(|| line.to_owned());
        let text = scene.host.kept_inside(scene.pid(), &path, keep);
        text.parse(&path, |text| text.lines().next().map(str::to_owned))
    })
}

/// Settings as the server reads them: its configuration file and what that includes, then
/// `postgresql.auto.conf`, then the command line.
pub(super) fn settings(scene: &Scene) -> Values {
    let mut reader = Reader { scene, found: Values::default(), files: 0 };
    let arguments = from_arguments(scene.arguments());
    let directory = data_directory(scene);
    let given = arguments.get("config_file").cloned().or_else(|| given_directory(scene));
    let main = match (given, &directory) {
        (Some(path), _) if path.starts_with('/') => Present(path),
        (_, directory) => directory.as_ref().map(|d| format!("{d}/postgresql.conf")),
    };
    match main {
        Present(path) => reader.read(&path, 0),
        gap => reader.found.missing(gap),
    }
    if let Present(directory) = &directory {
        reader.read_if_exists(&format!("{directory}/postgresql.auto.conf"), 0);
    }
    let mut values = reader.found;
    values.settings.extend(arguments);
    values.settings.retain(|name, _| conf::KEPT.contains(&name.as_str()));
    if let gap @ (Reading::Denied(_) | Reading::Failed(_)) = &scene.main.arguments {
        values.missing(gap.clone());
    }
    // The default of every version that has the setting.
    values.default_of("huge_pages", "try");
    values
}

/// `-D` names the directory of the configuration, which is not always that of the data.
fn given_directory(scene: &Scene) -> Option<String> {
    let arguments = scene.arguments();
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

struct Reader<'a> {
    scene: &'a Scene<'a>,
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
        match self.scene.host.kept_inside(self.scene.pid(), path, conf::keep) {
            Present(text) => {
                self.found.from_files = true;
                for (name, value) in text.lines().filter_map(conf::parse) {
                    self.apply(path, name, value, depth);
                }
                Present(())
            }
            gap @ Absent(_) => gap.map(|_| ()),
            gap => {
                self.found.missing(gap);
                Present(())
            }
        }
    }

    fn apply(&mut self, from: &str, name: String, value: String, depth: usize) {
        let directory = from.rsplit_once('/').map_or("", |(directory, _)| directory);
        let path =
            if value.starts_with('/') { value.clone() } else { format!("{directory}/{value}") };
        match name.as_str() {
            "include" => self.read(&path, depth + 1),
            "include_if_exists" => self.read_if_exists(&path, depth + 1),
            "include_dir" => self.read_directory(&path, depth + 1),
            _ => {
                self.found.settings.insert(name, value);
            }
        }
    }

    fn read_directory(&mut self, path: &str, depth: usize) {
        let listed = self.scene.host.names(&format!("/proc/{}/root{path}", self.scene.pid()));
        match listed {
            Present(names) => {
                let wanted = names.iter().filter(|n| has_extension(n, "conf"));
                for name in wanted {
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
