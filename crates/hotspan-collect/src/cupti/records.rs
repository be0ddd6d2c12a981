//! Device records, decoded: what a recording keeps of CUPTI's buffers, and how a buffer is read.
//!
//! Buffers are read on a worker thread while the program runs, so that they can be reused; names are copied at once, for
//! CUPTI's belong to modules that may be unloaded.

use std::ffi::CStr;

use hashbrown::HashMap;

use crate::cupti::abi::{self, CuptiResult, Functions, kind};
use crate::cupti::calls::Calls;

/// What a device did, and for whom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) device: u32,
    pub(crate) context: u32,
    pub(crate) stream: u32,
    pub(crate) correlation: u32,
    pub(crate) graph: u32,
    pub(crate) graph_node: u64,
    pub(crate) kind: WorkKind,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum WorkKind {
    Kernel {
        name: u32,
        grid: [i32; 3],
        block: [i32; 3],
        registers: u16,
        static_shared: u32,
        dynamic_shared: u32,
    },
    Copy {
        kind: u8,
        source: u8,
        destination: u8,
        bytes: u64,
        peers: Option<Peers>,
    },
    Fill {
        memory: u16,
        bytes: u64,
    },
}

/// The two devices of a copy between devices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peers {
    pub(crate) from: [u32; 2],
    pub(crate) to: [u32; 2],
}

/// What records of all kinds of work have, at offsets of their own.
macro_rules! work_of {
    ($record:expr, $kind:expr) => {
        Work {
            start: $record.start,
            end: $record.end,
            device: $record.device,
            context: $record.context,
            stream: $record.stream,
            correlation: $record.correlation,
            graph: $record.graph,
            graph_node: $record.graph_node,
            kind: $kind,
        }
    };
}

/// What records of both kinds of copies have.
macro_rules! copy_of {
    ($copy:expr, $peers:expr) => {
        WorkKind::Copy {
            kind: $copy.copy_kind,
            source: $copy.source,
            destination: $copy.destination,
            bytes: $copy.bytes,
            peers: $peers,
        }
    };
}

/// A call into the runtime or the driver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) domain: u32,
    pub(crate) function: u32,
    pub(crate) thread: u32,
    pub(crate) correlation: u32,
    /// Whether its times are ticks of the recording clock instead of CUPTI's time.
    pub(crate) in_ticks: bool,
}

/// All that was decoded, in the order delivered, which is that of no clock.
#[derive(Debug, Default)]
pub(crate) struct Records {
    pub(crate) work: Vec<Work>,
    pub(crate) calls: Vec<Call>,
    pub(crate) syncs: Vec<abi::Synchronization>,
    pub(crate) events: Vec<abi::CudaEvent>,
    pub(crate) overheads: Vec<abi::Overhead>,
    /// The device of each context.
    pub(crate) contexts: HashMap<u32, u32>,
    /// Mangled names of kernels.
    pub(crate) names: Vec<Box<CStr>>,
    name_numbers: HashMap<Box<CStr>, u32>,
    /// Work whose time CUPTI could not tell.
    pub(crate) untimed: u64,
    /// Records of a kind that was not asked for.
    pub(crate) unknown: u64,
    /// Buffers that CUPTI itself could not read to their end.
    pub(crate) damaged: u64,
    /// Records beyond the memory limit.
    pub(crate) beyond_limit: u64,
}

impl Records {
    /// Takes what was complete when this was asked last: a call and the work it launches come apart, so whatever is new
    /// waits for one more round. `newest` is the largest correlation so far.
    pub(crate) fn take_settled(&mut self, newest: &mut u32) -> Self {
        let settled = *newest;
        let works = self.work.iter().map(|work| work.correlation);
        let calls = self.calls.iter().map(|call| call.correlation);
        *newest = works.chain(calls).max().unwrap_or(0).max(settled);
        let is_settled = |correlation: u32| correlation <= settled;
        let mut taken = Self {
            work: self.work.extract_if(.., |work| is_settled(work.correlation)).collect(),
            calls: self.calls.extract_if(.., |call| is_settled(call.correlation)).collect(),
            syncs: self.syncs.extract_if(.., |sync| is_settled(sync.correlation)).collect(),
            events: self.events.extract_if(.., |event| is_settled(event.correlation)).collect(),
            overheads: std::mem::take(&mut self.overheads),
            contexts: self.contexts.clone(),
            untimed: std::mem::take(&mut self.untimed),
            unknown: std::mem::take(&mut self.unknown),
            damaged: std::mem::take(&mut self.damaged),
            beyond_limit: std::mem::take(&mut self.beyond_limit),
            ..Self::default()
        };
        taken.copy_names(&self.names);
        taken
    }

    /// Only the names that its work has, renumbered.
    fn copy_names(&mut self, all: &[Box<CStr>]) {
        let mut numbers: HashMap<u32, u32> = HashMap::new();
        for work in &mut self.work {
            if let WorkKind::Kernel { name, .. } = &mut work.kind {
                let names = &mut self.names;
                *name = *numbers.entry(*name).or_insert_with(|| {
                    names.push(all.get(*name as usize).cloned().unwrap_or_default());
                    names.len() as u32 - 1
                });
            }
        }
    }

    /// Bytes held, about.
    pub(crate) fn bytes(&self) -> usize {
        self.work.len() * size_of::<Work>() + self.calls.len() * size_of::<Call>() + self.syncs.len() * 40
    }

