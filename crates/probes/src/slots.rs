//! Which database has which number in the kernel's tables: the same for as long as it is watched.

use untax_core::Database;

/// The numbers, and who has them.
#[derive(Default)]
pub(crate) struct Slots(Vec<Option<Database>>);

impl Slots {
    /// Frees the numbers of all but these databases; gives those that were freed.
    pub fn keep(&mut self, databases: &[Database]) -> Vec<u32> {
        let mut freed = Vec::new();
        for (index, slot) in (0..).zip(&mut self.0) {
            let gone = |had: &Database| !databases.iter().any(|one| one.is_same_instance(had));
            if slot.as_ref().is_some_and(gone) {
                *slot = None;
                freed.push(index);
            }
        }
        freed
    }

    /// The number of a database: the one that it has, or the lowest that is free.
    pub fn of(&mut self, database: &Database) -> u32 {
        let has = |slot: &Option<Database>| {
            slot.as_ref().is_some_and(|one| one.is_same_instance(database))
        };
        let found = self.0.iter().position(has);
        let index = found.or_else(|| self.0.iter().position(Option::is_none));
        let index = index.unwrap_or_else(|| {
            self.0.push(None);
            self.0.len() - 1
        });
        if found.is_none() {
            self.0[index] = Some(database.clone());
        }
        index as u32
    }

    /// The id of the database that has a number.
    pub fn id(&self, index: u32) -> Option<&str> {
        Some(self.0.get(index as usize)?.as_ref()?.id.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_core::Reading::Present;

    fn database(pid: u32, started: u64) -> Database {
        Database {
            started_ticks: Present(started),
            ..Database::unknown("postgres", pid, "not read")
        }
    }

    #[test]
    fn a_number_stays_and_is_given_again_when_free() {
        let (first, second, third) = (database(1, 10), database(2, 20), database(3, 30));
        let mut slots = Slots::default();
        assert_eq!([slots.of(&first), slots.of(&second), slots.of(&first)], [0, 1, 0]);
        assert!(slots.keep(&[second.clone(), first.clone()]).is_empty());
        assert_eq!(slots.keep(std::slice::from_ref(&second)), [0]);
        assert_eq!((slots.id(0), slots.id(1)), (None, Some("postgres:2")));
        assert_eq!([slots.of(&third), slots.of(&second), slots.of(&first)], [0, 1, 2]);
    }

    #[test]
    fn a_reused_pid_is_another_database() {
        let mut slots = Slots::default();
        slots.of(&database(1, 10));
        let again = database(1, 99);
        assert_eq!(slots.keep(std::slice::from_ref(&again)), [0]);
        assert_eq!(slots.of(&again), 0);
    }
}
