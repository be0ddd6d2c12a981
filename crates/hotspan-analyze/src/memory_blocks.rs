//! Blocks of memory: each allocation with its release, the operator that made it, and what it was used for.
//!
//! Two kinds of evidence tell the use. A collector that knows the program's tensors leaves `[tensor]` instants, which say
//! that there is a parameter, gradient, optimizer state or input at an address, and `[forward]` instants around the calls
//! of a model. Where they are missing, or say nothing, the operators around the allocation decide. What was allocated
//! before the recording is a block too, if it is released later or a `[tensor]` instant tells of it.

mod place;

use std::collections::BTreeMap;

use hashbrown::HashMap;
use hotspan_store::{ArgReader, Args, Bytes, SpanId, StringId, Timestamp, Trace};

use crate::memory_category::MemoryCategory;

use place::{Around, Place};

/// A device by torch's numbers for its kind and its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemoryDevice {
    /// torch's `DeviceType`: 0 is the CPU, 1 is CUDA.
    pub kind: i64,
    /// Which one; -1 for the CPU.
    pub index: i64,
}

impl MemoryDevice {
    /// torch's name for it: `cpu`, `cuda:0`.
    #[must_use]
    pub fn name(self) -> String {
        let kind = match self.kind {
            0 => return "cpu".to_owned(),
            1 => "cuda",
            12 => "xpu",
            13 => "mps",
            15 => "hpu",
            19 => "mtia",
            20 => "privateuseone",
            other => return format!("device type {other} number {}", self.index),
        };
        format!("{kind}:{}", self.index.max(0))
    }
}

/// A block of memory from its allocation to its release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Where it lies.
    pub device: MemoryDevice,
    /// How large it is.
    pub bytes: Bytes,
    /// When it was allocated; `None`: before the recording.
    pub allocated: Option<Timestamp>,
    /// When it was released; `None`: not while it was recorded.
    pub released: Option<Timestamp>,
    /// The operator that allocated it, if one was running.
    pub operator: Option<SpanId>,
    /// The innermost Python function around it, where no operator was running in that.
    pub function: Option<SpanId>,
    /// What it was used for.
    pub category: MemoryCategory,
}

/// The beginning or the end of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// When.
    pub time: Timestamp,
    /// Which block.
    pub block: usize,
    /// Whether it is the end.
    pub is_release: bool,
}

/// All blocks of a trace, and what happened to them, in order of time.
#[derive(Clone, Debug, Default)]
pub struct Blocks {
    /// The blocks.
    pub blocks: Vec<Block>,
    /// Allocations and releases; blocks from before the recording first, at its beginning.
    pub changes: Vec<Change>,
}

/// What a `[tensor]` instant says is at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    Parameter,
    OptimizerState,
    Gradient,
    Input,
    /// State of a model that is no parameter: known, but none of torch's categories.
    Buffer,
}

/// What is known about a block besides what it is.
#[derive(Clone, Copy, Debug, Default)]
struct Evidence {
    mark: Option<Mark>,
    place: Place,
    /// Released while the outermost operator that allocated it was running.
    within_operator: bool,
    within_step: bool,
}

/// Finds the blocks of a trace.
#[must_use]
pub fn memory_blocks(trace: &Trace) -> Blocks {
    let names = ["[memory]", "[tensor]", "[forward]"].map(|name| trace.strings().find(name));
    if names[0].is_none() {
        return Blocks::default();
    }
    let is_told = |name: StringId| names.contains(&Some(name));
    let mut instants: Vec<_> = trace.instants().events().filter(|event| is_told(event.name)).collect();
    instants.sort_by_key(|event| event.time);

    let mut walk = Walk::new(trace);
    for instant in instants {
        if Some(instant.name) == names[0] {
            let place = walk.around.at(instant.time, instant.track);
            walk.report(instant.time, instant.args, place);
        } else if Some(instant.name) == names[1] {
            walk.mark(instant.args);
        } else {
            let depth = &mut walk.around.forward[instant.track.index()];
            let begins = text(trace, &walk.phase, instant.args) == Some("begin");
            *depth = if begins { depth.saturating_add(1) } else { depth.saturating_sub(1) };
        }
    }
    walk.finish()
}

fn text<'a>(trace: &'a Trace, reader: &ArgReader<'_>, args: Args) -> Option<&'a str> {
    reader.text_id(args).map(|id| trace.str(id))
}

struct Walk<'a> {
    trace: &'a Trace,
    around: Around<'a>,
    bytes: ArgReader<'a>,
    kind: ArgReader<'a>,
    index: ArgReader<'a>,
    address: ArgReader<'a>,
    role: ArgReader<'a>,
    phase: ArgReader<'a>,
    /// The blocks that are held, by device and address.
    live: HashMap<MemoryDevice, BTreeMap<i64, usize>>,
    blocks: Vec<Block>,
    evidence: Vec<Evidence>,
    changes: Vec<Change>,
}

impl<'a> Walk<'a> {
    fn new(trace: &'a Trace) -> Self {
        Self {
            trace,
            around: Around::new(trace),
            bytes: trace.arg("Bytes"),
            kind: trace.arg("Device Type"),
            index: trace.arg("Device Id"),
            address: trace.arg("Addr"),
            role: trace.arg("Role"),
            phase: trace.arg("Phase"),
            live: HashMap::new(),
            blocks: Vec::new(),
            evidence: Vec::new(),
            changes: Vec::new(),
        }
    }

    fn device(&self, args: Args) -> MemoryDevice {
        MemoryDevice { kind: self.kind.int(args).unwrap_or(0), index: self.index.int(args).unwrap_or(-1) }
    }

