//! A Redis under a CPU limit that is too low, and a plan that says so.

use super::{Untax, demand, one_of, plan, text};
use serde_json::Value;
use untax_scenes::{Group, Load, Redis, RedisBenchmark, SceneError, Setting, Setup};

/// The server; its limit and its group go after it.
pub struct Limited {
    redis: Redis,
    files: [String; 2],
    stat: String,
    outer: Option<[String; 2]>,
    _limits: Vec<Setting>,
    _groups: Vec<Group>,
}

impl Limited {
    /// Starts it with so many CPUs.
    pub fn start(cpus: f64) -> Result<Self, SceneError> {
        Self::make(cpus, None)
    }

    /// The same in a group below one with the same limit.
    pub fn start_below(cpus: f64) -> Result<Self, SceneError> {
        Self::make(cpus, Some(Group::for_all()?))
    }

    fn make(cpus: f64, above: Option<Group>) -> Result<Self, SceneError> {
        let group = above.as_ref().map_or_else(Group::for_server, Group::server_below)?;
        let mut limits = Vec::new();
        let mut files = |group: &Group| -> Result<[String; 2], SceneError> {
            limits.push(group.limit_cpus(cpus)?);
            let (_, directory) = group.directory("cpu", "cpu")?;
            Ok(["cpu.max", "cpu.cfs_quota_us"].map(|name| format!("{directory}/{name}")))
        };
        let outer = above.as_ref().map(&mut files).transpose()?;
        let own = files(&group)?;
        // The inner limit goes first: version 1 has none above that of its parent.
        limits.reverse();
        let stat = format!("{}/cpu.stat", group.directory("cpu", "cpu")?.1);
        let redis = Redis::start_as(&Setup { group: Some(&group), ..Setup::default() })?;
        let groups = [Some(group), above].into_iter().flatten().collect();
        Ok(Self { redis, files: own, outer, stat, _limits: limits, _groups: groups })
    }

    /// The limit of the group above it as the kernel tells it.
    pub fn outer_limit(&self) -> Option<String> {
        Some(self.outer.as_ref()?.each_ref().map(|file| text(file)).concat())
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.redis.pid().unwrap()
    }

    /// Clients that ask it until this is dropped.
    pub fn load(&self) -> Result<Load, SceneError> {
        self.redis.benchmark(&RedisBenchmark {
            clients: 8,
            requests: 1_000_000_000,
            keys: 1000,
            value_bytes: 100,
            writes: false,
        })
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
        let running = self.load()?;
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
