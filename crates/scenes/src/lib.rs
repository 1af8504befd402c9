//! Scratch databases, loads and host settings for tests, benches and demonstrations.
//!
//! Every scene is removed when its value is dropped or when this process is killed, even by SIGKILL. A
//! shell in a process group of its own holds the other end of a pipe and cleans up when that pipe
//! closes (see `shell.rs`). A guard of `untax_changes` puts back settings of the whole machine (see
//! `setting.rs`). So no process, mount, setting or file is left. One thing stays: the controllers that
//! are enabled in the root of control groups of version 2, which limit no process.
//!
//! ```no_run
//! use untax_scenes::{HugePages, Pgbench, Runtime, Postgres, Turn};
//!
//! # fn main() -> Result<(), untax_scenes::SceneError> {
//! let _turn = Turn::wait()?;
//! let _pool = HugePages::reserve(600)?;
//! let settings = [("shared_buffers", "1GB"), ("huge_pages", "on")];
//! let postgres = Postgres::start(Runtime::Host, &settings)?;
//! postgres.pgbench_fill(10, 100)?;
//! let load = postgres.pgbench(&Pgbench { clients: 16, seconds: 10, ..Pgbench::default() })?;
//! let transactions_per_s = load.finish()?;
//! # Ok(())
//! # }
//! ```

mod account;
mod cluster;
mod container;
mod disk;
mod engine;
mod error;
mod group;
mod idle_cpus;
mod job;
mod load;
mod mariadb;
mod namespace;
mod neighbour;
mod network;
mod paths;
mod pgbouncer;
mod postgres;
mod program;
mod redis;
mod release;
mod root;
mod scratch;
mod server;
mod server_pages;
mod setting;
mod setup;
mod shell;
mod start;
mod volume;
mod work;
mod workload;
mod workloads;

pub use account::is_root;
pub use cluster::{Cluster, ClusterNode, kubectl};
pub use disk::{Disk, FreezeLoop, Limit};
pub use engine::Engine;
pub use error::SceneError;
pub use group::{Group, Version};
pub use idle_cpus::IdleCpus;
pub use job::{Job, Started};
pub use load::{Load, Pgbench, RedisBenchmark, Sysbench};
pub use mariadb::MariaDb;
pub use neighbour::Neighbour;
pub use network::{ConnectionTracking, Network, SlowLink};
pub use paths::{Counts, NetworkPath, PATHS, PORT, PathKind};
pub use pgbouncer::PgBouncer;
pub use postgres::Postgres;
pub use program::find as find_program;
pub use redis::{PIPELINED, Redis};
pub use release::{
    MARIADB, MARIADB_11, MYSQL_9, POSTGRES, POSTGRES_17, POSTGRES_18, REDIS, RELEASES, Release,
    VALKEY,
};
pub use server_pages::{Ground, ServerPages};
pub use setting::{DirtyLimits, HugePages, NumaBalancing, Override, Setting, Thp, Turn};
pub use setup::{OciRuntime, Runtime, Settings, Setup};
pub use start::start;
pub use volume::{Filesystem, Volume, limit_device};
pub use work::{Database, Kind, Stop, Work};
pub use workload::{Prepared, Watched, Workload};
pub use workloads::{WORKLOADS, has_go_tpc, tpcc};
