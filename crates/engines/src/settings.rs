//! Settings of a database: from the server itself where it answers, otherwise from its files and
//! command line, saying which and why.

use crate::answer::Answer;
use std::collections::BTreeMap;
use untax_core::Bytes;
use untax_core::Reading::{self, Failed, Present};
use untax_core::database::Settings;
use untax_core::reading::Gap;

/// Settings by name.
pub(crate) type Map = BTreeMap<String, String>;

/// What files and command line say.
#[derive(Debug, Default)]
pub(crate) struct Values {
    pub settings: Map,
    /// Whether a file of settings could be read.
    pub from_files: bool,
    /// Why no settings, or not all of them, could be read.
    pub why: Option<Gap>,
}

impl Values {
    /// An engine whose settings cannot be read from outside.
    pub fn none(why: &str) -> Self {
        Self { why: Some(Gap::Absent(why.to_owned())), ..Self::default() }
    }

    /// The value of a setting that no file and no argument names, where all could be read.
    pub fn default_of(&mut self, name: &str, value: &str) {
        if self.why.is_none() {
            self.settings.entry(name.to_owned()).or_insert_with(|| value.to_owned());
        }
    }

    /// Remembers why something could not be read; the first reason stays.
    pub fn note_gap<T>(&mut self, reading: Reading<T>) {
        if let Err(gap) = reading.into_result() {
            self.why.get_or_insert(gap);
        }
    }
}

/// Chooses the best source there is.
pub(crate) fn choose(answer: &Reading<Answer>, rest: impl FnOnce() -> Values) -> Reading<Settings> {
    let unanswered = match answer {
        Present(answer) if !answer.settings.is_empty() => {
            return Present(Settings {
                source: "socket".to_owned(),
                instead_of: String::new(),
                values: answer.settings.clone(),
            });
        }
        Present(_) => "the server told none of its settings".to_owned(),
        gap => gap.why().unwrap_or_default(),
    };
    let rest = rest();
    let why = rest.why.map(|gap| Reading::<()>::from(Err(gap)));
    match why {
        Some(gap) if rest.settings.is_empty() => {
            gap.and_then(|()| Failed("no settings were found".to_owned()))
        }
        why => {
            let source = if rest.from_files { "files" } else { "command line" };
            let mut reasons = vec![format!("socket: {unanswered}")];
            if let Some(why) = why.and_then(|gap| gap.why()) {
                reasons.push(format!("files: {why}"));
            }
            Present(Settings {
                source: source.to_owned(),
                instead_of: reasons.join("; "),
                values: rest.settings,
            })
        }
    }
}

/// Whether a name ends with this extension, in this very spelling; a hidden file has none.
pub(crate) fn has_extension(name: &str, extension: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(stem, found)| {
        !stem.starts_with('.') && !stem.is_empty() && found == extension
    })
}

/// A size as the engines write it: `6GB`, `128M`, `2048kB`, or a bare number of `unit`s.
pub(crate) fn bytes_of(text: &str, unit: Bytes) -> Option<Bytes> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text.get(..digits)?.parse().ok()?;
    let scale = match text.get(digits..)?.trim().to_ascii_lowercase().as_str() {
        "" => unit.0,
        "b" => 1,
        "k" | "kb" => 1 << 10,
        "m" | "mb" => 1 << 20,
        "g" | "gb" => 1 << 30,
        "t" | "tb" => 1 << 40,
        _ => return None,
    };
    number.checked_mul(scale).map(Bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_core::Reading::{Absent, Denied};

    #[test]
    fn sizes_in_every_spelling() {
        let kib = Bytes(1024);
        assert_eq!(bytes_of("2MB", kib), Some(Bytes::MIB_2));
        assert_eq!(bytes_of("2048", kib), Some(Bytes::MIB_2));
        assert_eq!(bytes_of("1G", Bytes(1)), Some(Bytes::GIB_1));
        assert_eq!(bytes_of("0", kib), Some(Bytes(0)));
        for bad in ["", "x", "12 parsecs", "99999999999999999999", "18446744073709551615G"] {
            assert_eq!(bytes_of(bad, kib), None, "{bad}");
        }
    }

    fn answer(settings: &[(&str, &str)]) -> Reading<Answer> {
        let settings = settings.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Present(Answer { settings, ..Answer::default() })
    }

    #[test]
    fn the_server_is_believed_first() {
        let settings = choose(&answer(&[("port", "1")]), || panic!("files were not needed"));
        assert_eq!(settings.value().unwrap().source, "socket");
    }

    #[test]
    fn files_say_what_they_stand_in_for() {
        let refused = Denied("the server wants a password".to_owned());
        let mut rest = Values { from_files: true, ..Values::default() };
        rest.settings.insert("port".to_owned(), "1".to_owned());
        let settings = choose(&refused, || rest).into_value().unwrap();
        assert_eq!(settings.source, "files");
        assert_eq!(settings.instead_of, "socket: permission denied: the server wants a password");
    }

    #[test]
    fn nothing_read_is_not_an_empty_set() {
        let silent: Reading<Answer> = Absent("not asked".to_owned());
        let mut rest = Values::default();
        rest.note_gap::<()>(Denied("/etc/my.cnf".to_owned()));
        assert_eq!(choose(&silent, || rest), Denied("/etc/my.cnf".to_owned()));
    }
}
