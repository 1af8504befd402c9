//! Servers on pages of each size: what is set on the server, and on the machine before it starts.

use crate::SceneError;
use crate::engine::Engine;
use crate::setting::{HugePages, Thp};
use untax_core::Bytes;
use untax_host::Host;

/// What a server's memory exceeds its buffers by: descriptors of buffers, locks, the rest of shared memory.
const BESIDE_BUFFERS: f64 = 1.1;
const BESIDE: Bytes = Bytes::from_mib(128);

/// Pages of a server's buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerPages {
    /// Base pages, and no others.
    Small,
    /// Transparent huge pages, without a pool.
    Transparent,
    /// Pages of this size from a pool.
    Pool(Bytes),
}

/// The machine as a server on such pages finds it; put back when dropped. Drop the server first.
pub struct Ground {
    pages: ServerPages,
    buffers: Bytes,
    pool: Option<HugePages>,
    _transparent: Thp,
    /// Memory of the machine in transparent huge pages before.
    transparent: Bytes,
}

impl Ground {
    /// Sets transparent huge pages, and reserves what a server with such buffers needs.
    pub fn prepare(pages: ServerPages, buffers: Bytes) -> Result<Self, SceneError> {
        let mode = if pages == ServerPages::Transparent { "always" } else { "never" };
        let transparent = Thp::set_both(mode, mode)?;
        let pool = match pages {
            ServerPages::Pool(size) => {
                let need = buffers.0 as f64 * BESIDE_BUFFERS + BESIDE.0 as f64;
                Some(HugePages::reserve_of(size, (need / size.0 as f64).ceil() as u64)?)
            }
            ServerPages::Small | ServerPages::Transparent => None,
        };
        let before = machine_transparent();
        Ok(Self { pages, buffers, pool, _transparent: transparent, transparent: before })
    }

    /// Gives back what the server that runs now does not need, and gives what it has of these pages; an error
    /// where that is less than half of its buffers: then it is on other pages.
    pub fn check(&self) -> Result<Bytes, SceneError> {
        let got = match (&self.pool, self.pages) {
            (Some(pool), _) => {
                pool.trim()?;
                pool.used()?
            }
            (None, ServerPages::Transparent) => {
                Bytes(machine_transparent().0.saturating_sub(self.transparent.0))
            }
            (None, _) => return Ok(self.buffers),
        };
        if got.0 < self.buffers.0 / 2 {
            let why = format!(
                "the server has {got} of its {} on these pages: memory is fragmented, or it took others",
                self.buffers
            );
            return Err(SceneError::Host { why });
        }
        Ok(got)
    }
}

/// Memory of all processes in transparent huge pages.
fn machine_transparent() -> Bytes {
    let text = Host::live().text("/proc/meminfo").into_value().unwrap_or_default();
    let kib = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    let names = ["AnonHugePages:", "ShmemHugePages:"];
    Bytes(names.iter().filter_map(|name| kib(name)).sum::<u64>() << 10)
}

impl Engine {
    /// Why its buffers cannot lie on such pages; none where they can.
    pub fn obstacle_to(self, pages: ServerPages) -> Option<&'static str> {
        match (self, pages) {
            (Self::Redis, ServerPages::Pool(_)) => Some("it takes no pages from a pool"),
            (Self::Mysql, ServerPages::Pool(size)) if size >= Bytes::GIB_1 => {
                Some("it chooses the size of its pages itself")
            }
            _ => None,
        }
    }

    /// About how many MiB so many rows of its usual table take.
    pub fn mebibytes(self, rows: u64) -> u64 {
        let in_mebibyte = match self {
            Self::Postgres => 100_000 / 15,
            Self::Mysql | Self::Redis => 4500,
        };
        rows.div_ceil(in_mebibyte).max(1)
    }

    /// Buffers that hold all of so many MiB of rows.
    pub fn buffers_of(self, mebibytes: u64) -> Bytes {
        Bytes::from_mib(mebibytes + mebibytes / 5 + 128)
    }

    /// The settings of a server with such buffers on such pages.
    pub fn settings_on(self, pages: ServerPages, buffers: Bytes) -> Vec<(&'static str, String)> {
        let mebibytes = buffers.0 >> 20;
        let is_pool = matches!(pages, ServerPages::Pool(_));
        match self {
            Self::Postgres => {
                let mut settings = vec![
                    ("shared_buffers", format!("{mebibytes}MB")),
                    ("huge_pages", if is_pool { "on" } else { "off" }.to_owned()),
                ];
                if let ServerPages::Pool(size) = pages {
                    settings.push(("huge_page_size", format!("{}MB", size.0 >> 20)));
                }
                settings
            }
            Self::Mysql => vec![
                ("innodb_buffer_pool_size", format!("{mebibytes}M")),
                ("large_pages", if is_pool { "ON" } else { "OFF" }.to_owned()),
            ],
            Self::Redis => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(engine: Engine, pages: ServerPages, name: &str) -> Option<String> {
        let settings = engine.settings_on(pages, Bytes::from_mib(256));
        settings.into_iter().find(|(other, _)| *other == name).map(|(_, value)| value)
    }

    #[test]
    fn each_engine_is_told_its_pages_in_its_own_words() {
        let gigantic = ServerPages::Pool(Bytes::GIB_1);
        let of = |engine, pages, name| setting(engine, pages, name).unwrap_or_default();
        assert_eq!(of(Engine::Postgres, gigantic, "huge_page_size"), "1024MB");
        assert_eq!(of(Engine::Postgres, ServerPages::Transparent, "huge_pages"), "off");
        assert_eq!(of(Engine::Mysql, ServerPages::Pool(Bytes::MIB_2), "large_pages"), "ON");
        assert_eq!(of(Engine::Mysql, ServerPages::Small, "innodb_buffer_pool_size"), "256M");
        assert!(Engine::Mysql.obstacle_to(gigantic).is_some());
        assert!(Engine::Postgres.obstacle_to(gigantic).is_none());
    }

    #[test]
    fn buffers_hold_all_rows() {
        for engine in [Engine::Postgres, Engine::Mysql] {
            let mebibytes = engine.mebibytes(1_000_000);
            assert!((100..300).contains(&mebibytes), "{mebibytes}");
            assert!(engine.buffers_of(mebibytes) > Bytes::from_mib(mebibytes));
        }
    }
}
