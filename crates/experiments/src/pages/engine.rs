//! `bench pages --engine`: the same question on a real server, as a family of the platform benches.
//!
//! The pages are the arms, numbers of clients the work. The server is started anew for each trial of each
//! arm, because only then it maps its buffers; its table stays. All rows are in its buffers.

use super::options::Page;
use crate::platform::{
    Arm, Better, Cell, Family, Measured, Needs, Placement, PlatformError, Running, Trouble,
    Workload,
};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;
use untax_core::Bytes;
use untax_host::{Host, process};
use untax_scenes::{
    Database, Engine, Ground, Kind, Release, Runtime, SceneError, ServerPages, Setup, Work, start,
};
use untax_trials::Interrupt;

/// Rows where nothing else is asked for: buffers of about 1 GiB, which no TLB covers.
const ROWS: u64 = 5_000_000;

/// Seconds in which clients connect and each server process touches its memory, before a trial counts.
const WARM_UP_S: u32 = 1;

/// A server's own memory besides its buffers, and what each client takes, page tables included.
const SERVER: Bytes = Bytes::from_mib(256);
const CLIENT: Bytes = Bytes::from_mib(10);

/// Memory that 8 bytes of page table map.
const PER_ENTRY: u64 = 4096 / 8;

/// What is asked for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Request {
    pub(super) release: Release,
    pub(super) rows: Option<u64>,
    pub(super) pages: Vec<Page>,
    pub(super) clients: Vec<u32>,
    pub(super) trial: Duration,
}

/// A server of one engine.
pub(super) struct Servers {
    request: Request,
    mebibytes: u64,
    buffers: Bytes,
    server: Option<Rc<RefCell<Box<dyn Database>>>>,
}

impl Servers {
    pub(super) fn new(request: Request) -> Result<Self, PlatformError> {
        let engine = request.release.engine;
        if !request.pages.contains(&Page::Small) {
            let why = "the baseline of a server is 4k: name it among --pages".to_owned();
            return Err(PlatformError::Usage(why));
        }
        let mebibytes = engine.mebibytes(request.rows.unwrap_or(ROWS));
        let buffers = engine.buffers_of(mebibytes);
        Ok(Self { request, mebibytes, buffers, server: None })
    }

    fn engine(&self) -> Engine {
        self.request.release.engine
    }

    fn arm(&self, page: Page) -> Arm {
        let summary = match page {
            Page::Small => "base pages of 4 KiB",
            Page::Transparent => "transparent huge pages, always, without a pool",
            Page::Huge => "pages of 2 MiB from a pool",
            Page::Gigantic => "pages of 1 GiB from a pool",
        };
        let mut arm = Arm::new(page.id(), summary);
        for (name, value) in self.engine().settings_on(server_pages(page), self.buffers) {
            arm = arm.with(name, value);
        }
        match self.engine().obstacle_to(server_pages(page)) {
            Some(why) => arm.cannot(why),
            None => arm,
        }
    }

    /// The server with its table, stopped or not.
    fn server(&mut self) -> Result<Rc<RefCell<Box<dyn Database>>>, SceneError> {
        if let Some(server) = &self.server {
            return Ok(Rc::clone(server));
        }
        let settings = self.engine().settings_on(ServerPages::Small, self.buffers);
        let setup = Setup { settings: &borrowed(&settings), ..Setup::default() };
        let server = start(self.request.release, &setup)?;
        server.fill(self.mebibytes)?;
        Ok(Rc::clone(self.server.insert(Rc::new(RefCell::new(server)))))
    }
}

