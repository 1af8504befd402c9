//! Temporary tables that do not fit into memory.

use crate::cause::{Cause, Guards, Need};
use crate::environment::Environment;
use untax_scenes::{Engine, Kind, Work};

pub(super) const CAUSE: Cause = Cause {
    id: "mysql-temp-files",
    summary: "temporary tables of 10 MiB where 1 MiB may stay in memory",
    mild: Some("tables of a twentieth of that, and 800 rows read one by one for each"),
    engines: &[Engine::Mysql],
    left_out: &[
        (
            Engine::Postgres,
            "the lab does not do it to PostgreSQL: the rule is for MySQL and MariaDB; what it spills is in dirty-burst",
        ),
        (
            Engine::Redis,
            "Redis does not suffer from it: it answers from memory, without temporary files",
        ),
    ],
    needs: &[Need::Root],
    takes: None,
    environment: |engine, dose| Environment {
        settings: &[
            ("innodb_buffer_pool_size", "256M"),
            ("large-pages", "1"),
            ("tmp_table_size", "512M"),
            ("max_heap_table_size", "512M"),
        ],
        cause_settings: Some(&[
            ("innodb_buffer_pool_size", "256M"),
            ("large-pages", "1"),
            ("tmp_table_size", "1M"),
            ("max_heap_table_size", "1M"),
        ]),
        work: Some(Work { kind: dose.of(Kind::Sorts, Kind::Reports), clients: 8 }),
        fill_mebibytes: 30,
        ..Environment::healthy(engine)
    },
    inject: |_| Ok(Guards::none()),
};
