//! A bench of pairs: the runner goes through its design, and each trial is saved as it ends.

use super::output::{Output, command, machine};
use super::record::{Measured, Record};
use anyhow::Context;
use untax_host::Host;
use untax_trials::{Design, Interrupt, Observer, Rig, Runner, Saved, Trial};

/// A design whose trials are to be made: they are in NAME.part.json until they are whole, and then in
/// NAME.json. A bench that was stopped goes on with the former.
pub struct Paired<'a> {
    output: &'a Output,
    name: &'a str,
    design: &'a Design,
    record: Record,
    saved: Saved,
    made: Vec<Trial<Vec<Measured>>>,
}

impl<'a> Paired<'a> {
    /// Reads what earlier benches left. Loads that the design has no trials of stay in the record.
    pub fn open(output: &'a Output, name: &'a str, design: &'a Design) -> anyhow::Result<Self> {
        output.prepare()?;
        let record = Record::read(&output.out.join(format!("{name}.json")))?;
        let (saved, made) = Saved::open(&output.out.join(format!("{name}.part.json")), design)?;
        Ok(Self { output, name, design, record, saved, made })
    }

    /// Makes the trials that are missing, and writes the record of all. A trial may measure several
    /// loads and arms.
    pub fn run<R>(self, rig: &mut R) -> anyhow::Result<Record>
    where
        R: Rig<Error = anyhow::Error, Outcome = Vec<Measured>>,
    {
        self.run_until(rig, &Interrupt::by_signals()?)
    }

    fn run_until<R>(self, rig: &mut R, interrupt: &Interrupt) -> anyhow::Result<Record>
    where
        R: Rig<Error = anyhow::Error, Outcome = Vec<Measured>>,
    {
        let Self { output, name, design, mut record, saved, made } = self;
        let host = Host::live();
        let made = Runner::new(design, interrupt, &host)
            .run(rig, made, &mut Saving(&saved))
            .context("stopped; the same command goes on with the trials so far")?;
        record.replace(&made);
        (record.command, record.machine) = (command(), machine());
        let text = serde_json::to_string_pretty(&record)? + "\n";
        output.write(&format!("{name}.json"), &text)?;
        saved.remove()?;
        Ok(record)
    }
}

/// Shows and saves each trial.
struct Saving<'a>(&'a Saved);

impl Observer<Vec<Measured>, anyhow::Error> for Saving<'_> {
    fn trial(&mut self, trials: &[Trial<Vec<Measured>>]) -> anyhow::Result<()> {
        if let Some(trial) = trials.last() {
            for Measured { load, arm, tps, .. } in &trial.outcome {
                eprintln!("pair {} {load} {arm}: {tps:.0} tps", trial.slot.block);
            }
            for guard in trial.spoiled() {
                eprintln!("this trial does not count: {guard}");
            }
        }
        Ok(self.0.save(trials)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_trials::{Arm, Cell, Slot};

    /// Counts its trials, and fails at one of them.
    struct Counting {
        runs: u32,
        fails_at: u32,
    }

    impl Rig for Counting {
        type Error = anyhow::Error;
        type Outcome = Vec<Measured>;

        fn prepare(&mut self, _: &[usize], _: &mut dyn FnMut(&str, f64)) -> anyhow::Result<()> {
            Ok(())
        }

        fn run(&mut self, slot: &Slot) -> anyhow::Result<Option<Vec<Measured>>> {
            anyhow::ensure!(self.runs != self.fails_at, "the server ended");
            self.runs += 1;
            let arm = ["A", "B"][slot.arm].to_owned();
            let check = Some(serde_json::json!({ "gain": null }));
            Ok(Some(vec![Measured { load: "-c 2".to_owned(), arm, tps: 0.5, check }]))
        }

        fn tear_down(&mut self) -> anyhow::Result<()> {
            Ok(())
        }
    }

    fn design(clients: u32) -> Design {
        let cells = vec![Cell { name: format!("-c {clients}"), length: None }];
        Design::of_visits(1, vec![Arm::new("A"), Arm::new("B")], cells, 3)
    }

    #[test]
    fn a_bench_that_was_stopped_goes_on_and_leaves_the_whole_record() {
        let folder = tempfile::tempdir().unwrap();
        let output = Output { out: folder.path().join("bench") };
        let (json, part) = (output.out.join("x.json"), output.out.join("x.part.json"));
        let (two, many) = (design(2), design(64));
        let run = |fails_at| {
            let mut rig = Counting { runs: 0, fails_at };
            let paired = Paired::open(&output, "x", &two).unwrap();
            let record = paired.run_until(&mut rig, &Interrupt::default());
            (record, rig.runs)
        };
        let (stopped, runs) = run(4);
        let why = format!("{:#}", stopped.unwrap_err());
        assert_eq!(
            (why.as_str(), runs),
            ("stopped; the same command goes on with the trials so far: the server ended", 4)
        );
        assert!(part.exists() && !json.exists());
        assert!(Paired::open(&output, "x", &many).is_err(), "another load");
        let (record, runs) = run(u32::MAX);
        assert_eq!((record.unwrap().pairs("-c 2", "B", "A").len(), runs), (3, 2));
        assert!(!part.exists());
        assert_eq!(Record::read(&json).unwrap().made.len(), 6);
        // One that is whole is measured anew.
        assert_eq!(run(u32::MAX).1, 6);
        assert_eq!(Record::read(&json).unwrap().made.len(), 6);
    }
}
