//! Why a source gives no rows.

use untax_agent::AskError;

/// Why there is nothing to say of a fleet.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The source does not answer, or refuses.
    #[error("no answer to a query; see that the URL is that of Prometheus' API")]
    Ask(#[from] AskError),
    /// The answer has another form than Prometheus' API.
    #[error("{0} does not answer as Prometheus' API does; see that the URL is right")]
    Form(String),
    /// There are no rows of agents.
    #[error(
        "{0} has no metric of untax; let it scrape the agents (untax agent, port 9871) and ask again"
    )]
    NoAgents(String),
    /// No agent of those that were named answers.
    #[error("none of the agents answers: {0}")]
    NoneAnswers(String),
    /// No host of those that were named answers.
    #[error("none of the hosts answers: {0}")]
    NoHostAnswers(String),
}
