//! Databases of which the host sees the sandbox alone.

use untax_core::window::Pair;

/// The program that is gVisor.
const GVISOR: &str = "runsc";

/// Whether the threads that are seen from here are not the database's but its sandbox's.
pub fn is_sandbox(pair: &Pair) -> bool {
    let is = |path: &String| path.rsplit('/').next() == Some(GVISOR);
    pair.end.executable.value().is_some_and(is)
}
