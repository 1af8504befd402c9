//! A Redis under a CPU limit that is too low, and a plan that says so.

use super::{Untax, demand, one_of, plan, text};
use serde_json::Value;
use untax_scenes::{Group, Redis, RedisBenchmark, SceneError, Setting, Setup};

/// The server; its limit and its group go after it.
pub struct Limited {
    redis: Redis,
    files: [String; 2],
    stat: String,
    _limit: Setting,
    _group: Group,
}

impl Limited {
    /// Starts it with so many CPUs.
    pub fn start(cpus: f64) -> Result<Self, SceneError> {
        let group = Group::for_server()?;
        let limit = group.limit_cpus(cpus)?;
        let (_, directory) = group.directory("cpu", "cpu")?;
        let stat = format!("{directory}/cpu.stat");
        let files = ["cpu.max", "cpu.cfs_quota_us"].map(|name| format!("{directory}/{name}"));
        let redis = Redis::start_as(&Setup { group: Some(&group), ..Setup::default() })?;
        Ok(Self { redis, files, stat, _limit: limit, _group: group })
    }

    /// The limit as the kernel tells it.
    pub fn limit(&self) -> String {
        self.files.each_ref().map(|file| text(file)).concat()
    }

    /// In how many of the kernel's periods of 0.1 s it was throttled so far.
    fn throttled(&self) -> u64 {
        let stat = text(&self.stat);
        let count = stat.lines().find_map(|line| line.strip_prefix("nr_throttled "));
        count.unwrap().parse().unwrap()
    }

    /// The plan from a check under load: its id, and itself. On a busy machine the server may get less
    /// than its limit, and is not throttled then: a check counts in which the kernel throttled it in two
    /// of three periods.
    pub fn planned(&self, untax: &Untax) -> Result<(String, Value), SceneError> {
        let load = RedisBenchmark {
            clients: 8,
            requests: 1_000_000_000,
            keys: 1000,
            value_bytes: 100,
            writes: false,
        };
        let running = self.redis.benchmark(&load)?;
        one_of(10, || {
            let before = self.throttled();
            untax.check(self.redis.pid().unwrap());
            let periods = self.throttled() - before;
            demand(periods >= 20, || format!("throttled in {periods} periods of a check"))
        });
        drop(running);
        Ok(plan(untax, "cpu-throttled", &[]))
    }

    /// A command that asks it so often.
    pub fn workload(&self, requests: u32) -> String {
        format!("redis-benchmark -s {} -q -t get -n {requests} -c 8", self.redis.socket())
    }
}
