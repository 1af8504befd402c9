//! A client in a pod that talks to a server elsewhere, for one cell.

use super::pods::{CONTAINER, CPU};
use super::template::Template;
use crate::child::HiddenCommand;
use crate::network::exchange::measured;
use crate::network::peers::{CLIENT, ClientSpec, Exchanged, Kind, Place};
use crate::platform::{Measured, Running, Trouble};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::net::Ipv4Addr;
use std::rc::Rc;
use untax_scenes::Cluster;
use untax_trials::Interrupt;

/// A client's pod, and the server that it is pointed at.
pub(crate) struct PodExchange {
    pub(crate) cluster: Rc<Cluster>,
    pub(crate) template: Template,
    /// The client's pod.
    pub(crate) pod: String,
    pub(crate) kind: Kind,
    pub(crate) connections: u32,
    pub(crate) address: Ipv4Addr,
    pub(crate) port: u16,
    pub(crate) seconds: f64,
}

impl Running for PodExchange {
    fn trial(&mut self, interrupt: &Interrupt) -> Result<Measured, Trouble> {
        let client = ClientSpec {
            kind: self.kind,
            place: Place { cpus: vec![CPU], ..Place::default() },
            address: self.address,
            port: self.port,
            connections: self.connections,
            seconds: self.seconds,
        };
        let exchanged: Exchanged =
            exec_own(&self.cluster, &self.template, &self.pod, &CLIENT, &client)?;
        interrupt.check()?;
        measured(self.kind, &exchanged, None)
    }
}

/// Runs a part of this program in a pod, and reads the last line of what it prints.
pub(crate) fn exec_own<T: DeserializeOwned>(
    cluster: &Cluster,
    template: &Template,
    pod: &str,
    part: &HiddenCommand,
    spec: &impl Serialize,
) -> Result<T, Trouble> {
    let spec = serde_json::to_string(spec).unwrap_or_default();
    // 0: in a pod it has no parent to be tied to.
    let line = [template.program.clone(), part.name.to_owned(), "0".to_owned(), spec];
    let output = cluster.exec(pod, CONTAINER, &line).map_err(|error| Trouble::of(&error))?;
    let found = output.lines().rev().find_map(|line| serde_json::from_str(line).ok());
    found.ok_or_else(|| Trouble::Failed(format!("{} in pod {pod} gave no figure", part.name)))
}
