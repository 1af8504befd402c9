//! How much of a problem the lab makes.

/// How much of a problem is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dose {
    /// So much that nothing else counts beside it.
    Strong,
    /// About as much as platforms take.
    Mild,
}

impl Dose {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Strong, Self::Mild];

    /// What goes with this dose.
    pub(crate) fn of<T>(self, strong: T, mild: T) -> T {
        match self {
            Self::Strong => strong,
            Self::Mild => mild,
        }
    }

    /// As results name it.
    pub fn id(self) -> &'static str {
        self.of("strong", "mild")
    }
}
