//! `untax lab`.

pub mod list;
pub mod matrix;
mod recording;
pub mod run;
pub mod trial;

use crate::nearest::did_you_mean;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use untax_lab::{Dose, OtherLoad};
use untax_scenes::{RELEASES, Release};

/// A server by its id, or by what else it is called.
fn release() -> impl TypedValueParser<Value = Release> {
    let named = |release: &Release| PossibleValue::new(release.id).aliases(release.alias);
    let find = |given: String| Release::find(&given).ok_or("unknown");
    PossibleValuesParser::new(RELEASES.iter().map(named)).try_map(find)
}

/// A dose by its id.
fn dose() -> impl TypedValueParser<Value = Dose> {
    let find =
        |given: String| Dose::ALL.into_iter().find(|dose| dose.id() == given).ok_or("unknown");
    PossibleValuesParser::new(Dose::ALL.map(Dose::id)).try_map(find)
}

/// A load by its id.
fn load() -> impl TypedValueParser<Value = OtherLoad> {
    let find =
        |given: String| OtherLoad::ALL.into_iter().find(|load| load.id() == given).ok_or("unknown");
    PossibleValuesParser::new(OtherLoad::ALL.map(OtherLoad::id)).try_map(find)
}

/// The cause of that id, or all there are.
fn cause(id: &str) -> Result<&'static untax_lab::Cause, String> {
    untax_lab::Cause::find(id).ok_or_else(|| {
        let ids: Vec<&str> = untax_lab::CAUSES.iter().map(|cause| cause.id).collect();
        format!(
            "there is no cause {id}{}. Causes: {}",
            did_you_mean(id, ids.iter().copied()),
            ids.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use untax_scenes::{MARIADB, POSTGRES, POSTGRES_18, VALKEY};

    #[derive(Debug, Parser)]
    struct Line {
        #[arg(value_parser = release(), value_delimiter = ',')]
        engines: Vec<Release>,
    }

    #[test]
    fn an_engine_has_its_other_name_too() {
        let parsed = |engines| Line::try_parse_from(["untax", engines]).map(|line| line.engines);
        assert_eq!(parsed("postgres,mysql").unwrap(), [POSTGRES, MARIADB]);
        assert_eq!(parsed("postgresql,mariadb").unwrap(), [POSTGRES, MARIADB]);
        assert_eq!(parsed("postgres18,valkey").unwrap(), [POSTGRES_18, VALKEY]);
        let said = parsed("oracle").unwrap_err().to_string();
        assert!(said.contains("[possible values: postgres, mysql, redis, postgres17,"), "{said}");
    }
}
