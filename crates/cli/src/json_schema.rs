//! JSON Schemas, from the types that are printed.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};

/// The schema of what a type is printed as.
pub fn of<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
}
