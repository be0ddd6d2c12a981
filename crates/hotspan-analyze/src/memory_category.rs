//! What memory is used for, in torch's categories and with torch's numbers for them.

/// What a block of memory is used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemoryCategory {
    /// A weight of a model.
    Parameter,
    /// What an optimizer keeps from step to step.
    OptimizerState,
    /// Data that a model was called with, or that a data loader made.
    Input,
    /// Came and went within one operator, or within one optimizer step.
    Temporary,
    /// Made by the forward pass and kept for the backward pass.
    Activation,
    /// The gradient of a weight.
    Gradient,
    /// Made by the backward pass on its way to the gradients.
    AutogradDetail,
    /// Cannot be told.
    #[default]
    Unknown,
}

impl MemoryCategory {
    /// All of them, in the order in which torch numbers and stacks them.
    pub const ALL: [Self; 8] = [
        Self::Parameter,
        Self::OptimizerState,
        Self::Input,
        Self::Temporary,
        Self::Activation,
        Self::Gradient,
        Self::AutogradDetail,
        Self::Unknown,
    ];

    /// torch's number.
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }

    /// What programs call it.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Parameter => "parameter",
            Self::OptimizerState => "optimizer_state",
            Self::Input => "input",
            Self::Temporary => "temporary",
            Self::Activation => "activation",
            Self::Gradient => "gradient",
            Self::AutogradDetail => "autograd_detail",
            Self::Unknown => "unknown",
        }
    }

    /// What people call it.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Parameter => "Parameter",
            Self::OptimizerState => "Optimizer state",
            Self::Input => "Input",
            Self::Temporary => "Temporary",
            Self::Activation => "Activation",
            Self::Gradient => "Gradient",
            Self::AutogradDetail => "Autograd detail",
            Self::Unknown => "Unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_places_in_the_list() {
        assert!(MemoryCategory::ALL.iter().enumerate().all(|(index, category)| category.index() == index));
    }
}
