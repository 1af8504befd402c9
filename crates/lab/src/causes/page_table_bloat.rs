//! Page tables of many connections.

use super::small_pages;
use crate::cause::{Cause, Guards, Need};
use untax_scenes::Engine;

const CLIENTS: u32 = 128;

pub(super) const CAUSE: Cause = Cause {
    id: "page-table-bloat",
    summary: "128 connections that each map 1 GiB of buffers on pages of 4 KiB",
    mild: None,
    engines: &[Engine::Postgres],
    left_out: &[
        (
            Engine::Mysql,
            "MariaDB does not suffer from it: its threads share the page tables of one process",
        ),
        (
            Engine::Redis,
            "Redis does not suffer from it: it is one process, with one set of page tables",
        ),
    ],
    needs: &[Need::Root],
    takes: Some("memory; the time is that of small-pages"),
    environment: |engine, _| small_pages::environment(engine, CLIENTS),
    inject: |_| Ok(Guards::none()),
};
