//! Blocks of memory: each allocation with its release, the operator that made it, and what it was used for.
//!
//! Two kinds of evidence tell the use. A collector that knows the program's tensors leaves `[tensor]` instants, which say
//! that there is a parameter, gradient, optimizer state or input at an address, and `[forward]` instants around the calls
//! of a model. Where they are missing, or say nothing, the operators around the allocation decide. What was allocated
//! before the recording is a block too, if it is released later or a `[tensor]` instant tells of it.

mod site;

use std::collections::{BTreeMap, VecDeque};

use hashbrown::HashMap;
use hotspan_store::{Bytes, EventRow, SpanId, Timestamp, TrackId};

use crate::memory_category::MemoryCategory;
use crate::model::Model;
use crate::model::memory_events::{MemoryDevice, MemoryEvent, MemoryEventKind, device_reader};

use site::{Around, Site};

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
    /// What else devices held all the time: their allocators counted it before the recording, and it is in no block.
    pub unseen: HashMap<MemoryDevice, Bytes>,
}

/// torch's number for the CPU.
const CPU: i64 = 0;

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
    site: Site,
    /// Released while the outermost operator that allocated it was running.
    within_operator: bool,
    within_step: bool,
}

/// Finds the blocks of a trace.
pub(crate) fn find(model: &Model) -> Blocks {
    if model.memory_events().is_empty() {
        return Blocks::default();
    }
    let mut walk = Walk {
        model,
        around: Around::new(model),
        live: HashMap::new(),
        nameless: HashMap::new(),
        blocks: Vec::new(),
        evidence: Vec::new(),
        changes: Vec::new(),
        sums: HashMap::new(),
    };
    let told = tensors(model);
    let mut told = told.iter().peekable();
    for event in model.memory_events() {
        // Of the same moment: a model is entered before it allocates, a tensor is known after it was allocated.
        let is_before = |(time, _, what): &(Timestamp, TrackId, Told)| match what {
            Told::Tensor(..) => *time < event.time,
            Told::Forward(_) => *time <= event.time,
        };
        while let Some((_, track, what)) = told.next_if(|&next| is_before(next)) {
            walk.tell(*track, *what);
        }
        let site = walk.around.at(event.time, event.track);
        match event.kind {
            MemoryEventKind::Allocation => walk.allocate(event, site),
            MemoryEventKind::Release => walk.release(event, site),
            MemoryEventKind::Failure => continue,
        }
        walk.count(event);
    }
    for (_, track, what) in told {
        walk.tell(*track, *what);
    }
    walk.finish()
}

/// What somebody who knows the program told.
#[derive(Clone, Copy, Debug)]
enum Told {
    /// Where a tensor lies, how large it is and what it is.
    Tensor(MemoryDevice, i64, Option<i64>, Mark),
    /// A call of a model begins, or ends.
    Forward(bool),
}

/// The `[tensor]` and `[forward]` instants, in order of time.
fn tensors(model: &Model) -> Vec<(Timestamp, TrackId, Told)> {
    let [tensor, forward] = ["[tensor]", "[forward]"].map(|name| model.strings().find(name));
    let (role, phase) = (model.tensor_role(), model.forward_phase());
    let (address, bytes, device) = (model.address(), model.allocated_bytes(), device_reader(model));
    let told = |row: EventRow| {
        let what = if Some(row.name) == tensor {
            let mark = match role.at(row.args)? {
                "parameter" => Mark::Parameter,
                "optimizer_state" => Mark::OptimizerState,
                "gradient" => Mark::Gradient,
                "input" => Mark::Input,
                "buffer" => Mark::Buffer,
                _ => return None,
            };
            let bytes = bytes.at(row.args).filter(|&bytes| bytes > 0);
            Told::Tensor(device(row.track, row.args), address.at(row.args)?, bytes, mark)
        } else if Some(row.name) == forward {
            Told::Forward(phase.at(row.args) == Some("begin"))
        } else {
            return None;
        };
        Some((row.time, row.track, what))
    };
    let mut all: Vec<_> = model.instants().events().filter_map(told).collect();
    all.sort_by_key(|&(time, ..)| time);
    all
}

struct Walk<'a> {
    model: &'a Model,
    around: Around<'a>,
    /// The blocks that are held, by device and address.
    live: HashMap<MemoryDevice, BTreeMap<i64, usize>>,
    /// The blocks that are held and have no address, by device and size, the oldest first.
    nameless: HashMap<(MemoryDevice, Bytes), VecDeque<usize>>,
    blocks: Vec<Block>,
    evidence: Vec<Evidence>,
    changes: Vec<Change>,
    sums: HashMap<MemoryDevice, Sum>,
}

/// What the events of a device have added up to, and what its allocator held before the first.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    events: Bytes,
    earlier: Option<Bytes>,
}

