//! A cause under another load than usual, or beside another cause.

use crate::cause::Cause;
use crate::environment::Environment;
use untax_scenes::{Engine, Kind, Work};

/// How a cause is put on a database in another way than its own.
#[derive(Debug, Clone, Copy, Default)]
pub struct Variant {
    /// Another load.
    pub load: Option<OtherLoad>,
    /// A cause that is there all the time, whether the one that is tried is or not.
    pub beside: Option<&'static Cause>,
}

/// A load whose clients, and not the database, decide how much is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtherLoad {
    /// Thirty clients that think for 20 ms between requests.
    Thinking,
    /// Eight clients that ask 400 times a second together.
    Paced,
}

impl OtherLoad {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Thinking, Self::Paced];

    /// Its id on a command line and in results.
    pub fn id(self) -> &'static str {
        match self {
            Self::Thinking => "thinking",
            Self::Paced => "paced",
        }
    }

    fn work(self) -> Work {
        match self {
            Self::Thinking => Work { kind: Kind::Thinks, clients: 30 },
            Self::Paced => Work { kind: Kind::Paced(400), clients: 8 },
        }
    }
}

impl Variant {
    /// Why a server of this engine cannot have it; `None` if it can.
    pub fn impossible(self, engine: Engine) -> Option<String> {
        let beside = self.beside.filter(|beside| !beside.engines.contains(&engine));
        match (self.load, engine) {
            (Some(_), Engine::Redis) => Some("the clients of Redis cannot think".to_owned()),
            (Some(OtherLoad::Paced), Engine::Mysql) => {
                Some("a paced load is made of PostgreSQL alone".to_owned())
            }
            _ => beside.map(|beside| format!("{} is not put on {}", beside.id, engine.id())),
        }
    }

    /// What the cause and the other one want together.
    pub(crate) fn environment(self, own: Environment, other: Option<Environment>) -> Environment {
        let both = other.map_or(own, |other| own.beside(other));
        match self.load {
            Some(load) => Environment { work: Some(load.work()), cause_work: None, ..both },
            None => both,
        }
    }
}
