//! `untax lab`.

pub mod list;
pub mod matrix;
pub mod run;
mod trial;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use untax_lab::Dose;
use untax_scenes::Engine;

/// An engine by its id, or by what else it is called.
fn engine() -> impl TypedValueParser<Value = Engine> {
    let named = |engine: Engine| PossibleValue::new(engine.id()).alias(engine.alias());
    let find = |given: String| Engine::find(&given).ok_or("unknown");
    PossibleValuesParser::new(Engine::ALL.map(named)).try_map(find)
}

/// A dose by its id.
fn dose() -> impl TypedValueParser<Value = Dose> {
    let find =
        |given: String| Dose::ALL.into_iter().find(|dose| dose.id() == given).ok_or("unknown");
    PossibleValuesParser::new(Dose::ALL.map(Dose::id)).try_map(find)
}

/// The cause of that id, or all there are.
fn cause(id: &str) -> Result<&'static untax_lab::Cause, String> {
    untax_lab::Cause::find(id).ok_or_else(|| {
        let ids: Vec<&str> = untax_lab::CAUSES.iter().map(|cause| cause.id).collect();
        format!("there is no cause {id}; there are: {}", ids.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[arg(value_parser = engine(), value_delimiter = ',')]
        engines: Vec<Engine>,
    }

    #[test]
    fn an_engine_has_its_other_name_too() {
        let parsed = |engines| Line::try_parse_from(["untax", engines]).map(|line| line.engines);
        assert_eq!(parsed("postgres,mysql,redis").unwrap(), Engine::ALL);
        assert_eq!(parsed("postgresql,mariadb,valkey").unwrap(), Engine::ALL);
        let said = parsed("oracle").unwrap_err().to_string();
        assert!(said.contains("[possible values: postgres, mysql, redis]"), "{said}");
    }
}
