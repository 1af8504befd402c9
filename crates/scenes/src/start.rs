//! A scratch server of any engine.

use crate::setup::Setup;
use crate::work::{Database, Engine};
use crate::{MariaDb, Postgres, Redis, SceneError};

/// Starts an empty server of that engine.
pub fn start(engine: Engine, setup: &Setup) -> Result<Box<dyn Database>, SceneError> {
    Ok(match engine {
        Engine::Postgres => Box::new(Postgres::start_as(setup)?),
        Engine::Mysql => Box::new(MariaDb::start_as(setup)?),
        Engine::Redis => Box::new(Redis::start_as(setup)?),
    })
}
