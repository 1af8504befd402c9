//! The arguments of benches that can run in a cluster.

use super::template::Template;
use std::path::PathBuf;
use untax_scenes::{Cluster, SceneError};

/// Arguments of benches that can run in a cluster.
#[derive(Debug, Clone, Default, clap::Args)]
#[group(skip)]
pub(crate) struct ClusterArguments {
    /// Measure between pods of a cluster, in a namespace that is made for it and removed; needs --image
    #[arg(long, requires = "image")]
    pub(crate) cluster: bool,
    /// The cluster [default: what kubectl finds]
    #[arg(long, value_name = "FILE", requires = "cluster")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// An image with untax in it, for the pods
    #[arg(long, value_name = "IMAGE", requires = "cluster")]
    pub(crate) image: Option<String>,
    /// Where untax is in the pods [default: untax]
    #[arg(long, value_name = "PATH", requires = "cluster")]
    pub(crate) program: Option<String>,
    /// A directory of the nodes that pods see, read-only: where the image lacks untax or its libraries;
    /// may be repeated
    #[arg(long, value_name = "DIRECTORY", requires = "cluster")]
    pub(crate) mount: Vec<PathBuf>,
}

impl ClusterArguments {
    pub(crate) fn template(&self) -> Template {
        let mounts = self.mount.iter().map(|path| path.to_string_lossy().into_owned());
        Template {
            image: self.image.clone().unwrap_or_default(),
            program: self.program.clone().unwrap_or_else(|| "untax".to_owned()),
            mounts: mounts.collect(),
        }
    }

    /// A namespace in the cluster.
    pub(crate) fn make(&self) -> Result<Cluster, SceneError> {
        Cluster::make(untax_scenes::kubectl(self.kubeconfig.as_deref()))
    }
}
