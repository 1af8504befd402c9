//! `untax lab`.

pub mod list;
pub mod matrix;
pub mod run;
mod trial;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use untax_lab::{Dose, Engine};

/// An engine by its id.
fn engine() -> impl TypedValueParser<Value = Engine> {
    one_of(Engine::ALL, Engine::id)
}

/// A dose by its id.
fn dose() -> impl TypedValueParser<Value = Dose> {
    one_of(Dose::ALL, Dose::id)
}

fn one_of<T: Copy + Send + Sync + 'static, const N: usize>(
    all: [T; N],
    id: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let by_id = move |given: String| all.into_iter().find(|one| id(*one) == given);
    PossibleValuesParser::new(all.map(id)).try_map(move |given| by_id(given).ok_or("unknown"))
}

/// The cause of that id, or all there are.
fn cause(id: &str) -> Result<&'static untax_lab::Cause, String> {
    untax_lab::Cause::find(id).ok_or_else(|| {
        let ids: Vec<&str> = untax_lab::CAUSES.iter().map(|cause| cause.id).collect();
        format!("there is no cause {id}; there are: {}", ids.join(", "))
    })
}