impl Walk<'_> {
    /// The first total that an allocator tells says what it had handed out before the recording. torch counts memory of the CPU while it
    /// records only: totals there tell of earlier recordings, and know nothing of what was released since.
    fn count(&mut self, event: &MemoryEvent) {
        let sum = self.sums.entry(event.device).or_default();
        match event.kind {
            MemoryEventKind::Release => sum.events -= event.bytes,
            _ => sum.events += event.bytes,
        }
        if sum.earlier.is_none() && event.device.kind != CPU {
            sum.earlier = event.total.map(|total| total - sum.events);
        }
    }

    fn add(&mut self, block: Block, evidence: Evidence) -> usize {
        self.blocks.push(block);
        self.evidence.push(evidence);
        self.blocks.len() - 1
    }

    fn allocate(&mut self, event: &MemoryEvent, site: Site) {
        let MemoryEvent { time, device, bytes, .. } = *event;
        if let Some(address) = event.address {
            self.release_overlapped(time, device, address, bytes);
        }
        let block = Block {
            device,
            bytes,
            allocated: Some(time),
            released: None,
            operator: site.operator,
            function: site.function,
            category: MemoryCategory::Unknown,
        };
        let block = self.add(block, Evidence { site, ..Evidence::default() });
        match event.address {
            Some(address) => {
                self.live.entry(device).or_default().insert(address, block);
            }
            None => self.nameless.entry((device, bytes)).or_default().push_back(block),
        }
        self.changes.push(Change { time, block, is_release: false });
    }

    /// Nothing is allocated twice: what is still thought to be there was released unseen.
    fn release_overlapped(&mut self, time: Timestamp, device: MemoryDevice, address: i64, bytes: Bytes) {
        let live = self.live.entry(device).or_default();
        let end = address.saturating_add(bytes.0);
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
    }

    fn release(&mut self, event: &MemoryEvent, site: Site) {
        let MemoryEvent { time, device, bytes, .. } = *event;
        let held = match event.address {
            Some(address) => self.live.get_mut(&device).and_then(|live| live.remove(&address)),
            // Without addresses, blocks of one size are as good as each other: sums are right, whichever it was.
            None => self.nameless.get_mut(&(device, bytes)).and_then(VecDeque::pop_front),
        };
        let block = held.unwrap_or_else(|| self.add_earlier(device, bytes, None));
        self.blocks[block].released = Some(time);
        self.changes.push(Change { time, block, is_release: true });
        let evidence = &mut self.evidence[block];
        let made = evidence.site;
        evidence.within_operator = made.outermost.is_some() && made.outermost == site.outermost;
        evidence.within_step = made.optimizer_step.is_some_and(|step| self.model.spans().end(step) >= time);
    }

    /// A block from before the recording.
    fn add_earlier(&mut self, device: MemoryDevice, bytes: Bytes, mark: Option<Mark>) -> usize {
        let block = Block {
            device,
            bytes,
            allocated: None,
            released: None,
            operator: None,
            function: None,
            category: MemoryCategory::Unknown,
        };
        self.add(block, Evidence { mark, ..Evidence::default() })
    }

    fn tell(&mut self, track: TrackId, what: Told) {
        match what {
            Told::Tensor(device, address, bytes, mark) => self.mark(device, address, bytes, mark),
            Told::Forward(begins) => {
                let depth = &mut self.around.forward[track.index()];
                *depth = if begins { depth.saturating_add(1) } else { depth.saturating_sub(1) };
            }
        }
    }

    /// Somebody knows what is at an address.
    fn mark(&mut self, device: MemoryDevice, address: i64, bytes: Option<i64>, mark: Mark) {
        let live = self.live.entry(device).or_default();
        let around = live.range(..=address).next_back().map(|(begin, block)| (*begin, *block));
        let inside = around
            .filter(|&(begin, block)| address - begin < self.blocks[block].bytes.0)
            .map(|(_, block)| block);
        if let Some(block) = inside {
            let before = &mut self.evidence[block].mark;
            // What was a parameter once stays one, whoever takes it as input.
            if before.is_none() || *before == Some(Mark::Input) {
                *before = Some(mark);
            }
        } else if let Some(bytes) = bytes {
            let block = self.add_earlier(device, Bytes(bytes), Some(mark));
            self.live.entry(device).or_default().insert(address, block);
        }
    }

    fn finish(mut self) -> Blocks {
        for (block, evidence) in self.blocks.iter_mut().zip(&self.evidence) {
            block.category = category(evidence);
        }
        let begin = self.changes.iter().map(|change| change.time).min().unwrap_or_default();
        let begin = begin.min(self.model.window().0);
        let earlier = (0..self.blocks.len()).filter(|&block| self.blocks[block].allocated.is_none());
        let mut changes: Vec<Change> =
            earlier.map(|block| Change { time: begin, block, is_release: false }).collect();
        let mut unseen: HashMap<MemoryDevice, Bytes> =
            self.sums.iter().filter_map(|(device, sum)| Some((*device, sum.earlier?))).collect();
        for change in &changes {
            let block = &self.blocks[change.block];
            unseen.entry(block.device).and_modify(|bytes| *bytes -= block.bytes);
        }
        unseen.retain(|_, bytes| bytes.0 > 0);
        changes.append(&mut self.changes);
        Blocks { blocks: self.blocks, changes, unseen }
    }
}

fn category(evidence: &Evidence) -> MemoryCategory {
    let site = &evidence.site;
    match evidence.mark {
        Some(Mark::Parameter) => MemoryCategory::Parameter,
        Some(Mark::OptimizerState) => MemoryCategory::OptimizerState,
        Some(Mark::Gradient) => MemoryCategory::Gradient,
        Some(Mark::Buffer) => MemoryCategory::Unknown,
        _ if evidence.within_operator => MemoryCategory::Temporary,
        _ if site.accumulates_gradient => MemoryCategory::Gradient,
        _ if site.in_backward => MemoryCategory::AutogradDetail,
        _ if site.optimizer_step.is_some() && evidence.within_step => MemoryCategory::Temporary,
        _ if site.optimizer_step.is_some() => MemoryCategory::OptimizerState,
        _ if site.in_forward => MemoryCategory::Activation,
        Some(Mark::Input) => MemoryCategory::Input,
        None if site.in_loader => MemoryCategory::Input,
        None => MemoryCategory::Unknown,
    }
}
