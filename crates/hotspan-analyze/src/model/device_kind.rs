//! Which kind of device a trace is about, found from its categories.

use hotspan_store::Trace;

use super::events::Role;

/// A kind of device, with torch's names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DeviceKind {
    /// The computer itself.
    #[default]
    Cpu,
    /// CUDA; ROCm too, which torch also calls CUDA.
    Cuda,
    /// Intel GPUs.
    Xpu,
    /// Meta's accelerators.
    Mtia,
    /// A backend outside torch's tree.
    PrivateUse1,
}

impl DeviceKind {
    /// The name in column titles.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Cpu => "CPU",
            Self::Cuda => "CUDA",
            Self::Xpu => "XPU",
            Self::Mtia => "MTIA",
            Self::PrivateUse1 => "PRIVATEUSE1",
        }
    }

    /// The device a trace was recorded with, beside the CPU.
    #[must_use]
    pub fn of(trace: &Trace) -> Option<Self> {
        let mut found = None;
        for (_, name, category) in trace.categories() {
            let role = Role::of(category);
            if !(role.is_device() || role == Role::Launch) {
                continue;
            }
            // A family in the name is certain; "kernel" alone is what every backend writes.
            for (prefix, kind) in
                [("xpu", Self::Xpu), ("mtia", Self::Mtia), ("privateuse1", Self::PrivateUse1)]
            {
                if name.starts_with(prefix) {
                    return Some(kind);
                }
            }
            found = Some(Self::Cuda);
        }
        found
    }
}
