//! The program: loaded, told of instances and CPUs, attached; gone with its value.

use super::error::ExtError;
use libbpf_rs::{Link, MapCore, MapFlags, MapMut, Object, ObjectBuilder, PrintLevel};
use std::sync::Mutex;
use untax_core::cpus::Cpus;

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/soft.bpf.o"));

/// CPUs that masks of the program have: `MOST_CPUS` of `soft.bpf.c`.
const MOST_CPUS: u32 = 1024;

/// What libbpf said, the verifier's log included: its errors are numbers alone.
static SAID: Mutex<String> = Mutex::new(String::new());

/// How many words of the end of that are told: the verifier's last, and what libbpf makes of them.
const TOLD: usize = 80;

fn hear(_: PrintLevel, text: String) {
    if let Ok(mut said) = SAID.lock() {
        said.extend([text]);
    }
}

pub(super) struct Program {
    object: Object,
    link: Option<Link>,
}

impl Program {
    /// Loads it for the instances with these main processes.
    pub(super) fn load(roots: &[u32]) -> Result<Self, ExtError> {
        libbpf_rs::set_print(Some((PrintLevel::Warn, hear)));
        let open = ObjectBuilder::default().open_memory(OBJECT).map_err(failed)?;
        let program = Self { object: open.load().map_err(failed)?, link: None };
        let map = program.map("roots").map_err(failed)?;
        for (place, root) in (0_u32..).zip(roots) {
            let set = map.update(&root.to_ne_bytes(), &place.to_ne_bytes(), MapFlags::ANY);
            set.map_err(failed)?;
        }
        drop(map);
        Ok(program)
    }

    /// From now on the kernel asks it where threads of its class run.
    pub(super) fn attach(&mut self) -> Result<(), ExtError> {
        let mut map = self.map_mut("soft_ops").map_err(failed)?;
        let link = map.attach_struct_ops().map_err(failed)?;
        self.link = Some(link);
        Ok(())
    }

    /// Gives the instance at this place its CPUs.
    pub(super) fn set(
        &mut self,
        place: usize,
        preferred: &Cpus,
        usable: &Cpus,
    ) -> Result<(), ExtError> {
        let mut entry = 1_u64.to_ne_bytes().to_vec();
        entry.extend(words(preferred));
        entry.extend(words(usable));
        let refused = |_| ExtError::Cpus(usable.clone());
        let place = u32::try_from(place).map_err(|_| ExtError::Cpus(usable.clone()))?;
        let map = self.map("instances").map_err(refused)?;
        map.update(&place.to_ne_bytes(), &entry, MapFlags::ANY).map_err(refused)
    }

    /// Why the kernel ended it; `None` while it runs.
    pub(super) fn ended(&self) -> Option<String> {
        let entry = self.map("ended").ok()?.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).ok()??;
        let kind = entry.get(..4)?.iter().any(|byte| *byte != 0);
        let text = |from: usize, to: usize| -> String {
            let bytes = entry.get(from..to).unwrap_or_default();
            let bytes = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
            String::from_utf8_lossy(bytes).into_owned()
        };
        let words = [text(4, 64), text(64, 320)];
        let words: Vec<String> = words.into_iter().filter(|text| !text.is_empty()).collect();
        kind.then(|| words.join(": "))
    }

    fn map(&self, name: &str) -> libbpf_rs::Result<impl MapCore + '_> {
        let found = self.object.maps().find(|map| map.name() == name);
        found.ok_or_else(not_there)
    }

    fn map_mut(&mut self, name: &str) -> libbpf_rs::Result<MapMut<'_>> {
        let found = self.object.maps_mut().find(|map| map.name() == name);
        found.ok_or_else(not_there)
    }
}

fn not_there() -> libbpf_rs::Error {
    std::io::Error::from(std::io::ErrorKind::NotFound).into()
}

fn failed(source: libbpf_rs::Error) -> ExtError {
    let said = SAID.lock().map(|mut said| std::mem::take(&mut *said)).unwrap_or_default();
    let words: Vec<&str> = said.split_whitespace().collect();
    let told = words[words.len().saturating_sub(TOLD)..].join(" ");
    let said = if told.is_empty() { told } else { format!(": {told}") };
    ExtError::Load { said, source }
}

/// CPUs as the program has them: a bit each.
fn words(cpus: &Cpus) -> Vec<u8> {
    let mut words = vec![0_u64; MOST_CPUS as usize / 64];
    for cpu in cpus.iter().filter(|cpu| *cpu < MOST_CPUS) {
        words[cpu as usize / 64] |= 1 << (cpu % 64);
    }
    words.into_iter().flat_map(u64::to_ne_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The maps, and how they are written: the functions need `sched_ext`.
    #[test]
    fn cpus_are_set_for_as_many_instances_as_there_are_places() {
        if !rustix::process::geteuid().is_root() {
            return println!("SKIPPED: only root makes such maps");
        }
        libbpf_rs::set_print(Some((PrintLevel::Warn, hear)));
        let mut open = ObjectBuilder::default().open_memory(OBJECT).unwrap();
        for mut map in open.maps_mut().filter(|map| map.name() == "soft_ops") {
            map.set_autocreate(false).unwrap();
        }
        for mut program in open.progs_mut() {
            program.set_autoload(false);
        }
        let object = open.load().map_err(failed).unwrap();
        let mut program = Program { object, link: None };
        let cpus: Cpus = (0..2).collect();
        for place in 0..64 {
            program.set(place, &cpus, &cpus).unwrap();
        }
        assert!(program.set(64, &cpus, &cpus).is_err(), "there are 64 places");
        assert_eq!(program.ended(), None);
    }

    #[test]
    fn each_cpu_is_a_bit() {
        let bytes = words(&[0, 65, 1023, 4000].into_iter().collect());
        assert_eq!(bytes.len(), 128);
        let word =
            |place: usize| u64::from_ne_bytes(bytes[place * 8..place * 8 + 8].try_into().unwrap());
        assert_eq!((word(0), word(1), word(15)), (1, 2, 1 << 63));
    }
}
