//! A connection for every request.

use crate::cause::{Cause, Guards, Need};
use crate::environment::Environment;
use untax_scenes::{Engine, Kind, Work};

pub(super) const CAUSE: Cause = Cause {
    id: "short-connections",
    summary: "eight clients that connect anew for every request",
    mild: Some("for every 200 requests, 8 of MariaDB, or 16 of Redis"),
    engines: &Engine::ALL,
    left_out: &[],
    needs: &[Need::Root],
    takes: None,
    environment: |engine, dose| {
        let (with, without) =
            dose.of((Kind::Reconnect, Kind::Reads), (Kind::Sessions, Kind::Batches));
        let of = |kind| Some(Work { kind, clients: 8 });
        Environment { cause_work: of(with), work: of(without), ..Environment::healthy(engine) }
    },
    inject: |_| Ok(Guards::none()),
};
