//! What the allocators reported: allocations, releases and failed allocations, typed.

use hotspan_store::{Bytes, Timestamp, TrackId};

use super::Model;
use super::memory_use::Use;

/// Where memory lies: torch's numbers for the kind of device and its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemoryDevice {
    /// torch's `DeviceType`: 0 is the CPU, 1 is CUDA.
    pub kind: i64,
    /// Which one; -1 for the CPU.
    pub index: i64,
    /// The process, where several report memory of such a device: addresses and indices are its own.
    pub process: Option<i64>,
}

impl MemoryDevice {
    /// torch's name for it: `cpu`, `cuda:0`; with the process where that tells it from others.
    #[must_use]
    pub fn name(self) -> String {
        let index = self.index.max(0);
        let name = match self.kind {
            0 => "cpu".to_owned(),
            1 => format!("cuda:{index}"),
            12 => format!("xpu:{index}"),
            13 => format!("mps:{index}"),
            15 => format!("hpu:{index}"),
            19 => format!("mtia:{index}"),
            20 => format!("privateuseone:{index}"),
            other => format!("device type {other} number {}", self.index),
        };
        match self.process {
            Some(process) => format!("{name} (process {process})"),
            None => name,
        }
    }
}

/// What an allocator did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryEventKind {
    /// It handed out memory.
    Allocation,
    /// It got memory back.
    Release,
    /// It had none left.
    Failure,
}

/// One report of an allocator.
#[derive(Clone, Copy, Debug)]
pub struct MemoryEvent {
    /// When.
    pub time: Timestamp,
    /// The thread that asked.
    pub track: TrackId,
    /// What happened.
    pub kind: MemoryEventKind,
    /// Where the memory lies.
    pub device: MemoryDevice,
    /// How much; never negative.
    pub bytes: Bytes,
    /// Where it begins; `None` where the recording does not say.
    pub address: Option<i64>,
    /// What the allocator has handed out in all after it; `None` where the recording does not say.
    pub total: Option<Bytes>,
}

impl MemoryEvent {
    /// What it adds to the memory in use: negative for a release; what was asked for, for a failure.
    #[must_use]
    pub fn used(&self) -> Use {
        let sign = if self.kind == MemoryEventKind::Release { -1 } else { 1 };
        Use::of_device_type(self.device.kind, Bytes(self.bytes.0.saturating_mul(sign)))
    }
}

/// All reports, in order of time.
pub(super) fn memory_events(model: &Model) -> Vec<MemoryEvent> {
    let [memory, failed] = ["[memory]", "[OutOfMemory]"].map(|name| model.strings().find(name));
    if memory.is_none() && failed.is_none() {
        return Vec::new();
    }
    let (bytes, address, total) = (model.allocated_bytes(), model.address(), model.total_allocated());
    let device = device_reader(model);
    let mut events: Vec<MemoryEvent> = Vec::new();
    for row in model.instants().events() {
        let is_failure = Some(row.name) == failed;
        if !is_failure && Some(row.name) != memory {
            continue;
        }
        let Some(amount) = bytes.at(row.args).or(is_failure.then_some(0)) else { continue };
        let kind = match amount {
            _ if is_failure => MemoryEventKind::Failure,
            1.. => MemoryEventKind::Allocation,
            _ => MemoryEventKind::Release,
        };
        events.push(MemoryEvent {
            time: row.time,
            track: row.track,
            kind,
            device: device(row.track, row.args),
            bytes: Bytes(amount.saturating_abs()),
            address: address.at(row.args),
            total: total.at(row.args).map(Bytes),
        });
    }
    events.sort_by_key(|event| event.time);
    events
}

/// Reads the device of an instant. Processes are told apart where several have memory instants.
pub(crate) fn device_reader(model: &Model) -> impl Fn(TrackId, hotspan_store::Args) -> MemoryDevice + '_ {
    let (kind, index) = (model.device_type(), model.device_id());
    let process_of = |track: TrackId| model.track(track).process;
    let names = ["[memory]", "[tensor]"].map(|name| model.strings().find(name));
    let mut tracks =
        model.instants().events().filter(|row| names.contains(&Some(row.name))).map(|row| row.track);
    let first = tracks.next().map(process_of);
    let are_several = tracks.any(|track| Some(process_of(track)) != first);
    move |track, args| MemoryDevice {
        kind: kind.at(args).unwrap_or(0),
        index: index.at(args).unwrap_or(-1),
        process: are_several.then(|| model.process(process_of(track)).ident.number()).flatten(),
    }
}
