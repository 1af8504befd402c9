//! Results of benches that advice stands on.

use super::layer::Layer;
use crate::platform::PlatformBench;

/// The results of one family of benches that are kept of the host of a check.
#[derive(Debug, Clone, Default)]
pub struct Kept {
    /// Those of this processor and kernel, the latest first.
    pub results: Vec<PlatformBench>,
    /// How many there are of other processors and kernels: their prices do not hold here.
    pub elsewhere: usize,
}

impl Kept {
    /// Why nothing is known of a layer.
    pub(super) fn why_none(&self, layer: Layer) -> Option<String> {
        let command = layer.command();
        match (self.results.is_empty(), self.elsewhere) {
            (false, _) => None,
            (true, 0) => Some(format!("not measured on this host: run {command}")),
            (true, _) => Some(format!(
                "measured on another processor or kernel only, whose prices do not hold here: run {command}"
            )),
        }
    }

    /// The baseline of the latest result.
    pub(super) fn baseline(&self) -> Option<&str> {
        self.results.first().map(|bench| bench.baseline.as_str())
    }
}
