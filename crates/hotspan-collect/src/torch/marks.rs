//! What the program's tensors are, as instants of the trace: `[tensor]` says which memory is a parameter, a gradient,
//! optimizer state or an input; `[forward]` says when a thread enters and leaves a model. Whoever knows the program tells;
//! what follows for the memory is the analysis's business.

use hotspan_store::args::PendingArgs;
use hotspan_store::{
    Arg, ArgOrigin, EventRow, Ident, InstantRow, InstantScope, Timestamp, TraceBuilder, keys,
};

/// Memory that a tensor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkedBlock {
    /// torch's `DeviceType`.
    pub device_type: i64,
    /// Which device of this type; -1 for the CPU.
    pub device_index: i64,
    /// Where it begins.
    pub address: u64,
    /// How large it is.
    pub bytes: u64,
}

/// What is said about tensors at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// These are tensors of this role: `parameter`, `gradient`, `optimizer_state`, `input` or `buffer`.
    Tensors {
        /// The role.
        role: String,
        /// Their memory.
        blocks: Vec<MarkedBlock>,
    },
    /// The thread enters (or leaves) a model.
    Forward {
        /// Whether it enters.
        begins: bool,
    },
}

/// Adds a mark to a trace; `time` is by the clock of the builder's other events.
pub fn push_mark(builder: &mut TraceBuilder, process: u32, os_thread: i64, time: Timestamp, mark: &Mark) {
    let track = builder.track(Ident::Int(i64::from(process)), Ident::Int(os_thread));
    let category = builder.category("cpu_instant_event");
    let mut pending = PendingArgs::default();
    let mut push = |builder: &mut TraceBuilder, name: &str, args: &[(&str, Arg)]| {
        for (key, value) in args {
            builder.push_arg(&mut pending, ArgOrigin::Args, key.as_bytes(), *value);
        }
        let args = builder.commit_args(&mut pending);
        pending.clear();
        let name = builder.intern(name);
        let event = EventRow { time, name, category, track, args };
        builder.push_instant(InstantRow { event, scope: InstantScope::Thread });
    };
    match mark {
        Mark::Tensors { role, blocks } => {
            let role = Arg::Text(builder.intern(role));
            for block in blocks {
                let args = [
                    (keys::TENSOR_ROLE, role),
                    (keys::BYTES, Arg::Int(block.bytes as i64)),
                    (keys::DEVICE_ID, Arg::Int(block.device_index)),
                    (keys::DEVICE_TYPE, Arg::Int(block.device_type)),
                    (keys::ADDRESS, Arg::Int(block.address as i64)),
                ];
                push(builder, "[tensor]", &args);
            }
        }
        Mark::Forward { begins } => {
            let phase = Arg::Text(builder.intern(if *begins { "begin" } else { "end" }));
            push(builder, "[forward]", &[(keys::FORWARD_PHASE, phase)]);
        }
    }
}
