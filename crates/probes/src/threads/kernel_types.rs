//! `struct thread` of threads.h, and what else the program in the kernel and this one agree on.

use untax_core::activity::{Cause, Doing, Polling};
use untax_core::database::Model;

/// `MAX_DATABASES` of threads.h.
pub(super) const MAX_DATABASES: usize = 64;

/// What threads of no database have for one.
pub(super) const STRANGER: u32 = MAX_DATABASES as u32;

/// `UNSEEN` of threads.h.
pub(super) const UNSEEN: u8 = 254;

/// The size of `struct thread` of threads.h: what `NewThread` says, and the time spent in each way.
const THREAD_BYTES: usize = 200 + 8 * (Cause::ALL.len() + Doing::ALL.len());

/// `MAX_STRANGERS` of threads.h.
pub(super) const MAX_STRANGERS: u32 = 256;

/// `struct thread` of threads.h, as it is before its first event.
#[derive(Clone, Copy)]
pub(super) struct NewThread {
    pub(super) since_ns: u64,
    pub(super) database: u32,
    pub(super) doing: u8,
    pub(super) limited: bool,
    pub(super) model: Model,
    pub(super) aside: bool,
    pub(super) polling: Polling,
    /// The number of the system call that it waits in, plus one; 0 where that is not known.
    pub(super) call: u32,
}

impl NewThread {
    pub(super) fn bytes(&self) -> [u8; THREAD_BYTES] {
        let mut bytes = [0; THREAD_BYTES];
        bytes[0..8].copy_from_slice(&self.since_ns.to_ne_bytes());
        bytes[24..28].copy_from_slice(&self.database.to_ne_bytes());
        bytes[28] = self.doing;
        bytes[30] = self.polling as u8;
        bytes[32] = self.limited.into();
        bytes[39] = (self.model == Model::Thread).into();
        bytes[40] = (self.model == Model::Process).into();
        bytes[43] = self.aside.into();
        bytes[44] = (self.polling == Polling::Forever).into();
        bytes[52..56].copy_from_slice(&self.call.to_ne_bytes());
        // Of a wait that goes on, its beginning is not known: it counts from now.
        bytes[64..72].copy_from_slice(&self.since_ns.to_ne_bytes());
        bytes
    }
}