    fn add(&mut self, block: Block, evidence: Evidence) -> usize {
        self.blocks.push(block);
        self.evidence.push(evidence);
        self.blocks.len() - 1
    }

    /// An allocation or a release.
    fn report(&mut self, time: Timestamp, args: Args, place: Place) {
        let Some(bytes) = self.bytes.int(args) else { return };
        let (device, address) = (self.device(args), self.address.int(args).unwrap_or(0));
        if bytes <= 0 {
            return self.release(time, device, address, bytes, place);
        }
        // Nothing is allocated twice: what is still thought to be there was released unseen.
        let live = self.live.entry(device).or_default();
        let end = address.saturating_add(bytes);
        let before = live.range(..address).next_back();
        let reaches_in =
            |block: &usize, begin: i64| begin.saturating_add(self.blocks[*block].bytes.0) > address;
        let mut gone: Vec<i64> = before
            .filter(|(begin, block)| reaches_in(block, **begin))
            .map(|(begin, _)| *begin)
            .into_iter()
            .collect();
        gone.extend(live.range(address..end).map(|(begin, _)| *begin));
        for begin in gone {
            let Some(block) = live.remove(&begin) else { continue };
            self.blocks[block].released = Some(time);
            self.changes.push(Change { time, block, is_release: true });
        }
        let Place { operator, function, .. } = place;
        let block = Block {
            device,
            bytes: Bytes(bytes),
            allocated: Some(time),
            released: None,
            operator,
            function,
            category: MemoryCategory::Unknown,
        };
        let block = self.add(block, Evidence { place, ..Evidence::default() });
        self.live.entry(device).or_default().insert(address, block);
        self.changes.push(Change { time, block, is_release: false });
    }

    fn release(&mut self, time: Timestamp, device: MemoryDevice, address: i64, bytes: i64, place: Place) {
        let known = self.live.get_mut(&device).and_then(|live| live.remove(&address));
        let block = known.unwrap_or_else(|| self.add_earlier(device, bytes.saturating_neg(), None));
        self.blocks[block].released = Some(time);
        self.changes.push(Change { time, block, is_release: true });
        let evidence = &mut self.evidence[block];
        let made = evidence.place;
        evidence.within_operator = made.outermost.is_some() && made.outermost == place.outermost;
        evidence.within_step = made.optimizer_step.is_some_and(|step| self.trace.spans().end(step) >= time);
    }

    /// A block from before the recording.
    fn add_earlier(&mut self, device: MemoryDevice, bytes: i64, mark: Option<Mark>) -> usize {
        let block = Block {
            device,
            bytes: Bytes(bytes),
            allocated: None,
            released: None,
            operator: None,
            function: None,
            category: MemoryCategory::Unknown,
        };
        self.add(block, Evidence { mark, ..Evidence::default() })
    }

    /// Somebody knows what is at an address.
    fn mark(&mut self, args: Args) {
        let mark = match text(self.trace, &self.role, args) {
            Some("parameter") => Mark::Parameter,
            Some("optimizer_state") => Mark::OptimizerState,
            Some("gradient") => Mark::Gradient,
            Some("input") => Mark::Input,
            Some("buffer") => Mark::Buffer,
            _ => return,
        };
        let (device, address) = (self.device(args), self.address.int(args).unwrap_or(0));
        let live = self.live.entry(device).or_default();
        let around = live.range(..=address).next_back().map(|(begin, block)| (*begin, *block));
        let inside = around
            .filter(|&(begin, block)| address - begin < self.blocks[block].bytes.0)
            .map(|(_, block)| block);
        if let Some(block) = inside {
            let known = &mut self.evidence[block].mark;
            // What was a parameter once stays one, whoever takes it as input.
            if known.is_none() || *known == Some(Mark::Input) {
                *known = Some(mark);
            }
        } else if let Some(bytes) = self.bytes.int(args).filter(|&bytes| bytes > 0) {
            let block = self.add_earlier(device, bytes, Some(mark));
            self.live.entry(device).or_default().insert(address, block);
        }
    }

    fn finish(mut self) -> Blocks {
        for (block, evidence) in self.blocks.iter_mut().zip(&self.evidence) {
            block.category = category(evidence);
        }
        let begin = self.changes.iter().map(|change| change.time).min().unwrap_or_default();
        let begin = begin.min(self.trace.window().0);
        let earlier = (0..self.blocks.len()).filter(|&block| self.blocks[block].allocated.is_none());
        let mut changes: Vec<Change> =
            earlier.map(|block| Change { time: begin, block, is_release: false }).collect();
        changes.append(&mut self.changes);
        Blocks { blocks: self.blocks, changes }
    }
}

fn category(evidence: &Evidence) -> MemoryCategory {
    let place = &evidence.place;
    match evidence.mark {
        Some(Mark::Parameter) => MemoryCategory::Parameter,
        Some(Mark::OptimizerState) => MemoryCategory::OptimizerState,
        Some(Mark::Gradient) => MemoryCategory::Gradient,
        Some(Mark::Buffer) => MemoryCategory::Unknown,
        _ if evidence.within_operator => MemoryCategory::Temporary,
        _ if place.accumulates_gradient => MemoryCategory::Gradient,
        _ if place.in_backward => MemoryCategory::AutogradDetail,
        _ if place.optimizer_step.is_some() && evidence.within_step => MemoryCategory::Temporary,
        _ if place.optimizer_step.is_some() => MemoryCategory::OptimizerState,
        _ if place.in_forward => MemoryCategory::Activation,
        Some(Mark::Input) => MemoryCategory::Input,
        None if place.in_loader => MemoryCategory::Input,
        None => MemoryCategory::Unknown,
    }
}
