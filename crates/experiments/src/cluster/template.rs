//! What the pods of a bench are made of.

/// What pods are made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    pub(crate) image: String,
    pub(crate) program: String,
    pub(crate) mounts: Vec<String>,
}

#[cfg(test)]
impl Template {
    pub(crate) fn example() -> Self {
        Self {
            image: "registry.example/untax:1".to_owned(),
            program: "untax".to_owned(),
            mounts: vec!["/usr".to_owned()],
        }
    }
}
