//! The arguments of every command that asks Prometheus or agents.

use crate::Usage;
use std::path::PathBuf;
use untax_agent::{Client, read_token};

/// How servers are asked.
#[derive(Debug, clap::Args)]
pub struct Asking {
    /// The file with the bearer token of Prometheus or of the agents
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// For https, trust the CAs in this PEM file alone [default: those that this host trusts, such as
    /// /etc/ssl/certs/ca-certificates.crt]
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// For https, the name that certificates must have [default: the host in the address]
    #[arg(long, value_name = "NAME")]
    server_name: Option<String>,
}

impl Asking {
    /// A client that asks so.
    pub fn client(&self) -> Result<Client, Usage> {
        let token = self.token_file.as_deref().map(read_token).transpose().map_err(Usage)?;
        let mut client = Client::new(token);
        if let Some(file) = &self.ca {
            client = client.trusting(file).map_err(|why| Usage(format!("--ca: {why}")))?;
        }
        if let Some(name) = &self.server_name {
            client =
                client.expecting(name).map_err(|why| Usage(format!("--server-name: {why}")))?;
        }
        Ok(client)
    }

    /// Fails if one of them is given where no server is asked, which is so without `option`.
    pub fn is_for(&self, option: &str) -> Result<(), Usage> {
        let given = [
            ("--token-file", self.token_file.is_some()),
            ("--ca", self.ca.is_some()),
            ("--server-name", self.server_name.is_some()),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            Some((name, _)) => Err(Usage(format!("{name} is for {option}; give that, too"))),
            None => Ok(()),
        }
    }
}
