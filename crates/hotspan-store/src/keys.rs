//! The names of the args that collectors write and analyses read: Kineto's, and a few of our own.
//!
//! This is the one list. `OLD_` names are spellings of earlier versions, which are read and no longer written.

/// The metadata of a recording in several files: the `number` of this one, `events_before` it, and when it `began_unix_ns`.
pub const SEGMENT: &str = "hotspan.segment";
/// The metadata of a file that was too large to be read as a whole: from when on it was, in Unix nanoseconds.
pub const READ_SINCE: &str = "hotspan.read_since_unix_ns";
/// The metadata of a file that counted the time of lines in a unit of its own: that unit, in seconds.
pub const LINE_UNIT: &str = "hotspan.line_unit";

/// Numbers an operator. Device work carries that of the operator that launched it.
pub const EXTERNAL_ID: &str = "External id";
/// The same in device work of Kineto before 2023.
pub const OLD_EXTERNAL_ID: &str = "external id";
/// Joins a runtime call and the device work that it launched.
pub const CORRELATION: &str = "correlation";
/// torch's own number of a call.
pub const RECORD_FUNCTION_ID: &str = "Record function id";
/// Joins a forward operator and its node of the backward pass.
pub const SEQUENCE_NUMBER: &str = "Sequence number";
/// The thread of the forward operator, by torch's count of threads.
pub const FORWARD_THREAD: &str = "Fwd thread id";
/// The shapes of the inputs.
pub const INPUT_DIMS: &str = "Input Dims";
/// The strides of the inputs.
pub const INPUT_STRIDES: &str = "Input Strides";
/// The types of the inputs.
pub const INPUT_TYPES: &str = "Input type";
/// The same in Kineto of 2021.
pub const OLD_INPUT_TYPES: &str = "Input Types";
/// Values of inputs that are no tensors.
pub const CONCRETE_INPUTS: &str = "Concrete Inputs";
/// The position of an event in the recording.
pub const EVENT_INDEX: &str = "Ev Idx";
/// Ours: the range ended on another thread, or by a future.
pub const ASYNC: &str = "Async";
/// Ours: torch's `RecordScope`, where the category does not imply it.
pub const SCOPE: &str = "hotspan scope";

/// The Python stack of an operator, innermost entry first, joined by `;`.
pub const CALL_STACK: &str = "Call stack";
/// Ours: the file and line that a Python function was called from.
pub const CALLED_FROM: &str = "CallFrom";
/// The `nn.Module`s around an operator of TorchScript.
pub const MODULE_HIERARCHY: &str = "Module Hierarchy";
/// Numbers a call of a Python function.
pub const PYTHON_ID: &str = "Python id";
/// The number of the calling function's call.
pub const PYTHON_PARENT_ID: &str = "Python parent id";
/// Numbers a module among those of its class.
pub const PYTHON_MODULE_ID: &str = "Python module id";

/// The ordinal of a device.
pub const DEVICE: &str = "device";
/// The bytes of a copy.
pub const COPY_BYTES: &str = "bytes";
/// Blocks of a kernel per multiprocessor.
pub const BLOCKS_PER_SM: &str = "blocks per SM";
/// The achieved occupancy of a kernel, estimated, in percent.
pub const OCCUPANCY: &str = "est. achieved occupancy %";

/// Bytes of an allocation; negative for a release.
pub const BYTES: &str = "Bytes";
/// The address of an allocation.
pub const ADDRESS: &str = "Addr";
/// torch's `DeviceType` of an allocation.
pub const DEVICE_TYPE: &str = "Device Type";
/// The ordinal of an allocation's device.
pub const DEVICE_ID: &str = "Device Id";
/// Bytes that the allocator has handed out.
pub const TOTAL_ALLOCATED: &str = "Total Allocated";
/// Bytes that the allocator holds.
pub const TOTAL_RESERVED: &str = "Total Reserved";
/// Ours: what a tensor is to the program.
pub const TENSOR_ROLE: &str = "Role";
/// Ours: whether a call of a model begins or ends.
pub const FORWARD_PHASE: &str = "Phase";
/// Resident bytes of a process.
pub const RESIDENT_BYTES: &str = "rss";
/// The same in early recordings of `hotspan run`.
pub const OLD_RESIDENT_BYTES: &str = "resident bytes";
/// Resident bytes of a process, shared pages divided among those who share them.
pub const PROPORTIONAL_BYTES: &str = "pss";

/// The process group of a collective.
pub const PROCESS_GROUP: &str = "Process Group Name";
/// What a collective does.
pub const COLLECTIVE: &str = "Collective name";
/// The number of a collective in its group.
pub const COLLECTIVE_SEQUENCE: &str = "Seq";
/// How many elements a collective takes in.
pub const COLLECTIVE_ELEMENTS: &str = "In msg nelems";
/// The type of a collective's elements.
pub const COLLECTIVE_TYPE: &str = "dtype";
/// How many ranks a process group has.
pub const GROUP_SIZE: &str = "Group size";
