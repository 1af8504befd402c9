//! What became of an attempt to read something: a value, or the reason why there is none.

use serde::{Deserialize, Serialize};

/// The outcome of reading one thing from the host or a database.
///
/// Unknown is never zero and never `false`: the three ways of not knowing stay apart, in memory
/// and in JSON (`{"absent": why}`, `{"denied": why}`, `{"failed": why}`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading<T> {
    /// The value was read.
    Present(T),
    /// This host or database has no such thing; the text says why.
    Absent(String),
    /// It exists, but this user may not read it.
    Denied(String),
    /// It exists and may be read, but reading or parsing it went wrong.
    Failed(String),
}

use Reading::{Absent, Denied, Failed, Present};

impl<T> Reading<T> {
    /// The value, when there is one.
    pub fn value(&self) -> Option<&T> {
        match self {
            Present(value) => Some(value),
            Absent(_) | Denied(_) | Failed(_) => None,
        }
    }

    /// The value by move, when there is one.
    pub fn into_value(self) -> Option<T> {
        match self {
            Present(value) => Some(value),
            Absent(_) | Denied(_) | Failed(_) => None,
        }
    }

    /// Why there is no value, in words for a person; `None` when there is one.
    pub fn why(&self) -> Option<String> {
        match self {
            Present(_) => None,
            Absent(why) => Some(why.clone()),
            Denied(what) => Some(format!("permission denied: {what}")),
            Failed(why) => Some(format!("could not be read: {why}")),
        }
    }

    /// What an older capture does not hold.
    pub fn not_captured() -> Self {
        Self::absent("not captured")
    }

    /// No value, for this reason.
    pub fn absent(why: &str) -> Self {
        Self::Absent(why.to_owned())
    }

    /// Whether there is a value.
    pub fn is_present(&self) -> bool {
        matches!(self, Present(_))
    }

    /// Borrows the value, keeping the reason.
    pub fn as_ref(&self) -> Reading<&T> {
        match self {
            Present(value) => Present(value),
            Absent(why) => Absent(why.clone()),
            Denied(why) => Denied(why.clone()),
            Failed(why) => Failed(why.clone()),
        }
    }

    /// Borrows the value to change it, keeping the reason.
    pub fn as_mut(&mut self) -> Reading<&mut T> {
        match self {
            Present(value) => Present(value),
            Absent(why) => Absent(why.clone()),
            Denied(why) => Denied(why.clone()),
            Failed(why) => Failed(why.clone()),
        }
    }

    /// Turns the value into another, keeping the reason where there is none.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Reading<U> {
        self.and_then(|value| Present(f(value)))
    }

    /// Goes on reading from the value, keeping the reason where there is none.
    pub fn and_then<U>(self, f: impl FnOnce(T) -> Reading<U>) -> Reading<U> {
        match self {
            Present(value) => f(value),
            Absent(why) => Absent(why),
            Denied(why) => Denied(why),
            Failed(why) => Failed(why),
        }
    }

    /// Tries another way when this one gave no value; keeps the first reason if both fail.
    #[must_use]
    pub fn or_else(self, other: impl FnOnce() -> Self) -> Self {
        if self.is_present() {
            return self;
        }
        match other() {
            Present(value) => Present(value),
            _ => self,
        }
    }

    /// Parses with `f`, where `None` means that `what` did not have the expected form.
    pub fn parse<U>(self, what: &str, f: impl FnOnce(&T) -> Option<U>) -> Reading<U> {
        self.and_then(|value| match f(&value) {
            Some(parsed) => Present(parsed),
            None => Failed(format!("{what} has an unexpected form")),
        })
    }
}

impl<T> From<Result<T, Gap>> for Reading<T> {
    fn from(result: Result<T, Gap>) -> Self {
        match result {
            Ok(value) => Present(value),
            Err(Gap::Absent(why)) => Absent(why),
            Err(Gap::Denied(why)) => Denied(why),
            Err(Gap::Failed(why)) => Failed(why),
        }
    }
}

impl<T> Reading<T> {
    /// The value or the gap, for use with `?`.
    pub fn into_result(self) -> Result<T, Gap> {
        match self {
            Present(value) => Ok(value),
            Absent(why) => Err(Gap::Absent(why)),
            Denied(why) => Err(Gap::Denied(why)),
            Failed(why) => Err(Gap::Failed(why)),
        }
    }
}

/// A reading without a value, as JSON spells it: `{"absent": why}` and so on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Gap {
    /// There is no such thing here.
    Absent(String),
    /// It may not be read by this user.
    Denied(String),
    /// Reading it went wrong.
    Failed(String),
}

#[derive(Serialize)]
#[serde(untagged)]
enum Written<'a, T> {
    Value(&'a T),
    Gap(Gap),
}

impl<T: Serialize> Serialize for Reading<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.as_ref().into_result() {
            Ok(value) => Written::Value(value),
            Err(gap) => Written::Gap(gap),
        }
        .serialize(serializer)
    }
}

/// A value, or why there is none.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
enum Read<T> {
    Gap(Gap),
    Value(T),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Reading<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Read::deserialize(deserializer)? {
            Read::Gap(gap) => Err(gap).into(),
            Read::Value(value) => Present(value),
        })
    }
}

impl<T: schemars::JsonSchema> schemars::JsonSchema for Reading<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("Reading_of_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Read::<T>::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_stay_apart_in_json() {
        let readings = [
            Present(7_u64),
            Absent("no such pool".to_owned()),
            Denied("/proc/1/maps".to_owned()),
            Failed("garbage".to_owned()),
        ];
        let json = serde_json::to_string(&readings).unwrap();
        assert_eq!(
            json,
            r#"[7,{"absent":"no such pool"},{"denied":"/proc/1/maps"},{"failed":"garbage"}]"#
        );
        let back: [Reading<u64>; 4] = serde_json::from_str(&json).unwrap();
        assert_eq!(back, readings);
    }

    #[test]
    fn the_first_reason_survives_a_failed_fallback() {
        let first: Reading<u8> = Denied("the socket".to_owned());
        assert_eq!(first.clone().or_else(|| Absent("no file".to_owned())), first);
        assert_eq!(first.or_else(|| Present(1)), Present(1));
    }
}