fn borrowed<'a>(settings: &'a [(&'static str, String)]) -> Vec<(&'a str, &'a str)> {
    settings.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

const fn server_pages(page: Page) -> ServerPages {
    match page.pool() {
        Some(size) => ServerPages::Pool(size),
        None if matches!(page, Page::Transparent) => ServerPages::Transparent,
        None => ServerPages::Small,
    }
}

/// The id of the work of so many clients.
fn id(clients: u32) -> String {
    format!("clients-{clients}")
}

impl Family for Servers {
    fn arms(&mut self) -> Vec<Arm> {
        // The smallest is what the others are compared with.
        let asked: BTreeSet<Page> = self.request.pages.iter().copied().collect();
        asked.into_iter().map(|page| self.arm(page)).collect()
    }

    fn workloads(&mut self) -> Vec<Workload> {
        let trial = self.request.trial.max(Duration::from_secs(1));
        let work = |clients: &u32| {
            let summary = format!("single rows by key, read by {clients} clients");
            let work = Workload::new(&id(*clients), &summary, "reads/s", Better::Higher);
            let placements = vec![Placement::None];
            Workload { trial, placements, is_usual: true, is_quick: true, ..work }
        };
        self.request.clients.iter().map(work).collect()
    }

    fn needs(&self) -> Needs {
        let most = u64::from(self.request.clients.iter().copied().max().unwrap_or(1));
        let tables = Bytes(self.buffers.0 / PER_ENTRY * most);
        let memory = self.buffers + SERVER + Bytes(CLIENT.0 * most) + tables;
        let disk = Bytes::from_mib(2 * self.mebibytes + 512);
        Needs { memory, disk, root: true }
    }

    fn start(
        &mut self,
        arm: &Arm,
        cell: &Cell,
        interrupt: &Interrupt,
    ) -> Result<Box<dyn Running>, Trouble> {
        let page = Page::from_id(&arm.id);
        let page = page.ok_or_else(|| Trouble::Failed(format!("there is no page {}", arm.id)))?;
        let mut clients = self.request.clients.iter();
        let clients = clients.find(|clients| id(**clients) == cell.workload.id).copied();
        let server = self.server().map_err(|error| Trouble::of(&error))?;
        interrupt.check()?;
        let up = Up {
            ground: None,
            server,
            clients: clients.unwrap_or(1),
            mebibytes: self.mebibytes,
            // The load generators count whole seconds.
            seconds: cell.workload.trial.as_secs_f64().ceil() as u32,
            on_pages: self.buffers,
        };
        up.launch(self.engine(), server_pages(page), self.buffers)
            .map(|up| Box::new(up) as Box<dyn Running>)
            .map_err(|error| Trouble::of(&error))
    }
}

/// A server on pages of one size, for one number of clients.
struct Up {
    server: Rc<RefCell<Box<dyn Database>>>,
    ground: Option<Ground>,
    clients: u32,
    mebibytes: u64,
    seconds: u32,
    /// Memory of the server on these pages.
    on_pages: Bytes,
}

impl Up {
    fn launch(
        mut self,
        engine: Engine,
        pages: ServerPages,
        buffers: Bytes,
    ) -> Result<Self, SceneError> {
        self.server.borrow_mut().stop();
        let ground = Ground::prepare(pages, buffers)?;
        let settings = engine.settings_on(pages, buffers);
        self.server.borrow_mut().restart(Runtime::Host, &borrowed(&settings))?;
        self.read(WARM_UP_S)?.finish()?;
        self.on_pages = ground.check()?;
        self.ground = Some(ground);
        Ok(self)
    }

    fn read(&self, seconds: u32) -> Result<untax_scenes::Load, SceneError> {
        let work = Work { kind: Kind::Reads, clients: self.clients };
        self.server.borrow().work(work, self.mebibytes, seconds)
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        // Its pages can be given back only when no server is on them.
        self.server.borrow_mut().stop();
        drop(self.ground.take());
    }
}

impl Running for Up {
    fn trial(&mut self, interrupt: &Interrupt) -> Result<Measured, Trouble> {
        let trouble = |error: SceneError| Trouble::of(&error);
        let load = self.read(self.seconds).map_err(trouble)?;
        // While all clients are connected, and have touched most of their memory.
        interrupt.sleep(Duration::from_secs_f64(f64::from(self.seconds) * 0.8))?;
        let tables = self.server.borrow().pid().and_then(page_tables);
        let rate = load.finish().map_err(trouble)?;
        let measured = Measured::of(rate).counting(rate * f64::from(self.seconds)).with(
            "on-pages",
            mebibytes(self.on_pages),
            "MiB",
        );
        Ok(match tables {
            Some(tables) => measured.with("page-tables", mebibytes(tables), "MiB"),
            None => measured,
        })
    }
}

fn mebibytes(bytes: Bytes) -> f64 {
    bytes.0 as f64 / Bytes::from_mib(1).0 as f64
}

/// Page tables of a process and all below it.
fn page_tables(main: u32) -> Option<Bytes> {
    let host = Host::live();
    let all = process::all(&host).into_value()?;
    let mut family = BTreeSet::from([main]);
    // Servers are two generations deep.
    for _ in 0..2 {
        let below = all.iter().filter(|stat| family.contains(&stat.parent));
        let below: Vec<u32> = below.map(|stat| stat.pid).collect();
        family.extend(below);
    }
    let tables = family.iter().filter_map(|pid| process::status(&host, *pid).into_value());
    tables.map(|status| status.page_tables).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_scenes::{MARIADB, POSTGRES};

    fn request(release: Release, pages: &[Page]) -> Request {
        let trial = Duration::from_millis(250);
        Request { release, rows: Some(100_000), pages: pages.to_vec(), clients: vec![1, 8], trial }
    }

    #[test]
    fn the_smallest_pages_are_the_baseline_and_what_an_engine_cannot_is_listed() {
        let pages = [Page::Gigantic, Page::Huge, Page::Small];
        let mut servers = Servers::new(request(MARIADB, &pages)).unwrap();
        let arms = servers.arms();
        let ids: Vec<&str> = arms.iter().map(|arm| arm.id.as_str()).collect();
        assert_eq!(ids, ["4k", "2m", "1g"]);
        assert!(arms[2].cannot.is_some() && arms[1].cannot.is_none());
        let names: Vec<String> = servers.workloads().into_iter().map(|work| work.id).collect();
        assert_eq!(names, ["clients-1", "clients-8"]);
        assert!(Servers::new(request(POSTGRES, &[Page::Huge])).is_err());
    }

    #[test]
    fn more_clients_need_more_page_tables() {
        let few = Servers::new(request(POSTGRES, &[Page::Small])).unwrap().needs();
        let many = Request { clients: vec![128], ..request(POSTGRES, &[Page::Small]) };
        assert!(Servers::new(many).unwrap().needs().memory > few.memory);
    }
}
