//! The work of each device: which spans, on which stream, and whether they compute, communicate or copy.
//!
//! Waits (`cuda_sync`), annotations and the profiler's own cost are no work. What caused it is in
//! [`super::launch_calls`].

use std::fmt;

use hotspan_store::{Category, Ident, ProcessId, SpanId, StringId, TrackId};

use super::Model;
use crate::intervals::{Interval, Intervals};

/// What a device does with its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkKind {
    /// A kernel that computes.
    Compute,
    /// A kernel of a communication library.
    Communication,
    /// A copy, or a fill of memory.
    Copy,
}

/// One span of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// The span.
    pub span: SpanId,
    /// When.
    pub interval: Interval,
    /// The stream.
    pub stream: TrackId,
    /// What it does.
    pub kind: WorkKind,
}

/// Which device: its index, and whose it is where several processes have a device of this index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId {
    /// Its index as the process counts devices.
    pub index: i64,
    /// The process, where the index alone does not tell.
    pub process: Option<i64>,
}

impl fmt::Display for DeviceId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.process {
            Some(process) => write!(out, "{} (process {process})", self.index),
            None => write!(out, "{}", self.index),
        }
    }
}

/// A device and its work.
#[derive(Clone, Debug)]
pub struct DeviceWork {
    /// The device, which traces show as a process.
    pub process: ProcessId,
    /// Which one it is.
    pub id: DeviceId,
    /// Its name, where the trace knows it.
    pub name: Option<String>,
    /// Its work in order of beginning.
    pub work: Vec<Work>,
    /// When it computes.
    pub compute: Intervals,
    /// When it communicates.
    pub communication: Intervals,
    /// When it copies or fills memory.
    pub copy: Intervals,
    /// When it does any of these.
    pub busy: Intervals,
}

/// Names of communication kernels, in lower case: NCCL and RCCL, and those that libraries bring themselves. `dispatch`
/// alone is not among them, since CUB has kernels of that name.
const COMMUNICATION: [&str; 14] = [
    "nccl",
    "rccl",
    "hccl",
    "cross_device_reduce",
    "allreduce_fusion",
    "deep_ep",
    "deepep",
    "::ep::internode::",
    "::ep::intranode::",
    "nvshmem",
    "symm_mem",
    "mscclpp",
    "one_shot_all_reduce",
    "two_shot_all_reduce",
];

/// Copies that ROCm does with a kernel.
const COPY_KERNELS: [&str; 3] = ["__amd_rocclr_copybuffer", "__amd_rocclr_fillbuffer", "memory_copy_"];

/// What a device span does, by its category and name.
#[must_use]
pub fn kind_of(category: Category, name: &str) -> WorkKind {
    match category {
        Category::Memcpy | Category::Memset => WorkKind::Copy,
        Category::Collective => WorkKind::Communication,
        _ => {
            let name = name.to_ascii_lowercase();
            if COMMUNICATION.iter().any(|word| name.contains(word)) {
                WorkKind::Communication
            } else if COPY_KERNELS.iter().any(|word| name.starts_with(word)) {
                WorkKind::Copy
            } else {
                WorkKind::Compute
            }
        }
    }
}

impl DeviceWork {
    /// Every device that worked, by index.
    pub(super) fn of(model: &Model) -> Vec<Self> {
        let spans = model.spans();
        let is_device: Vec<bool> = model.categories().map(|(_, _, category)| category.is_device()).collect();
        let mut kinds = Kinds { by_name: vec![None; model.strings().len()] };
        let mut work: Vec<Vec<Work>> = vec![Vec::new(); model.processes().len()];
        for span in spans.ids().filter(|&span| is_device.get(spans.category(span).index()) == Some(&true)) {
            let stream = spans.track(span);
            let interval = Interval::new(spans.time(span), spans.end(span));
            let kind = kinds.of(model, span, spans.name(span));
            work[model.track(stream).process.index()].push(Work { span, interval, stream, kind });
        }
        let index_of = model.device_index();
        let described = model.devices();
        let mut devices: Vec<Self> = Vec::new();
        for (position, work) in work.into_iter().enumerate() {
            let Some(first) = work.first() else { continue };
            let process = ProcessId::at(position);
            let index = index_of.of(first.span).unwrap_or(match model.process(process).ident {
                Ident::Int(number) => number,
                Ident::Text(_) => position as i64,
            });
            let name = described.iter().find(|device| device.id == index).map(|device| device.name.clone());
            let id = DeviceId { index, process: None };
            devices.push(Self::new(process, id, name.filter(|name| !name.is_empty()), work));
        }
        tell_apart(model, &mut devices);
        devices.sort_by_key(|device| device.id);
        devices
    }

    fn new(process: ProcessId, id: DeviceId, name: Option<String>, mut work: Vec<Work>) -> Self {
        work.sort_by_key(|work| work.interval.begin);
        let of_kind = |kind: WorkKind| -> Intervals {
            work.iter().filter(|work| work.kind == kind).map(|work| work.interval).collect()
        };
        let compute = of_kind(WorkKind::Compute);
        let communication = of_kind(WorkKind::Communication);
        let copy = of_kind(WorkKind::Copy);
        let busy = work.iter().map(|work| work.interval).collect();
        Self { process, id, name, work, compute, communication, copy, busy }
    }
}

/// Says whose they are of devices that share an index: each process counts those that it sees from 0.
fn tell_apart(model: &Model, devices: &mut [DeviceWork]) {
    let indices: Vec<i64> = devices.iter().map(|device| device.id.index).collect();
    for device in devices {
        if indices.iter().filter(|&&index| index == device.id.index).count() > 1 {
            let call = device.work.iter().find_map(|work| model.launch_calls().call(work.span));
            let host = call.map(|call| model.process(model.track(model.spans().track(call)).process).ident);
            device.id.process = host.and_then(Ident::number).or(Some(device.process.index() as i64));
        }
    }
}

/// The kind of each name, found once: names repeat thousands of times and are long.
struct Kinds {
    by_name: Vec<Option<(Category, WorkKind)>>,
}

impl Kinds {
    fn of(&mut self, model: &Model, span: SpanId, name: StringId) -> WorkKind {
        let category = model.span_category(span);
        match self.by_name.get(name.index()) {
            Some(&Some((last, kind))) if last == category => kind,
            _ => {
                let kind = kind_of(category, model.str(name));
                if let Some(slot) = self.by_name.get_mut(name.index()) {
                    *slot = Some((category, kind));
                }
                kind
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn communication_is_known_by_name() {
        let kind = |name| kind_of(Category::Kernel, name);
        for name in [
            "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
            "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t",
            "void deep_ep::internode::dispatch<false, 8>()",
            "void vllm::cross_device_reduce_2stage<__half, 8>()",
        ] {
            assert_eq!(kind(name), WorkKind::Communication, "{name}");
        }
        for name in ["void cub::DispatchReduceByKey<int>()", "ampere_sgemm_128x64_tn"] {
            assert_eq!(kind(name), WorkKind::Compute, "{name}");
        }
        assert_eq!(kind("__amd_rocclr_copyBufferAligned"), WorkKind::Copy);
        assert_eq!(kind_of(Category::Memset, "Memset (Device)"), WorkKind::Copy);
    }
}
