//! Storage as a family of the platform benches.

use super::arguments::Request;
use super::commits::Commits;
use super::instrument::Comparison;
use super::paths;
use super::spec::Job;
use super::trial::Trial;
use super::volumes::{self, Made, Place};
use super::work::{self, Deed, Entry};
use crate::platform::{Arm, Cell, Family, Needs, PlatformError, Running, Trouble, Workload};
use std::collections::BTreeMap;
use untax_changes::Program;
use untax_core::Bytes;
use untax_trials::Interrupt;

/// What a scratch PostgreSQL takes of memory.
const SERVER: Bytes = Bytes(256 << 20);

/// Volumes and what is done on them.
pub(crate) struct Storage {
    program: Program,
    request: Request,
    places: Vec<Place>,
    made: BTreeMap<String, Made>,
    entries: Vec<Entry>,
    seed: u64,
}

impl Storage {
    /// Checks the directories; writes nothing.
    pub(crate) fn new(program: Program, request: Request) -> Result<Self, PlatformError> {
        let need = volumes::need(request.data);
        let given = paths::check("--path", &request.paths, need)?;
        let places = volumes::places(&request, &given);
        if given.is_empty() {
            // Images and directories lie below it, all at once.
            let need = Bytes(need.0 * (places.len() as u64 - 1));
            paths::check("TMPDIR", std::slice::from_ref(&request.base), need)?;
        }
        let entries = work::all(request.depth, request.limit);
        Ok(Self { program, request, places, made: BTreeMap::new(), entries, seed: 1 })
    }

    fn is_scratch(&self) -> bool {
        self.request.paths.is_empty()
    }

    /// The volume of an arm, made the first time.
    fn volume(&mut self, arm: &str, interrupt: &Interrupt) -> Result<&mut Made, Trouble> {
        if !self.made.contains_key(arm) {
            let place = self.places.iter().find(|place| place.arm == arm);
            let place = place.ok_or_else(|| Trouble::Failed(format!("there is no arm {arm}")))?;
            let made = place.make(&self.program, self.request.data, interrupt)?;
            self.made.insert(arm.to_owned(), made);
        }
        let made = self.made.get_mut(arm);
        made.ok_or_else(|| Trouble::Failed(format!("there is no volume {arm}")))
    }

    fn deed(&self, cell: &Cell) -> Result<Deed, Trouble> {
        let id = &cell.workload.id;
        let entry = self.entries.iter().find(|entry| entry.workload.id == *id);
        entry
            .map(|entry| entry.deed)
            .ok_or_else(|| Trouble::Failed(format!("there is no work {id}")))
    }
}

impl Family for Storage {
    fn arms(&mut self) -> Vec<Arm> {
        volumes::arms(&self.places, self.is_scratch())
    }

    fn workloads(&mut self) -> Vec<Workload> {
        self.entries.iter().map(|entry| entry.workload.clone()).collect()
    }

    fn needs(&self) -> Needs {
        // A volume in memory is one of the scratch ones; disks are checked where their files go.
        let in_memory = if self.is_scratch() { volumes::need(self.request.data) } else { Bytes(0) };
        Needs { memory: in_memory + SERVER, disk: Bytes(0), root: false }
    }

    fn start(
        &mut self,
        arm: &Arm,
        cell: &Cell,
        interrupt: &Interrupt,
    ) -> Result<Box<dyn Running>, Trouble> {
        let deed = self.deed(cell)?;
        self.seed += 1;
        let (program, limit) = (self.program.clone(), self.request.limit);
        let (data, seed) = (self.request.data, self.seed);
        let made = self.volume(&arm.id, interrupt)?;
        let job = |work| Job {
            directory: made.directory(),
            work,
            length: cell.workload.trial,
            data,
            seed,
            devices: made.way.devices.clone(),
            cpus: [cell.cpus.server.clone(), cell.cpus.client.clone()],
        };
        Ok(match deed {
            Deed::Child { work, shows, neighbour, is_limited } => Box::new(Trial {
                program,
                job: job(work),
                way: made.way.clone(),
                shows,
                neighbour,
                limit: is_limited.then_some(limit),
                neighbour_limit: limit,
            }),
            Deed::Commits => {
                let job = job(work::RECORDS);
                Box::new(Commits::start(program, job, made)?)
            }
            Deed::Compare { work, with } => {
                Box::new(Comparison::new(program, job(work), made.way.clone(), with)?)
            }
        })
    }
}
