//! The list of experiments: `untax bench`, its help and its documents are made from it.

use crate::experiment::Experiment;
use crate::{affinity, locality, network, pages, runtime, storage};

/// All experiments, in the order in which help names them.
pub static EXPERIMENTS: &[Experiment] = &[
    pages::EXPERIMENT,
    runtime::EXPERIMENT,
    network::EXPERIMENT,
    storage::EXPERIMENT,
    affinity::EXPERIMENT,
    locality::EXPERIMENT,
];

impl Experiment {
    /// The experiment of an id.
    pub fn find(id: &str) -> Option<&'static Self> {
        EXPERIMENTS.iter().find(|experiment| experiment.id == id)
    }

    /// The experiment whose results have that schema.
    pub fn of_schema(schema: &str) -> Option<&'static Self> {
        // A bench of a server is one of pages, whose results have another form.
        let of_servers = schema == pages::SERVERS.schema;
        let schema = if of_servers { pages::EXPERIMENT.schema } else { schema };
        EXPERIMENTS.iter().find(|experiment| experiment.schema == schema)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_experiment_is_complete_and_found_by_id_and_schema() {
        for experiment in EXPERIMENTS {
            let id = experiment.id;
            assert!(std::ptr::eq(Experiment::find(id).unwrap(), experiment), "{id} twice");
            let of_schema = Experiment::of_schema(experiment.schema).unwrap();
            assert!(std::ptr::eq(of_schema, experiment), "{id}");
            let of_servers = Experiment::of_schema(pages::SERVERS.schema).map(|found| found.id);
            assert_eq!(of_servers, Some(pages::EXPERIMENT.id));
            assert!(experiment.schema.starts_with(&format!("untax.bench.{id}/")), "{id}");
            // That of the command line, which all of them share.
            let json = clap::Arg::new("json").long("json").action(clap::ArgAction::SetTrue);
            let command = (experiment.command)().arg(json);
            assert!(command.get_about().is_some(), "{id} has no help");
            command.debug_assert();
        }
    }
}