    /// Reads the records of a buffer; keeps none that would go beyond `limit` bytes.
    ///
    /// # Safety
    /// `buffer` was filled by the CUPTI of `functions` with `valid` bytes of records, and is not in use elsewhere.
    pub(crate) unsafe fn read(
        &mut self,
        functions: &Functions,
        calls: &Calls,
        buffer: *mut u8,
        valid: usize,
        limit: usize,
    ) {
        const END_OF_BUFFER: CuptiResult = CuptiResult(12); // CUPTI_ERROR_MAX_LIMIT_REACHED
        let mut record: *mut u32 = std::ptr::null_mut();
        loop {
            // SAFETY: the caller promises that the buffer has `valid` bytes of records; `record` is null or the record
            // before, as CUPTI wants it.
            let result = unsafe { (functions.get_next_record)(buffer, valid, &raw mut record) };
            if result != CuptiResult::SUCCESS || record.is_null() {
                self.damaged += u64::from(result != END_OF_BUFFER && valid > 0);
                return;
            }
            if self.bytes() >= limit {
                self.beyond_limit += 1;
                continue;
            }
            // SAFETY: CUPTI says that a whole record is here; its first word is its kind.
            unsafe { self.keep(calls, record) };
        }
    }

    /// # Safety
    /// `record` points to a whole record of CUPTI.
    unsafe fn keep(&mut self, calls: &Calls, record: *const u32) {
        // SAFETY: the caller's promise. Records are aligned to 8 bytes, but packed buffers need not be: read unaligned.
        unsafe {
            match record.read_unaligned() {
                kind::KERNEL | kind::CONCURRENT_KERNEL => {
                    self.kernel(&record.cast::<abi::Kernel>().read_unaligned());
                }
                kind::MEMCPY => self.copy(&record.cast::<abi::Memcpy>().read_unaligned()),
                kind::MEMCPY2 => self.peer_copy(&record.cast::<abi::MemcpyPeer>().read_unaligned()),
                kind::MEMSET => self.fill(&record.cast::<abi::Memset>().read_unaligned()),
                kind::RUNTIME => {
                    self.call(calls, abi::DOMAIN_RUNTIME, &record.cast::<abi::ApiCall>().read_unaligned());
                }
                kind::DRIVER => {
                    self.call(calls, abi::DOMAIN_DRIVER, &record.cast::<abi::ApiCall>().read_unaligned());
                }
                kind::SYNCHRONIZATION => {
                    self.syncs.push(record.cast::<abi::Synchronization>().read_unaligned());
                }
                kind::CUDA_EVENT => self.events.push(record.cast::<abi::CudaEvent>().read_unaligned()),
                kind::OVERHEAD => self.overheads.push(record.cast::<abi::Overhead>().read_unaligned()),
                kind::CONTEXT => {
                    let context = record.cast::<abi::Context>().read_unaligned();
                    self.contexts.insert(context.context, context.device);
                }
                kind::DEVICE => {}
                _ => self.unknown += 1,
            }
        }
    }

    /// # Safety
    /// The name of the kernel is null or zero-terminated.
    unsafe fn kernel(&mut self, kernel: &abi::Kernel) {
        // SAFETY: the caller's promise.
        let name = unsafe { self.name(kernel.name) };
        let kind = WorkKind::Kernel {
            name,
            grid: kernel.grid,
            block: kernel.block,
            registers: kernel.registers,
            static_shared: kernel.static_shared.max(0) as u32,
            dynamic_shared: kernel.dynamic_shared.max(0) as u32,
        };
        self.work(work_of!(kernel, kind));
    }

    fn copy(&mut self, copy: &abi::Memcpy) {
        self.work(work_of!(copy, copy_of!(copy, None)));
    }

    fn peer_copy(&mut self, copy: &abi::MemcpyPeer) {
        let peers = Peers {
            from: [copy.source_device, copy.source_context],
            to: [copy.destination_device, copy.destination_context],
        };
        self.work(work_of!(copy, copy_of!(copy, Some(peers))));
    }

    fn fill(&mut self, fill: &abi::Memset) {
        self.work(work_of!(fill, WorkKind::Fill { memory: fill.memory, bytes: fill.bytes }));
    }

    fn work(&mut self, work: Work) {
        self.contexts.entry(work.context).or_insert(work.device);
        // CUPTI writes 0 for what it could not time, such as work that never ended.
        if work.start == 0 || work.end == 0 {
            self.untimed += 1;
        } else {
            self.work.push(work);
        }
    }

    fn call(&mut self, calls: &Calls, domain: u32, call: &abi::ApiCall) {
        if calls.is_wanted(domain, call.function) {
            self.calls.push(Call {
                start: call.start,
                end: call.end,
                domain,
                function: call.function,
                thread: call.thread,
                correlation: call.correlation,
                in_ticks: false,
            });
        }
    }

    /// # Safety
    /// `name` is null or zero-terminated.
    unsafe fn name(&mut self, name: *const std::ffi::c_char) -> u32 {
        // SAFETY: checked for null; otherwise the caller's promise.
        let name = if name.is_null() { c"unnamed kernel" } else { unsafe { CStr::from_ptr(name) } };
        if let Some(&number) = self.name_numbers.get(name) {
            return number;
        }
        let number = self.names.len() as u32;
        self.names.push(name.into());
        self.name_numbers.insert(name.into(), number);
        number
    }
}