/// The number of the database that a thread is of, of its `struct thread`.
pub(super) fn database(thread: &[u8]) -> Option<u32> {
    thread.get(24..28).and_then(|bytes| bytes.try_into().ok()).map(u32::from_ne_bytes)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use untax_core::activity;
    use untax_core::activity::Call;

    /// The words of one `enum` of the header that the program and this file share.
    fn header(name: &str) -> Vec<String> {
        let text = include_str!("../bpf/threads.h");
        let body =
            text.split_once(&format!("enum {name} {{")).unwrap().1.split_once('}').unwrap().0;
        let body: String =
            body.split("/*").map(|p| p.split_once("*/").map_or(p, |s| s.1)).collect();
        body.split(',').map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect()
    }

    /// Where the fields of one `struct` of the header are, and its size: bytes.
    pub(in super::super) fn places(name: &str) -> (BTreeMap<String, usize>, usize) {
        let text = include_str!("../bpf/threads.h");
        let body = text.split_once(&format!("\nstruct {name} {{")).unwrap().1;
        let body = body.split_once("\n}").unwrap().0;
        let body: String =
            body.split("/*").map(|p| p.split_once("*/").map_or(p, |s| s.1)).collect();
        let constants = [
            ("POLLINGS", Polling::ALL.len()),
            ("DOINGS", Doing::ALL.len()),
            ("LONG_WAITS", 4),
            ("CALLS", Call::ALL.len()),
            ("CAUSES", Cause::ALL.len()),
        ];
        let (mut places, mut end) = (BTreeMap::new(), 0_usize);
        for field in body.split(';').map(str::trim).filter(|field| !field.is_empty()) {
            let (kind, name) = field.split_once(' ').unwrap();
            let size =
                [("u8", 1), ("char", 1), ("u32", 4), ("u64", 8)].iter().find(|(k, _)| *k == kind);
            let size = size.unwrap().1;
            let mut dimensions = name.split('[');
            let name = dimensions.next().unwrap();
            let times = dimensions.map(|d| {
                let word = d.trim_end_matches(']');
                let constant = constants.iter().find(|(c, _)| *c == word).map(|(_, size)| *size);
                constant.unwrap_or_else(|| word.parse().unwrap())
            });
            end = end.next_multiple_of(size);
            places.insert(name.to_owned(), end);
            end += size * times.product::<usize>();
        }
        (places, end.next_multiple_of(8))
    }

    #[test]
    fn a_fresh_thread_is_one_as_the_kernel_sees_it() {
        let (places, bytes) = places("thread");
        assert_eq!(bytes, THREAD_BYTES);
        let new_thread = NewThread {
            since_ns: 1,
            database: 2,
            doing: 3,
            limited: true,
            model: Model::Process,
            aside: true,
            polling: Polling::Forever,
            call: 4,
        }
        .bytes();
        let set = |name: &str, value: u8| {
            assert_eq!(new_thread[places[name]], value, "{name}");
            usize::from(value)
        };
        let all = [
            ("since", 1),
            ("database", 2),
            ("doing", 3),
            ("limited", 1),
            ("forks", 1),
            ("aside", 1),
            ("asked", 1),
            ("polling", 2),
            ("call", 4),
        ];
        let sum: usize = all.into_iter().map(|(name, value)| set(name, value)).sum();
        let sum = sum + set("waits_since", 1);
        assert_eq!(new_thread.iter().map(|byte| usize::from(*byte)).sum::<usize>(), sum);
    }

    /// `ON_CPU` as `OnCpu`.
    fn pascal(word: &str) -> String {
        let first = |part: &str| part[..1].to_owned() + &part[1..].to_lowercase();
        word.split('_').map(first).collect()
    }

    #[test]
    fn the_kernel_and_this_program_number_alike() {
        let doings = header("doing");
        for (index, doing) in Doing::ALL.iter().enumerate() {
            assert_eq!(*doing as usize, index);
            assert_eq!(pascal(&doings[index]), format!("{doing:?}"));
        }
        assert_eq!(doings[Doing::ALL.len()], "DOINGS");
        assert!(doings.contains(&format!("UNSEEN = {UNSEEN}")));
        let pollings = header("polling");
        for (index, polling) in Polling::ALL.iter().enumerate() {
            assert_eq!(*polling as usize, index);
            assert_eq!(pascal(&pollings[index]), format!("{polling:?}"));
        }
        let calls = header("call");
        for (index, call) in Call::ALL.iter().enumerate() {
            assert_eq!(*call as usize, index);
            assert_eq!(pascal(&calls[index]), format!("Call{call:?}"));
        }
        assert!(include_str!("../bpf/threads.h").contains("#define MAX_DATABASES 64\n"));
        let causes = header("cause");
        for (index, cause) in Cause::ALL.iter().enumerate() {
            assert_eq!(*cause as usize, index);
            assert_eq!(pascal(&causes[index]), format!("Cause{cause:?}"));
        }
        let strangers = format!("#define MAX_STRANGERS {MAX_STRANGERS}\n");
        assert!(include_str!("../bpf/threads.h").contains(&strangers));
        // The first poll ends the way to the first request.
        let polls = format!("#define POLLS {}\n", activity::FIRST_REQUESTS + 1.0);
        assert!(include_str!("../bpf/threads.h").contains(&polls));
        let hang = format!("#define HANG_NS {}\n", activity::HANG_S * 1e9);
        assert!(include_str!("../bpf/threads.h").contains(&hang));
    }
}
