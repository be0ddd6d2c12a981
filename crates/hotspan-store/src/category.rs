//! What a category means: many spellings (old and new Kineto, ROCm, XPU, MTIA), one enum.

/// Where a span's time is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// On a CPU thread.
    Host,
    /// On a device, doing work.
    Device,
    /// Neither: marks, annotations copied to the device's row, the profiler's own overhead.
    Neither,
}

macro_rules! categories {
    ($($(#[$doc:meta])* $name:ident($side:ident): $($spelling:literal)|*;)*) => {
        /// The kind of a span, found from the category its file gives it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Category {
            $($(#[$doc])* $name,)*
            /// A category this version does not know. Kept, shown, exported; not analysed.
            Unknown,
        }

        impl Category {
            /// The category of this spelling.
            #[must_use]
            pub fn of(spelling: &str) -> Self {
                match spelling {
                    $($($spelling)|* => Self::$name,)*
                    _ => Self::Unknown,
                }
            }

            /// Where its time is spent.
            #[must_use]
            pub fn side(self) -> Side {
                match self {
                    $(Self::$name => Side::$side,)*
                    Self::Unknown => Side::Neither,
                }
            }
        }
    };
}

categories! {
    /// A torch operator.
    Operator(Host): "cpu_op" | "Operator" | "hpu_op";
    /// A `record_function` range, a profiler step, a DataLoader or optimizer mark.
    UserAnnotation(Host): "user_annotation";
    /// A call into the CUDA, ROCm, XPU or MTIA runtime.
    Runtime(Host): "cuda_runtime" | "Runtime" | "xpu_runtime" | "mtia_runtime" | "glow_runtime" | "privateuse1_runtime" | "hip_runtime";
    /// A call into the driver.
    Driver(Host): "cuda_driver" | "Driver" | "xpu_driver" | "privateuse1_driver";
    /// A Python function call.
    PythonFunction(Host): "python_function" | "Python";
    /// A pause of Python for garbage collection.
    GarbageCollection(Host): "gc";
    /// A device kernel.
    Kernel(Device): "kernel" | "Kernel" | "mtia_ccp_events" | "concurrent_kernel";
    /// A copy to, from or on a device.
    Memcpy(Device): "gpu_memcpy" | "Memcpy";
    /// A device memory fill.
    Memset(Device): "gpu_memset" | "Memset";
    /// A collective as the communication library reports it.
    Collective(Device): "collective_comm";
    /// A user annotation projected to the device's row.
    GpuUserAnnotation(Neither): "gpu_user_annotation";
    /// A wait for the device.
    Sync(Neither): "cuda_sync" | "xpu_sync";
    /// A device event record.
    DeviceEvent(Neither): "cuda_event";
    /// The profiler's own cost.
    Overhead(Neither): "overhead";
    /// A hardware profiler range.
    ProfilerRange(Neither): "cuda_profiler_range" | "xpu_scope_profiler";
    /// Allocations and other instants of the CPU.
    CpuInstant(Neither): "cpu_instant_event";
    /// The span of the recording itself.
    Recording(Neither): "Trace";
}

impl Category {
    /// Whether its spans are work of a device.
    #[must_use]
    pub fn is_device(self) -> bool {
        self.side() == Side::Device
    }

    /// Whether its spans are a call into a device runtime or driver.
    #[must_use]
    pub fn is_launch(self) -> bool {
        matches!(self, Self::Runtime | Self::Driver)
    }
}
