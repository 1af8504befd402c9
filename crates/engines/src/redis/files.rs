//! What the configuration file and the command line of Redis and Valkey tell when the server does
//! not answer.

use super::conf;
use crate::database_view::DatabaseView;
use crate::settings::{Map, Values};
use untax_core::Reading::{self, Absent, Present};

/// The port of a server that is not told another.
const DEFAULT_PORT: u16 = 6379;

/// How deep files may include each other.
const MOST_DEPTH: usize = 10;

/// A running server's title no longer tells its file: these are the packagers' places for it.
/// `{port}` stands for the port, by which instances are told apart.
const PLACES: [&str; 9] = [
    "/etc/redis/redis.conf",
    "/etc/redis.conf",
    "/etc/redis/redis-{port}.conf",
    "/etc/redis/{port}.conf",
    "/usr/local/etc/redis/redis.conf",
    "/etc/valkey/valkey.conf",
    "/etc/valkey.conf",
    "/etc/valkey/valkey-{port}.conf",
    "/usr/local/etc/valkey/valkey.conf",
];

pub(super) fn settings(view: &DatabaseView) -> Values {
    let arguments = view.arguments();
    let mut values = Values::default();
    let given = arguments.get(1).filter(|a| !a.starts_with('-'));
    match given {
        Some(path) => match absolute(view, path).and_then(|path| file(view, &path, 0)) {
            Present(map) => {
                values.from_files = true;
                values.settings = map;
            }
            gap => values.note_gap(gap),
        },
        None => search(view, &mut values),
    }
    values.settings.extend(from_arguments(arguments));
    values.settings.remove("include");
    if let gap @ (Reading::Denied(_) | Reading::Failed(_)) = &view.main.arguments {
        values.note_gap(gap.clone());
    }
    values
}

/// Looks in the usual places for the file that names this server's port. Another server's file is
/// worse than none.
fn search(view: &DatabaseView, values: &mut Values) {
    let port = port_in_title(view).into_value().unwrap_or(DEFAULT_PORT).to_string();
    for place in PLACES {
        let path = place.replace("{port}", &port);
        match file(view, &path, 0) {
            Present(map) if map.get("port").is_none_or(|p| *p == port) => {
                values.from_files = true;
                values.settings = map;
                return;
            }
            Present(_) | Absent(_) => {}
            gap => values.note_gap(gap),
        }
    }
    values.note_gap::<()>(Absent(format!("no configuration file for port {port} was found")));
}

fn absolute(view: &DatabaseView, path: &str) -> Reading<String> {
    // The server changes to its data directory after it has read the file, so a relative path
    // leads nowhere.
    if path.starts_with('/') {
        return Present(path.to_owned());
    }
    Absent(format!("where {path} lies is not known (process {})", view.pid()))
}

fn file(view: &DatabaseView, path: &str, depth: usize) -> Reading<Map> {
    view.host.filter_lines_inside(view.pid(), path, conf::keep).map(|text| {
        let mut map = Map::new();
        for (name, value) in text.lines().filter_map(conf::parse) {
            if name == "include" && depth < MOST_DEPTH {
                let included = file(view, &value, depth + 1);
                map.extend(included.into_value().unwrap_or_default());
            } else {
                map.insert(name, value);
            }
        }
        map
    })
}

/// `--name value …`: each option runs up to the next.
fn from_arguments(arguments: &[String]) -> Map {
    let mut map = Map::new();
    let mut current = String::new();
    for argument in arguments.iter().skip(1) {
        if let Some(option) = argument.strip_prefix("--") {
            current = option.to_ascii_lowercase();
        } else if conf::KEPT.contains(&current.as_str()) {
            let value: &mut String = map.entry(current.clone()).or_default();
            if !value.is_empty() {
                value.push(' ');
            }
            value.push_str(argument);
        }
    }
    map
}

/// Where a title says that the server listens: the port of `redis-server 127.0.0.1:6379`.
fn port_in_title(view: &DatabaseView) -> Reading<u16> {
    let first = view.arguments().first().map_or("", String::as_str);
    let mut words = first.split(' ').skip(1);
    match words.next().and_then(|word| word.rsplit_once(':')?.1.parse().ok()) {
        Some(port) => Present(port),
        None => Absent("the title of the process names no port".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_command_line() {
        let line = "redis-server /etc/r.conf --port 6380 --save 900 1 --requirepass hunter2";
        let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let expected = [("port", "6380"), ("save", "900 1")];
        let expected = expected.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        assert_eq!(from_arguments(&arguments), expected);
    }
}
