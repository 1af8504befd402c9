//! A scratch server of any engine.

use crate::engine::Engine;
use crate::release::Release;
use crate::setup::Setup;
use crate::work::Database;
use crate::{MariaDb, Postgres, Redis, SceneError};

/// Starts an empty server.
pub fn start(release: Release, setup: &Setup) -> Result<Box<dyn Database>, SceneError> {
    let setup = Setup { release: Some(release), ..*setup };
    Ok(match release.engine {
        Engine::Postgres => Box::new(Postgres::start_as(&setup)?),
        Engine::Mysql => Box::new(MariaDb::start_as(&setup)?),
        Engine::Redis => Box::new(Redis::start_as(&setup)?),
    })
}
