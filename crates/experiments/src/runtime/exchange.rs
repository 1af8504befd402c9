//! Our own server in an arm, and its client outside: what the network stack of the arm costs.

use super::probe::own_program;
use super::scene::Scene;
use crate::network::exchange::{measured, run_client};
use crate::network::peers::{ClientSpec, Exchanged, Kind, Place, SERVER, ServerSpec};
use crate::platform::{Cell, Measured, Running, Trouble};
use std::net::Ipv4Addr;
use std::time::Duration;
use untax_changes::Program;
use untax_scenes::{Group, Job, PORT, SceneError, Started};
use untax_trials::Interrupt;

/// A sandbox starts in less than a second.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server that runs in an arm.
pub(super) struct ExchangeRunning {
    // In this order: the server ends before its directory and its group go.
    _server: Started,
    _job: Job,
    client: ClientSpec,
    program: Program,
    scene: Scene,
}

impl ExchangeRunning {
    pub(super) fn start(scene: Scene, kind: Kind, cell: &Cell) -> Result<Self, SceneError> {
        let program = own_program();
        let job = scene.job(&program, cell)?;
        // The job brings it to its network, its group and its CPUs.
        let spec = ServerSpec { kind, place: Place::default(), port: PORT, asked: false };
        let spec = serde_json::to_string(&spec).unwrap_or_default();
        let name = program.to_string_lossy().into_owned();
        // 0: it has no parent here to be tied to.
        let words = [name, SERVER.name.to_owned(), "0".to_owned(), spec];
        let server = job.start(&words, PATIENCE)?;
        let client = ClientSpec {
            kind,
            place: Place::of(&scene.network, &cell.cpus.client),
            address: Ipv4Addr::LOCALHOST,
            port: PORT,
            connections: 1,
            seconds: cell.workload.trial.as_secs_f64(),
        };
        Ok(Self { _server: server, _job: job, client, program: Program::this(), scene })
    }
}

impl Running for ExchangeRunning {
    fn trial(&mut self, interrupt: &Interrupt) -> Result<Measured, Trouble> {
        let exchanged: Exchanged = run_client(&self.program, &self.client)?;
        interrupt.check()?;
        measured(self.client.kind, &exchanged, None)
    }

    fn groups(&self) -> Vec<String> {
        self.scene.group.as_ref().map(Group::directories).unwrap_or_default()
    }
}
