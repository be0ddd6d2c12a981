//! What a call into CUDA's or ROCm's runtime or driver is for, by its name.

/// What a runtime or driver call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallKind {
    /// Launches one kernel.
    Launch,
    /// Launches a whole graph of kernels.
    GraphLaunch,
    /// Copies memory, or asks the device to.
    Copy,
    /// Asks the device to fill memory.
    Fill,
    /// Waits until the device has done something.
    Synchronise,
    /// Asks for memory of the device, or of the computer for the device, or gives it back.
    Allocate,
    /// Anything else: events, queries, settings.
    Other,
}

impl CallKind {
    /// The kind of a call by its name.
    #[must_use]
    pub fn of(name: &str) -> Self {
        // INVALID and other words of Kineto have no such prefix.
        let Some(rest) =
            ["cuda", "hip", "cu", "runtimeFunction"].iter().find_map(|prefix| name.strip_prefix(prefix))
        else {
            return Self::Other;
        };
        let begins = |words: &[&str]| words.iter().any(|word| rest.starts_with(word));
        if rest.contains("Synchronize") {
            Self::Synchronise
        } else if begins(&["GraphLaunch"]) {
            Self::GraphLaunch
        } else if begins(&["Launch", "ExtLaunch", "ModuleLaunch", "ExtModuleLaunch", "HccModuleLaunch"]) {
            Self::Launch
        } else if begins(&["Memcpy"]) {
            Self::Copy
        } else if begins(&["Memset"]) {
            Self::Fill
        } else if begins(&[
            "Malloc",
            "Free",
            "HostAlloc",
            "HostFree",
            "HostMalloc",
            "HostRegister",
            "HostUnregister",
            "MemAlloc",
            "MemFree",
            "MemHostAlloc",
            "MemCreate",
            "MemRelease",
            "MemMap",
            "MemUnmap",
            "MemSetAccess",
            "MemAddressReserve",
            "MemAddressFree",
            "ArrayCreate",
        ]) {
            Self::Allocate
        } else {
            Self::Other
        }
    }

    /// Whether it gives the device something to do.
    #[must_use]
    pub fn gives_work(self) -> bool {
        matches!(self, Self::Launch | Self::GraphLaunch | Self::Copy | Self::Fill)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_known_by_name() {
        for (name, kind) in [
            ("cudaLaunchKernel", CallKind::Launch),
            ("cudaLaunchKernelExC", CallKind::Launch),
            ("cuLaunchKernelEx", CallKind::Launch),
            ("hipExtModuleLaunchKernel", CallKind::Launch),
            ("cudaGraphLaunch", CallKind::GraphLaunch),
            ("cudaMemcpyAsync", CallKind::Copy),
            ("cudaMemsetAsync", CallKind::Fill),
            ("cudaDeviceSynchronize", CallKind::Synchronise),
            ("cudaStreamSynchronize", CallKind::Synchronise),
            ("hipEventSynchronize", CallKind::Synchronise),
            ("cudaStreamWaitEvent", CallKind::Other),
            ("cudaMalloc", CallKind::Allocate),
            ("cudaFreeHost", CallKind::Allocate),
            ("cuMemCreate", CallKind::Allocate),
            ("cudaEventRecord", CallKind::Other),
            ("INVALID", CallKind::Other),
        ] {
            assert_eq!(CallKind::of(name), kind, "{name}");
        }
    }
}
