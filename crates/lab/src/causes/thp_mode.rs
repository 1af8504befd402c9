//! Transparent huge pages forced on an engine that forks to save.

use crate::cause::{Cause, Guards, Need};
use crate::environment::Environment;
use untax_scenes::Thp;
use untax_scenes::{Engine, Kind, Work};

pub(super) const CAUSE: Cause = Cause {
    id: "thp-mode",
    summary: "transparent huge pages always, for a Redis that saves while it is written to",
    mild: None,
    engines: &[Engine::Redis],
    left_out: &[
        (
            Engine::Postgres,
            "the lab does not do it to PostgreSQL: no child of it saves its memory, and the rule only remarks on the mode",
        ),
        (
            Engine::Mysql,
            "the lab does not do it to MariaDB: no child of it saves its memory, and the rule only remarks on the mode",
        ),
    ],
    needs: &[Need::Root],
    takes: Some("memory, and time of the one fork that saves: each change copies 2 MiB"),
    environment: |engine, _| Environment {
        settings: &[("save", "2 1"), ("disable-thp", "yes")],
        cause_settings: Some(&[("save", "2 1"), ("disable-thp", "no")]),
        work: Some(Work { kind: Kind::Writes, clients: 8 }),
        ..Environment::healthy(engine)
    },
    inject: |_| Ok(Guards::of(Thp::set("always")?)),
};
