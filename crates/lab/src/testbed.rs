//! A scratch server with all that a cause needs around it.

use crate::dose::Dose;
use crate::environment::Environment;
use untax_scenes::{
    Database, Disk, Engine, Group, HugePages, IdleCpus, Limit, Load, Network, Override, Release,
    SceneError, Setting, Setup, SlowLink,
};

/// A server in the environment that a cause needs; the cause itself is not here. Fields are dropped
/// in this order: the limits, the server, then what is around it.
pub struct Testbed {
    _disk_limits: Vec<Setting>,
    request_limits: Vec<Setting>,
    _pod_limit: Option<Setting>,
    _link: Option<SlowLink>,
    server: Box<dyn Database>,
    group: Group,
    pod: Option<Group>,
    disk: Option<Disk>,
    network: Option<Network>,
    _pool: Option<HugePages>,
    idle: Option<IdleCpus>,
    engine: Engine,
    dose: Dose,
    environment: Environment,
}

impl Testbed {
    /// Makes the environment, starts the server in it and fills the server.
    pub(crate) fn start(
        environment: Environment,
        release: Release,
        dose: Dose,
    ) -> Result<Self, SceneError> {
        let pool = (environment.huge_pages > 0)
            .then(|| HugePages::reserve(environment.huge_pages))
            .transpose()?;
        let pod = environment.pod_left_bytes.map(|_| Group::for_all()).transpose()?;
        let group = pod.as_ref().map_or_else(Group::for_server, Group::server_below)?;
        let disk = environment.disk_mebibytes.map(Disk::make).transpose()?;
        let network = environment.network.then(Network::make).transpose()?;
        let link = network.as_ref().zip(environment.link_bits_per_s);
        let link = link.map(|(network, bits_per_s)| network.slow_link(bits_per_s)).transpose()?;
        let setup = Setup {
            release: None,
            runtime: environment.runtime,
            settings: environment.settings,
            group: Some(&group),
            disk: disk.as_ref().map(Disk::path),
            network: network.as_ref(),
            durable: environment.durable,
            ..Setup::default()
        };
        let idle = environment.idle_cpus.then(IdleCpus::awake).transpose()?;
        let server = untax_scenes::start(release, &setup)?;
        // Pages that lie idle would be found too. MariaDB takes its pages when it touches them, so
        // that what is idle now is not idle later.
        if let (Some(pool), Engine::Postgres) = (&pool, release.engine) {
            pool.trim()?;
        }
        server.fill(environment.fill_mebibytes)?;
        let shared = pod.as_ref().zip(environment.pod_left_bytes);
        let shared = shared.map(|(pod, left)| pod.limit_memory(pod.unreclaimable_bytes()? + left));
        let slow = disk.as_ref().zip(environment.disk_bytes_per_s);
        let slow = slow.map(|(disk, a_second)| disk.limit(&group, Limit::WriteBytes, a_second));
        let disk_limits = slow.transpose()?.unwrap_or_default();
        let ordinary = disk.as_ref().zip(environment.disk_requests_per_s);
        let ordinary = ordinary.map(|(disk, a_second)| disk.limit_requests(&group, a_second));
        Ok(Self {
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
            idle,
            engine: release.engine,
            dose,
            environment,
        })
    }

    /// Restarts the server, where that is to be, with the settings and in the runtime that it has while the cause is on, or
    /// off. Gives whether there was a need to.
    pub(crate) fn restart(&mut self, on: bool) -> Result<bool, SceneError> {
        self.let_sleep(on)?;
        let environment = &self.environment;
        if environment.cause_settings.is_none() && environment.cause_runtime.is_none() {
            return Ok(false);
        }
        let settings = environment.cause_settings.filter(|_| on).unwrap_or(environment.settings);
        let runtime = environment.cause_runtime.filter(|_| on).unwrap_or(environment.runtime);
        self.server.restart(runtime, settings)?;
        if self.engine == Engine::Redis {
            self.server.fill(self.environment.fill_mebibytes)?;
        }
        Ok(true)
    }

    /// Lets idle CPUs sleep while the cause is on, and keeps them awake while it is off, where that is it.
    fn let_sleep(&mut self, on: bool) -> Result<(), SceneError> {
        if self.environment.idle_cpus {
            // What was is put back first, so that it is what the next one puts back.
            self.idle = None;
            self.idle = Some(if on { IdleCpus::asleep()? } else { IdleCpus::awake()? });
        }
        Ok(())
    }

    /// What is done where a cause needs more than one setting in words; `None` where its summary says it.
    pub fn treatment(&self) -> Option<String> {
        self.environment.idle_cpus.then(IdleCpus::treatment)
    }

    /// Starts the load that it has while the cause is on, or off. `None` for an idle server.
    pub(crate) fn load(&self, on: bool, seconds: u32) -> Result<Option<Load>, SceneError> {
        let own = self.environment.cause_work.filter(|_| on);
        let Some(work) = own.or(self.environment.work) else { return Ok(None) };
        self.server.work(work, self.environment.fill_mebibytes, seconds).map(Some)
    }

    /// What is around the server.
    pub(crate) fn environment(&self) -> &Environment {
        &self.environment
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

    /// Has the server's disk do another number of requests a second than usual, until dropped.
    pub fn limit_requests(&self, a_second: u64) -> Result<Vec<Override>, SceneError> {
        let usual = self.environment.disk_requests_per_s.unwrap_or_default();
        Disk::override_limits(&self.request_limits, usual, a_second)
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
