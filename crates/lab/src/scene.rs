//! A scratch server with all that a cause needs around it, and the cause switched on and off.

use crate::LabError;
use crate::causes::{Cause, Dose, Injected, Plan};
use std::time::Duration;
use untax_scenes::{
    Disk, Engine, Group, HugePages, Instead, Limit, Load, MariaDb, Narrow, Network, Postgres,
    Redis, SceneError, Served, Setting, Setup,
};

/// A server, prepared for one cause. Fields are dropped in this order: the cause is removed, the
/// server ends, then what is around it goes.
pub struct Scene {
    injected: Option<Injected>,
    _disk_limits: Vec<Setting>,
    request_limits: Vec<Setting>,
    _pod_limit: Option<Setting>,
    _link: Option<Narrow>,
    server: Box<dyn Served>,
    group: Group,
    pod: Option<Group>,
    disk: Option<Disk>,
    network: Option<Network>,
    _pool: Option<HugePages>,
    engine: Engine,
    cause: &'static Cause,
    dose: Dose,
    plan: Plan,
}

impl Scene {
    /// Starts and fills the server; the cause is not there yet.
    pub fn set(cause: &'static Cause, engine: Engine, dose: Dose) -> Result<Self, LabError> {
        if let Some(why) = cause.impossible(engine, dose) {
            return Err(LabError::Impossible { cause: cause.id, why });
        }
        let plan = (cause.plan)(engine, dose);
        let pool =
            (plan.huge_pages > 0).then(|| HugePages::reserve(plan.huge_pages)).transpose()?;
        let pod = plan.pod_left_bytes.map(|_| Group::for_all()).transpose()?;
        let group = pod.as_ref().map_or_else(Group::for_server, Group::server_below)?;
        let disk = plan.disk_mebibytes.map(Disk::make).transpose()?;
        let network = plan.network.then(Network::make).transpose()?;
        let link = network.as_ref().zip(plan.link_bits_per_s);
        let link = link.map(|(network, bits_per_s)| network.link(bits_per_s)).transpose()?;
        let setup = Setup {
            place: plan.place,
            settings: plan.settings,
            group: Some(&group),
            disk: disk.as_ref().map(Disk::path),
            network: network.as_ref(),
            durable: plan.durable,
        };
        let server: Box<dyn Served> = match engine {
            Engine::Postgres => Box::new(Postgres::start_as(&setup)?),
            Engine::Mysql => Box::new(MariaDb::start_as(&setup)?),
            Engine::Redis => Box::new(Redis::start_as(&setup)?),
        };
        // Pages that lie idle would be found too. MariaDB takes its pages when it touches them, so
        // that what is idle now is not idle later.
        if let (Some(pool), Engine::Postgres) = (&pool, engine) {
            pool.trim()?;
        }
        server.fill(plan.fill_mebibytes)?;
        let shared = pod.as_ref().zip(plan.pod_left_bytes);
        let shared = shared.map(|(pod, left)| pod.limit_memory(pod.kept_bytes()? + left));
        let slow = disk.as_ref().zip(plan.disk_bytes_per_s);
        let slow = slow.map(|(disk, a_second)| disk.limit(&group, Limit::WriteBytes, a_second));
        let disk_limits = slow.transpose()?.unwrap_or_default();
        let ordinary = disk.as_ref().zip(plan.disk_requests_per_s);
        let ordinary = ordinary.map(|(disk, a_second)| disk.limit_requests(&group, a_second));
        Ok(Self {
            injected: None,
            _disk_limits: disk_limits,
            request_limits: ordinary.transpose()?.unwrap_or_default(),
            _pod_limit: shared.transpose()?,
            _link: link,
            server,
            group,
            pod,
            disk,
            network,
            _pool: pool,
            engine,
            cause,
            dose,
            plan,
        })
    }

    /// Switches the cause on or off. Gives whether the server was restarted for that.
    pub fn switch(&mut self, on: bool) -> Result<bool, LabError> {
        if on == self.injected.is_some() {
            return Ok(false);
        }
        // Before the restart: settings of the machine are to hold for all of the server's life.
        self.injected = if on { Some((self.cause.inject)(self)?) } else { None };
        let plan = &self.plan;
        if plan.cause_settings.is_none() && plan.cause_place.is_none() {
            return Ok(false);
        }
        let settings = plan.cause_settings.filter(|_| on).unwrap_or(plan.settings);
        let place = plan.cause_place.filter(|_| on).unwrap_or(plan.place);
        self.server.restart(place, settings)?;
        if self.engine == Engine::Redis {
            self.server.fill(self.plan.fill_mebibytes)?;
        }
        Ok(true)
    }

    /// Starts the load: that of the cause while it is on, when it has one of its own. `None` when
    /// nobody is to ask anything of the server.
    pub fn load(&self, seconds: u32) -> Result<Option<Load>, SceneError> {
        let own = self.plan.cause_work.filter(|_| self.injected.is_some());
        let Some(work) = own.or(self.plan.work) else { return Ok(None) };
        self.server.work(work, self.plan.fill_mebibytes, seconds).map(Some)
    }

    /// How long the load is to run before a check, and before a trial after a restart.
    pub fn settling(&self) -> Duration {
        Duration::from_secs(self.plan.settling_s)
    }

    /// Fails when the cause was too much for the server: what was measured then means nothing.
    pub fn survived(&self) -> Result<(), LabError> {
        // Hosts that do not limit memory kill nobody for it.
        match self.group.killed() {
            Ok(killed) if killed > 0 => Err(LabError::Killed { cause: self.cause.id }),
            _ => Ok(()),
        }
    }

    /// The server's main process.
    pub fn pid(&self) -> Option<u32> {
        self.server.pid()
    }

    /// What kind of server it is.
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// How much of the cause there is to be.
    pub fn dose(&self) -> Dose {
        self.dose
    }

    /// The server's control group.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// The group that it shares with neighbours.
    pub fn pod(&self) -> Result<&Group, SceneError> {
        let why = "this server shares its control group with nobody".to_owned();
        self.pod.as_ref().ok_or(SceneError::Host { why })
    }

    /// The server's disk.
    pub fn disk(&self) -> Result<&Disk, SceneError> {
        let why = "this server has no disk of its own".to_owned();
        self.disk.as_ref().ok_or(SceneError::Host { why })
    }

    /// Has the server's disk do other than the planned number of requests a second, until dropped.
    pub fn limit_requests(&self, a_second: u64) -> Result<Vec<Instead>, SceneError> {
        let planned = self.plan.disk_requests_per_s.unwrap_or_default();
        Disk::instead(&self.request_limits, planned, a_second)
    }

    /// The server's network.
    pub fn network(&self) -> Result<&Network, SceneError> {
        let why = "this server has no network of its own".to_owned();
        self.network.as_ref().ok_or(SceneError::Host { why })
    }

    /// How many CPUs this machine has.
    pub fn cpus() -> u32 {
        std::thread::available_parallelism()
            .map_or(1, |cpus| u32::try_from(cpus.get()).unwrap_or(u32::MAX))
    }
}
